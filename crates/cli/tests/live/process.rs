//! A program that runs, what it has said so far, and its end.

use crate::machine;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use testkit::{wait_for, wait_until};

/// A running program, killed when it is dropped.
pub struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let said = Arc::new(Mutex::new(String::new()));
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        let read = |stream: Box<dyn Read + Send>| {
            let said = Arc::clone(&said);
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let mut said = said.lock().expect("no panic");
                    said.push_str(&line);
                    said.push('\n');
                }
            })
        };
        let readers = streams.into_iter().flatten().map(read).collect();
        Process { child, said, readers }
    }

    /// All that it has said so far, to either stream.
    pub fn said(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    /// Waits until it has said a text so many times.
    pub fn hear(&self, text: &str, times: usize) {
        let what = std::fmt::from_fn(|f| write!(f, "`{text}`, {times} times, of:\n{}", self.said()));
        wait_until(what, || self.said().matches(text).count() >= times);
    }

    /// Waits until it has said a text, or has ended; whether it has said it.
    pub fn says_before_its_end(&mut self, text: &str) -> bool {
        wait_until(format!("`{text}`, or its end"), || {
            let has_ended = self.has_ended();
            if has_ended {
                self.join_readers();
            }
            has_ended || self.said().contains(text)
        });
        self.said().contains(text)
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    fn join_readers(&mut self) {
        for reader in std::mem::take(&mut self.readers) {
            reader.join().expect("no panic");
        }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        machine::signal(self.process(), signal);
    }

    /// Waits for its end; what it said to either stream is its standard output.
    pub fn ended(mut self) -> Output {
        let said = Arc::clone(&self.said);
        let what = std::fmt::from_fn(|f| write!(f, "its end:\n{}", said.lock().expect("no panic")));
        let status = wait_for(what, || self.child.try_wait().expect("a child"));
        self.join_readers();
        Output { status, stdout: self.said().into_bytes(), stderr: Vec::new() }
    }

    pub fn interrupted(self) -> Output {
        self.signal("TERM");
        self.ended()
    }

    pub fn killed(self) {
        self.signal("KILL");
        self.ended();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
