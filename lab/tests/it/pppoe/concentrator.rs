//! The provider's end: `rxlane pppoe serve` in a namespace.

use super::await_lines;
use super::provider::{PASSWORD, USER};
use rxlane_lab::Guest;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// Another subscriber, with the same password.
pub const NEIGHBOUR: &str = "neighbour";
/// The concentrator's own address.
pub const GATEWAY: &str = "198.51.100.1";
/// The one that it gives first.
pub const FIRST: &str = "198.51.100.10";

const LOG: &str = "/tmp/serve.output";

/// A concentrator that runs.
pub struct Concentrator<'a> {
    guest: &'a Guest,
    rxlane: &'a str,
    namespace: &'static str,
    device: &'static str,
    pid: Option<u32>,
}

impl<'a> Concentrator<'a> {
    /// Serves the line, with a pool of four addresses unless the words have another.
    pub fn serve(guest: &'a Guest, rxlane: &'a str, words: &str) -> Concentrator<'a> {
        Concentrator::serve_on(guest, rxlane, ("isp", "line0"), words)
    }

    /// Serves an interface of a namespace.
    pub fn serve_on(
        guest: &'a Guest,
        rxlane: &'a str,
        (namespace, device): (&'static str, &'static str),
        words: &str,
    ) -> Concentrator<'a> {
        let line = |user| format!("{user} * \"{PASSWORD}\" *\n");
        guest.write("/tmp/secrets", [line(USER), line(NEIGHBOUR)].concat().as_bytes()).expect("written");
        let mut concentrator = Concentrator { guest, rxlane, namespace, device, pid: None };
        concentrator.pid = Some(concentrator.start(words, LOG));
        concentrator.await_said("serves");
        concentrator
    }

    /// Another process goes on with the sessions.
    pub fn hand_over(&mut self, words: &str) {
        const NEXT: &str = "/tmp/serve.next";
        let next = self.start(&format!("{words} --takeover"), NEXT);
        self.await_said("Another process goes on with the sessions");
        assert_eq!(self.reap(), Some(0), "{}", self.said());
        self.pid = Some(next);
        self.guest.sh(&format!("mv {NEXT} {LOG}")).expect("renamed");
        self.await_said("serves");
    }

    fn start(&self, words: &str, log: &str) -> u32 {
        let fixed = ["ip", "netns", "exec", self.namespace, self.rxlane, "pppoe", "serve", self.device];
        let secrets = ["--secrets", "/tmp/secrets", "--local", GATEWAY, "--dns", "198.51.100.53"];
        let pool: &[&str] =
            if words.contains("--pool") { &[] } else { &["--pool", "198.51.100.10-198.51.100.13"] };
        let words: Vec<&str> = words.split_whitespace().collect();
        self.guest.start(&[&fixed[..], &secrets, pool, &words].concat(), log).expect("it starts")
    }

    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.guest.read(LOG).expect("output")).into_owned()
    }

    pub fn await_said(&self, text: &str) {
        await_lines(self.guest, LOG, text, 1)
            .unwrap_or_else(|_| panic!("never said `{text}`: {}", self.said()));
    }

    /// What it says of itself and its sessions.
    pub fn status(&self) -> Value {
        let fixed = ["ip", "netns", "exec", self.namespace, self.rxlane];
        let words = [&fixed[..], &["pppoe", "sessions", self.device, "--json"]].concat();
        let output = self.guest.run(&words).expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.errors()))
    }

    pub fn sessions(&self) -> Vec<Value> {
        self.status()["sessions"].as_array().expect("a list").clone()
    }

    /// The session of a user who has one.
    pub fn session(&self, user: &str) -> Value {
        let sessions = self.sessions();
        let mut own = sessions.iter().filter(|session| session["user"] == user);
        match (own.next(), own.next()) {
            (Some(session), None) => session.clone(),
            _ => panic!("not one session of {user}: {sessions:?}: {}", self.said()),
        }
    }

    pub fn await_no_session(&self) {
        for _ in 0..200 {
            if self.sessions().is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("sessions are left: {:?}", self.sessions());
    }

    pub fn end(mut self) {
        assert_eq!(self.reap(), Some(0), "{}", self.said());
    }

    fn reap(&mut self) -> Option<i32> {
        let pid = self.pid.take()?;
        self.guest.signal(pid, libc::SIGTERM, true).expect("an end")
    }
}

impl Drop for Concentrator<'_> {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.take() {
            let _ = self.guest.signal(pid, libc::SIGTERM, true);
        }
    }
}
