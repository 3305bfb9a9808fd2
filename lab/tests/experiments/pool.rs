//! Guests of one kind, shared by experiments that each want one for themselves.

use rxlane_lab::Guest;
use std::ops::Deref;
use std::sync::{Condvar, Mutex, PoisonError};

/// Guests that are booted when somebody asks and none is free, up to a number; from then on experiments take turns. They end
/// with the process.
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

/// A guest, given back when this is dropped, also by a panic.
pub struct Taken {
    pool: &'static Pool,
    guest: Option<Guest>,
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
        let mut taken = Taken { pool: self, guest: guests.free.pop() };
        if taken.guest.is_none() {
            guests.count += 1;
            drop(guests);
            taken.guest = Some(boot());
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
        let mut guests = self.pool.guests.lock().unwrap_or_else(PoisonError::into_inner);
        match self.guest.take() {
            Some(guest) => guests.free.push(guest),
            // It did not boot.
            None => guests.count -= 1,
        }
        self.pool.returned.notify_one();
    }
}
