//! What harness and guest say to each other: JSON, a line each, over a virtio serial port.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Name of the port in the guest.
pub const PORT: &str = "rxlane.agent";

/// Bytes in JSON: every byte is the character of its number, so that text stays readable and nothing is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Bytes(pub Vec<u8>);

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> String {
        bytes.0.into_iter().map(char::from).collect()
    }
}

impl TryFrom<String> for Bytes {
    type Error = std::char::TryFromCharError;

    /// Error: a character above U+00FF.
    fn try_from(text: String) -> Result<Bytes, Self::Error> {
        text.chars().map(u8::try_from).collect::<Result<_, _>>().map(Bytes)
    }
}

/// What the harness asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Run a command and wait for its end.
    Run {
        /// Program and arguments.
        argv: Vec<String>,
        /// What it reads.
        stdin: Bytes,
        /// After this it is killed with all its children, milliseconds.
        timeout_ms: u64,
    },
    /// Start a command and leave it running; its output goes into a file.
    Start {
        /// Program and arguments.
        argv: Vec<String>,
        /// File for what it prints, on both streams.
        output: String,
    },
    /// Send a signal to a started command and, if `wait`, wait for its end.
    Signal {
        /// Its process id.
        pid: u32,
        /// Number of the signal (signal(7)).
        signal: i32,
        /// Whether to wait until it ends.
        wait: bool,
    },
    /// The content of a file.
    Read {
        /// Its path.
        path: String,
    },
    /// Write a file; folders above it are made.
    Write {
        /// Its path.
        path: String,
        /// Its content.
        content: Bytes,
    },
}

/// What the guest answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The agent is there; sent once, unrequested.
    Ready {
        /// As `uname -r` says it.
        release: String,
    },
    /// A command ended.
    Ran {
        /// Its exit status, or the negative number of the signal that ended it.
        status: i32,
        /// Whether its time was over.
        timed_out: bool,
        /// Its standard output.
        stdout: Bytes,
        /// Its standard error.
        stderr: Bytes,
    },
    /// A command was started.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// A file's content.
    Content(Bytes),
    /// It was done and there is nothing to say.
    Done,
    /// It could not be done.
    Failed(String),
}

/// A request or a reply with the number that joins them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// Number of the request; 0 of a reply that nobody requested.
    pub number: u64,
    /// The request or reply.
    pub body: T,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit status, or the negative number of the signal that ended it.
    pub status: i32,
    /// Whether it was killed because its time was over.
    pub timed_out: bool,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text; what is no UTF-8 becomes U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// How long a command may take if nobody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_survive_json_and_text_stays_readable() {
        let all = Bytes((0..=255).collect());
        let json = serde_json::to_string(&all).expect("JSON");
        assert_eq!(serde_json::from_str::<Bytes>(&json).expect("bytes"), all);
        assert_eq!(serde_json::to_string(&Bytes(b"rx 17\n".to_vec())).expect("JSON"), "\"rx 17\\n\"");
        assert!(serde_json::from_str::<Bytes>("\"\u{0100}\"").is_err());
    }

    #[test]
    fn a_message_is_one_line() {
        let request = Request::Run {
            argv: vec!["cat".to_owned(), "a\nb".to_owned()],
            stdin: Bytes(b"\n\r\0".to_vec()),
            timeout_ms: 7,
        };
        let line = serde_json::to_string(&Numbered { number: 3, body: request.clone() }).expect("JSON");
        assert!(!line.contains('\n') && !line.contains('\0'), "{line}");
        let read: Numbered<Request> = serde_json::from_str(&line).expect("a request");
        assert_eq!((read.number, read.body), (3, request));
    }
}
