//! Guests of one kind, shared by experiments that each want one for themselves; and how many experiments work at a time.
//!
//! The test harness takes experiments in the order of their names, so that those of a kind come together. It has more threads than
//! work at a time (`Makefile`), since one that waits for a guest keeps nobody else from working.

use rxlane_lab::Guest;
use std::ops::Deref;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread::{available_parallelism, panicking};

/// Guests that are booted when somebody asks and none is free, up to a number; from then on experiments take turns. One that is
/// free is paused. They end with the process.
pub struct Pool {
    most: usize,
    guests: Mutex<Guests>,
    returned: Condvar,
}

struct Guests {
    free: Vec<Guest>,
    /// Booted, or being booted.
    count: usize,
}

/// A guest, given back when this is dropped. One whose experiment failed is ended: what it was left with is not what the next
/// expects.
pub struct Taken {
    pool: &'static Pool,
    guest: Option<Guest>,
    _turn: Turn,
}

/// How many more experiments may work: twice as many as there are CPUs, since they wait for guests more than they compute.
static TURNS: LazyLock<Mutex<usize>> =
    LazyLock::new(|| Mutex::new(2 * available_parallelism().map_or(1, usize::from)));
static TURN_IS_OVER: Condvar = Condvar::new();

/// The turn of an experiment, over when this is dropped.
pub struct Turn(());

impl Turn {
    /// Waits for one.
    pub fn take() -> Turn {
        let left = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left =
            TURN_IS_OVER.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        Turn(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TURNS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        TURN_IS_OVER.notify_one();
    }
}

impl Pool {
    /// Of at most so many guests.
    pub const fn of(most: usize) -> Pool {
        Pool { most, guests: Mutex::new(Guests { free: Vec::new(), count: 0 }), returned: Condvar::new() }
    }

    /// One that is free, now or later.
    pub fn take(&'static self, boot: impl FnOnce() -> Guest) -> Taken {
        let guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        let none = |guests: &mut Guests| guests.free.is_empty() && guests.count == self.most;
        let mut guests = self.returned.wait_while(guests, none).unwrap_or_else(PoisonError::into_inner);
        let free = guests.free.pop();
        guests.count += usize::from(free.is_none());
        drop(guests);
        // Given back whatever becomes of this.
        let mut taken = Taken { pool: self, guest: free, _turn: Turn::take() };
        match &taken.guest {
            Some(guest) => guest.resume().expect("a guest that goes on"),
            None => taken.guest = Some(boot()),
        }
        taken
    }
}

impl Deref for Taken {
    type Target = Guest;

    fn deref(&self) -> &Guest {
        self.guest.as_ref().expect("a guest until it is dropped")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let usable = self.guest.take().filter(|_| !panicking());
        let paused = usable.filter(|guest| {
            guest.pause().inspect_err(|error| eprintln!("a guest is ended: {error:#}")).is_ok()
        });
        let mut guests = self.pool.guests.lock().unwrap_or_else(PoisonError::into_inner);
        match paused {
            Some(guest) => guests.free.push(guest),
            // It did not boot, or is of no more use.
            None => guests.count -= 1,
        }
        self.pool.returned.notify_one();
    }
}
