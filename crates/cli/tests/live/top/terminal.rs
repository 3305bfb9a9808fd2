//! A pseudo-terminal with a program on it, and the screen that a person would see.

use super::screen::Screen;
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use testkit::{wait_for, wait_until};

/// What the program wrote: as a screen, and as it came.
struct Written {
    screen: Screen,
    bytes: Vec<u8>,
}

/// A terminal and the program on it, which is ended with this.
pub struct Terminal {
    child: Child,
    /// `None`: closed, as when a window is.
    master: Option<File>,
    /// Kept open, so that what was written last can still be read, and the modes queried.
    slave: File,
    written: Arc<Mutex<Written>>,
    /// Reads what the program writes, until this is set and something more comes.
    reader: Option<JoinHandle<()>>,
    is_closing: Arc<AtomicBool>,
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    /// Starts `command` on a terminal of that size.
    pub fn run(mut command: Command, columns: u16, rows: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pseudo-terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let slave = File::options().read(true).write(true).open(name).expect("its other end");
        tcsetwinsize(&master, size(columns, rows)).expect("its size");
        let end = || slave.try_clone().expect("a descriptor");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
        let master = File::from(master);
        let screen = Screen::new(columns, rows);
        let written = Arc::new(Mutex::new(Written { screen, bytes: Vec::new() }));
        let (mut from, to) = (master.try_clone().expect("a descriptor"), Arc::clone(&written));
        let is_closing = Arc::new(AtomicBool::new(false));
        let is_last = Arc::clone(&is_closing);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                let mut to = to.lock().expect("no panic");
                to.screen.write(&bytes[..count]);
                to.bytes.extend(&bytes[..count]);
                if is_last.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        Terminal { child, master: Some(master), slave, written, reader: Some(reader), is_closing }
    }

    /// Closes the terminal while the program runs; a key makes it write once more, so that nobody reads on.
    pub fn close(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.type_keys("?");
        self.reader.take().expect("not closed yet").join().expect("no panic");
        self.master = None;
    }

    fn master(&self) -> &File {
        self.master.as_ref().expect("not closed")
    }

    /// The text on the screen.
    pub fn screen(&self) -> String {
        self.written.lock().expect("no panic").screen.text()
    }

    /// Waits until `text` is on the screen, in one line or wrapped, whatever the blanks.
    pub fn wait_for(&self, text: &str) {
        let what = std::fmt::from_fn(|f| write!(f, "`{text}` on\n{}", self.screen()));
        let unspaced = |text: &str| text.split_whitespace().collect::<String>();
        wait_until(what, || unspaced(&self.screen()).contains(&unspaced(text)));
    }

    /// Types.
    pub fn type_keys(&mut self, keys: &str) {
        self.master().write_all(keys.as_bytes()).expect("typed");
    }

    /// Another size, of which the kernel informs the program.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.written.lock().expect("no panic").screen.resize(columns, rows);
        tcsetwinsize(self.master(), size(columns, rows)).expect("its size");
    }

    /// Sends a signal to the program.
    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("sent");
    }

    /// Waits for the end of the program.
    pub fn end(&mut self) -> ExitStatus {
        let written = Arc::clone(&self.written);
        let screen = || written.lock().expect("no panic").screen.text();
        let what = std::fmt::from_fn(|f| write!(f, "its end:\n{}", screen()));
        let status = wait_for(what, || self.child.try_wait().expect("a child"));
        // What it wrote last comes before this, which means nothing.
        const LAST: &[u8] = b"\x1b[?7777h";
        if self.reader.is_some() {
            (&self.slave).write_all(LAST).expect("written");
            wait_until("all that it wrote", || written.lock().expect("no panic").bytes.ends_with(LAST));
        }
        status
    }

    /// Waits until the program has read what was typed.
    pub fn wait_until_read(&self) {
        wait_until("what was typed is read", || ioctl_fionread(&self.slave).expect("a number") == 0);
    }

    fn is_line_wise(&self) -> bool {
        let modes = tcgetattr(&self.slave).expect("modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Whether the program has the other screen and takes keys one by one.
    pub fn is_taken(&self) -> bool {
        let written = self.written.lock().expect("no panic");
        written.screen.is_alternate() && !self.is_line_wise()
    }

    /// Whether the terminal is as it was.
    pub fn is_restored(&self) -> bool {
        let written = self.written.lock().expect("no panic");
        !written.screen.is_alternate() && !written.screen.is_cursor_hidden && self.is_line_wise()
    }

    /// Whether any colour was set: SGR 30 to 37, 38, 90 to 97 (ECMA-48, ISO 8613-6).
    pub fn has_colours(&self) -> bool {
        let bytes = self.written.lock().expect("no panic").bytes.clone();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.split("\x1b[").skip(1).any(|sequence| {
            let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            let parameters = sequence.get(..end).unwrap_or_default();
            sequence.get(end..).is_some_and(|rest| rest.starts_with('m'))
                && parameters.split(';').next().is_some_and(|first| {
                    first.parse().is_ok_and(|first: u32| matches!(first, 30..=38 | 90..=97))
                })
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
