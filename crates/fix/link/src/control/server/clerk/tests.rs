use super::*;
use crate::control::{Bearer, ControlError, Refused, Server, Sockets};
use serde_json::Value;
use std::io::BufRead;

/// Octets of an answer that fits no buffer of a socket.
const LONG: usize = 4 << 20;

/// Octets of the answer of 14,000 sessions whose users and lines have the longest names.
const LONGEST: usize = 37 << 20;

struct Knows;

impl Answer for Knows {
    fn answer(&self, question: &str) -> Option<String> {
        match question {
            "status" | "down" => Some("{\"is\":1}".to_owned()),
            "long" => Some(format!("\"{}\"", "x".repeat(LONG))),
            "longest" => Some(format!("\"{}\"", "x".repeat(LONGEST))),
            "busy" => Some(Refused::line("ask again")),
            _ => None,
        }
    }
}

struct Scene {
    _folder: tempfile::TempDir,
    sockets: Sockets,
    server: Server,
    /// Readable when somebody asked for the end.
    stop: UnixStream,
}

fn scene() -> Scene {
    let folder = tempfile::tempdir().expect("a folder");
    let sockets = Sockets::new(Bearer::Link, folder.path()).expect("a namespace");
    let (stop, ask) = UnixStream::pair().expect("a pair");
    let server = Server::new(&sockets, "one", Arc::new(Knows), ask).expect("a socket");
    Scene { _folder: folder, sockets, server, stop }
}

impl Scene {
    fn connect(&self) -> UnixStream {
        let (stream, pid) = self.sockets.reach("one").expect("it listens");
        assert_eq!(pid, Some(std::process::id()));
        stream
    }

    fn is_answered(&self) {
        let answer: Value = self.sockets.answer("one", "status").expect("an answer");
        assert_eq!(answer["is"], 1);
    }
}

/// Whether the other end has closed a connection on which nothing was said.
fn is_closed(stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    matches!((&*stream).read(&mut [0]), Ok(0))
}

/// Whether the other end closes it within some seconds. A program that another test has just forked off holds what was open
/// until it becomes itself.
fn comes_to_an_end(stream: &UnixStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    matches!((&*stream).read(&mut [0]), Ok(0))
}

#[test]
fn a_question_is_answered_beside_any_number_of_idle_clients() {
    let scene = scene();
    let mut idle = Vec::new();
    for number in 0..600 {
        idle.push(scene.connect());
        if number % 60 == 0 {
            scene.is_answered();
        }
    }
    for _ in 0..10 {
        scene.is_answered();
    }
    // Those that have been idle for longest were closed, and no more than had to be.
    assert!(idle.iter().take(500).all(comes_to_an_end));
    let closed: Vec<bool> = idle.iter().rev().take(MOST - 2).map(is_closed).collect();
    assert!(closed.iter().all(|closed| !closed), "{closed:?}");
    // Who is there still may ask.
    let last = idle.last().expect("some");
    last.set_nonblocking(false).expect("set");
    (&*last).write_all(b"sta").expect("written");
    scene.is_answered();
    (&*last).write_all(b"tus\n").expect("written");
    let mut line = String::new();
    std::io::BufReader::new(last).read_line(&mut line).expect("read");
    assert_eq!(line, "{\"is\":1}\n");
}

#[test]
fn who_does_not_read_holds_nobody_up() {
    let scene = scene();
    let slow: Vec<UnixStream> = (0..8).map(|_| scene.connect()).collect();
    for mut stream in &slow {
        stream.write_all(b"long\n").expect("written");
    }
    scene.is_answered();
    for mut stream in &slow {
        let mut line = String::new();
        std::io::BufReader::new(&mut stream).read_line(&mut line).expect("read");
        assert_eq!(line.len(), LONG + 3);
    }
}

#[test]
fn what_is_no_question_is_not_answered() {
    let scene = scene();
    for question in [&b"nonsense\n"[..], b"\xff\xfe\n", b"\n", &[b'x'; 4096]] {
        let mut stream = scene.connect();
        // It may be closed before all is written.
        let _ = stream.write_all(question);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert!(answer.is_empty());
    }
    let refused = scene.sockets.answer::<Value>("one", "busy").expect_err("refused");
    assert!(matches!(&refused, ControlError::Refused { why, .. } if why == "ask again"), "{refused}");
    let unknown = scene.sockets.answer::<Value>("one", "nonsense").expect_err("unknown");
    assert!(unknown.to_string().contains("it closed the connection"), "{unknown}");
}

#[test]
fn who_asks_for_the_end_waits_for_it() {
    let mut scene = scene();
    let mut stream = scene.connect();
    stream.write_all(b"down\n").expect("written");
    scene.stop.read_exact(&mut [0]).expect("asked");
    scene.is_answered();
    let mut reader = std::io::BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("read");
    let waiting = scene.server.close();
    assert_eq!((line.as_str(), waiting.len()), ("{\"is\":1}\n", 1));
    drop(waiting);
    assert_eq!(reader.read_line(&mut line).expect("read"), 0);
    assert!(matches!(scene.sockets.status("one"), Err(ControlError::None { .. })));
}

#[test]
fn another_takes_the_place_of_one_that_answers() {
    let scene = scene();
    let (_stop, ask) = UnixStream::pair().expect("a pair");
    let beside = Server::beside(&scene.sockets, "one", Arc::new(Knows), ask.try_clone().expect("a copy"));
    drop(beside.expect("a socket"));
    let entries = || std::fs::read_dir(scene.sockets.folder()).expect("a folder").count();
    assert_eq!(entries(), 1);
    let mut second = Server::beside(&scene.sockets, "one", Arc::new(Knows), ask).expect("a socket");
    assert_eq!((entries(), scene.sockets.names().expect("read").len()), (2, 1));
    second.take_place().expect("taken");
    assert_eq!(entries(), 1);
    // The end of the first leaves the second's socket where it is.
    scene.is_answered();
    let Scene { server, sockets, _folder, .. } = scene;
    drop(server);
    let after: Value = sockets.answer("one", "status").expect("an answer");
    assert_eq!(after["is"], 1);
    drop(second);
    assert!(matches!(sockets.status("one"), Err(ControlError::None { .. })));
}

/// A process that was killed before it took the place has left its socket.
#[test]
fn what_killed_ones_left_is_removed() {
    let scene = scene();
    let name = scene.sockets.path("one").file_name().expect("a name").to_string_lossy().into_owned();
    let left = scene.sockets.folder().join(format!("{name}.123456"));
    drop(UnixListener::bind(&left).expect("bound"));
    assert!(left.exists());
    let (_stop, ask) = UnixStream::pair().expect("a pair");
    let beside = Server::beside(&scene.sockets, "one", Arc::new(Knows), ask).expect("a socket");
    assert!(!left.exists());
    drop(beside);
}

#[test]
fn an_answer_is_as_long_as_there_are_sessions() {
    let scene = scene();
    let answer: String = scene.sockets.answer("one", "longest").expect("an answer");
    assert_eq!(answer.len(), LONGEST);
}

/// A process that was killed before its socket had the place, with the number of one that has ended.
#[test]
fn who_asks_removes_what_no_process_holds() {
    let scene = scene();
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    let gone = child.id();
    child.wait().expect("ended");
    let beside =
        |pid: u32| scene.sockets.folder().join(format!("{}.sock.{pid}", scene.sockets.beginning("one")));
    let (left, live) = (beside(gone), beside(std::process::id()));
    drop(UnixListener::bind(&left).expect("a socket"));
    // One that is bound, and not listened at yet.
    drop(UnixListener::bind(&live).expect("a socket"));
    let other = scene.sockets.folder().join(format!("{}.sock.x", scene.sockets.beginning("one")));
    std::fs::write(&other, "").expect("a file");
    assert_eq!(scene.sockets.names().expect("names"), ["one"]);
    assert!(!left.exists() && live.exists() && other.exists());
    drop(UnixListener::bind(&left).expect("a socket"));
    scene.is_answered();
    assert!(!left.exists());
}
