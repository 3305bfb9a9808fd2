use super::*;
use service::control::{ControlHandler, Server};
use service::{Kind, StateDir};
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;

fn snapshot() -> Snapshot {
    serde_json::from_str("{\"version\":1,\"sessions\":[],\"unfinished\":[]}").expect("a snapshot")
}

fn counted() -> Counted {
    vec![(7, Traffic { received_octets: 1, received_packets: 2, sent_octets: 3, sent_packets: 4 })]
}

/// A successor, the other end of its connection, and a stop with its other end.
fn offered() -> (Successor, UnixStream, UnixStream, UnixStream) {
    let (own, other) = UnixStream::pair().expect("a pair");
    let (stop, ask) = UnixStream::pair().expect("a pair");
    (Successor::new(own).expect("a connection"), other, stop, ask)
}

fn line(stream: &UnixStream) -> String {
    let mut line = String::new();
    // Byte by byte, so that nothing behind it is taken.
    let mut reader = BufReader::with_capacity(1, stream);
    reader.read_line(&mut line).expect("read");
    line
}

#[test]
fn the_sessions_are_offered_counted_and_released() {
    let (mut successor, mut other, stop, _ask) = offered();
    other.write_all(b"busy\nbusy\nserves\n").expect("written");
    successor.offer(&snapshot(), stop.as_fd()).expect("it serves");
    assert_eq!(line(&other), "{\"version\":1,\"sessions\":[],\"unfinished\":[]}\n");
    other.write_all(b"done\n").expect("written");
    successor.release(&counted()).expect("it is done");
    let said: Counted = serde_json::from_str(&line(&other)).expect("JSON");
    assert_eq!(said, counted());
}

#[test]
fn a_successor_that_ends_or_says_something_else_gets_nothing() {
    let (mut successor, other, stop, _ask) = offered();
    drop(other);
    let why = successor.offer(&snapshot(), stop.as_fd()).expect_err("it has ended");
    assert!(matches!(why, Withheld::Ended), "{why}");
    // It ends with all of it read.
    let (mut successor, mut other, stop, _ask) = offered();
    let reader = thread::spawn(move || {
        other.write_all(b"busy\n").expect("written");
        line(&other)
    });
    let why = successor.offer(&snapshot(), stop.as_fd()).expect_err("it has ended");
    assert!(matches!(why, Withheld::Ended), "{why}");
    assert!(reader.join().expect("no panic").starts_with("{\"version\":1"));
    let (mut successor, mut other, stop, _ask) = offered();
    other.write_all(b"thanks\n").expect("written");
    let why = successor.offer(&snapshot(), stop.as_fd()).expect_err("no such word");
    assert!(matches!(why, Withheld::Word), "{why}");
    line(&other);
    assert_eq!(Refused::read(&line(&other)).as_deref(), Some("its process goes on with the sessions itself"));
}

#[test]
fn who_shall_end_meanwhile_does_not_give_them_away() {
    let (mut successor, other, stop, mut ask) = offered();
    ask.write_all(&[0]).expect("written");
    let why = successor.offer(&snapshot(), stop.as_fd()).expect_err("it shall end");
    assert!(matches!(why, Withheld::Stopping), "{why}");
    line(&other);
    let refused = Refused::read(&line(&other)).expect("refused");
    assert!(refused.contains("notifies the subscribers"), "{refused}");
}

#[test]
fn a_successor_that_has_ended_at_last_is_noticed() {
    let (mut successor, other, stop, _ask) = offered();
    (&other).write_all(b"serves\n").expect("written");
    successor.offer(&snapshot(), stop.as_fd()).expect("it serves");
    drop(other);
    let why = successor.release(&counted()).expect_err("it has ended");
    assert!(matches!(why, Withheld::Ended), "{why}");
}

/// Lines of any length, in pieces, and nothing at all.
#[test]
fn lines_are_heard_whole_or_not_at_all() {
    let (own, other) = UnixStream::pair().expect("a pair");
    let mut talk = Talk::new(own).expect("a connection");
    let soon = || Instant::now() + Duration::from_millis(20);
    // For what comes: a program that another test has forked off holds the other end until it becomes itself.
    let in_time = || Instant::now() + SILENCE;
    assert_eq!(talk.hear(soon(), None).expect("waited"), Heard::Late);
    (&other).write_all(b"o").expect("written");
    assert_eq!(talk.hear(soon(), None).expect("waited"), Heard::Late);
    (&other).write_all(b"ne\ntwo\n").expect("written");
    for word in ["one", "two"] {
        assert_eq!(talk.hear(in_time(), None).expect("heard"), Heard::Line(word.to_owned()));
    }
    let long = "x".repeat(3 << 20);
    thread::scope(|scope| {
        scope.spawn(|| Talk::new(other.try_clone().expect("a copy")).expect("one").say(&long));
        assert_eq!(talk.hear(in_time(), None).expect("heard"), Heard::Line(long.clone()));
    });
    (&other).write_all(b"no end").expect("written");
    drop(other);
    assert_eq!(talk.hear(in_time(), None).expect("ended"), Heard::Ended);
}

struct Gives(Mutex<Sender<UnixStream>>);

impl ControlHandler for Gives {
    fn answer(&self, _: &str) -> Option<String> {
        None
    }

    fn adopt(&self, question: &str, stream: UnixStream) -> Option<UnixStream> {
        assert_eq!(question, BEGINS);
        self.0.lock().expect("no panic").send(stream).expect("somebody waits");
        None
    }
}

#[test]
fn both_ends_understand_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let sockets = Instances::new(Kind::Concentrator, StateDir::at(folder.path())).expect("a namespace");
    assert!(matches!(Predecessor::ask(&sockets, "wan0"), Err(ControlError::None { .. })));
    let (stop, ask) = UnixStream::pair().expect("a pair");
    let (sender, streams) = channel();
    let _server = Server::new(&sockets, "wan0", Arc::new(Gives(Mutex::new(sender))), ask).expect("a socket");
    thread::scope(|scope| {
        let predecessor = scope.spawn(move || {
            let mut successor = Successor::new(streams.recv().expect("one")).expect("a connection");
            assert_eq!(successor.pid(), Some(std::process::id()));
            successor.offer(&snapshot(), stop.as_fd()).expect("it serves");
            successor.release(&counted()).expect("it is done");
            // The second is refused, the third is left alone while it serves.
            refuse(&streams.recv().expect("one"), "not now");
            let mut third = Successor::new(streams.recv().expect("one")).expect("a connection");
            third.offer(&snapshot(), stop.as_fd()).expect("it serves");
        });
        let (mut own, given) = Predecessor::ask(&sockets, "wan0").expect("given");
        assert!(given.is_empty());
        own.is_waited_for();
        assert_eq!(own.serves().expect("released"), Some(counted()));
        own.done();
        let refused = Predecessor::ask(&sockets, "wan0").expect_err("refused").to_string();
        assert!(refused.contains("wan0: not now"), "{refused}");
        let (mut own, _) = Predecessor::ask(&sockets, "wan0").expect("given");
        // It closes the connection and lives.
        let unknown = own.serves().expect_err("nobody knows").to_string();
        assert!(unknown.contains("may go on with the sessions"), "{unknown}");
        predecessor.join().expect("no panic");
    });
}
