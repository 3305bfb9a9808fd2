//! Signals that would end this process while something on the machine is half changed, or changed and not taken back.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use steer::keeper::Stop;

/// Notes SIGINT, SIGTERM and SIGHUP from when it is made until the process ends, instead of their ending it.
pub struct Interrupted {
    by: Arc<AtomicUsize>,
}

impl Interrupted {
    /// Begins. The same signals ask through what is returned with it.
    pub fn noted() -> io::Result<(Interrupted, Stop)> {
        let by = Arc::new(AtomicUsize::new(0));
        let mut numbers = vec![SIGINT, SIGTERM];
        // nohup(1) wants a process to outlive its terminal.
        if !is_ignored(SIGHUP) {
            numbers.push(SIGHUP);
        }
        for &number in &numbers {
            signal_hook::flag::register_usize(number, Arc::clone(&by), usize::try_from(number).unwrap_or(1))?;
        }
        let (ask, stop) = Stop::by_sender();
        let mut signals = Signals::new(&numbers)?;
        let wait = move || {
            for _ in signals.forever() {
                // Who is no longer there need not be asked.
                let _ = ask.send(());
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        Ok((Interrupted { by }, stop))
    }

    /// The name of the last signal that came.
    pub fn by(&self) -> Option<&'static str> {
        match self.by.load(Ordering::SeqCst) {
            0 => None,
            number => Some(i32::try_from(number).map_or("a signal", name)),
        }
    }
}

fn name(number: i32) -> &'static str {
    signal_hook::low_level::signal_name(number).unwrap_or("a signal")
}

/// Whether the process that started this one had it ignore a signal (proc_pid_status(5)).
pub fn is_ignored(number: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (number - 1)) != 0
}
