use super::*;
use crate::control::{ControlError, Refused, Server};
use crate::{Instances, Kind, StateDir};
use serde_json::Value;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of an answer that fits no buffer of a socket.
const LONG: usize = 4 << 20;

/// Bytes of the answer of 14,000 sessions whose users and lines have the longest names.
const LONGEST: usize = 37 << 20;

struct Handler;

impl ControlHandler for Handler {
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

struct Control {
    _folder: tempfile::TempDir,
    instances: Instances,
    server: Server,
    /// Readable when somebody requested the end.
    stop: UnixStream,
}

fn control() -> Control {
    let folder = tempfile::tempdir().expect("a folder");
    let instances = Instances::new(Kind::Link, StateDir::at(folder.path())).expect("a namespace");
    let (stop, ask) = UnixStream::pair().expect("a pair");
    let server = Server::new(&instances, "one", Arc::new(Handler), ask).expect("a socket");
    Control { _folder: folder, instances, server, stop }
}

impl Control {
    fn connect(&self) -> UnixStream {
        let (stream, pid) = self.instances.connect("one").expect("it listens");
        assert_eq!(pid, Some(std::process::id()));
        stream
    }

    fn is_answered(&self) {
        let answer: Value = self.instances.ask("one", "status").expect("an answer");
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

/// What is answered until the connection is closed.
fn answer_of(mut stream: UnixStream, question: &[u8]) -> Vec<u8> {
    // It may be closed before all is written.
    let _ = stream.write_all(question);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    answer
}

#[test]
fn a_question_is_answered_with_any_number_of_idle_clients() {
    let control = control();
    let mut idle = Vec::new();
    for number in 0..600 {
        idle.push(control.connect());
        if number % 60 == 0 {
            control.is_answered();
        }
    }
    for _ in 0..10 {
        control.is_answered();
    }
    // Those that have been idle for longest were closed, and no more than had to be.
    assert!(idle.iter().take(500).all(comes_to_an_end));
    let closed: Vec<bool> = idle.iter().rev().take(MOST - 2).map(is_closed).collect();
    assert!(closed.iter().all(|closed| !closed), "{closed:?}");
    // Who is there still may ask.
    let last = idle.last().expect("some");
    last.set_nonblocking(false).expect("set");
    (&*last).write_all(b"sta").expect("written");
    control.is_answered();
    (&*last).write_all(b"tus\n").expect("written");
    let mut line = String::new();
    std::io::BufReader::new(last).read_line(&mut line).expect("read");
    assert_eq!(line, "{\"is\":1}\n");
}

#[test]
fn who_does_not_read_holds_nobody_up() {
    let control = control();
    let slow: Vec<UnixStream> = (0..8).map(|_| control.connect()).collect();
    for mut stream in &slow {
        stream.write_all(b"long\n").expect("written");
    }
    control.is_answered();
    for mut stream in &slow {
        let mut line = String::new();
        std::io::BufReader::new(&mut stream).read_line(&mut line).expect("read");
        assert_eq!(line.len(), LONG + 3);
    }
}

#[test]
fn what_is_no_question_is_not_answered() {
    let control = control();
    for question in [&b"nonsense\n"[..], b"\xff\xfe\n", b"\n", &[b'x'; 4096]] {
        assert_eq!(answer_of(control.connect(), question), b"");
    }
    let refused = control.instances.ask::<Value>("one", "busy").expect_err("refused");
    assert!(matches!(&refused, ControlError::Refused { why, .. } if why == "ask again"), "{refused}");
    let unknown = control.instances.ask::<Value>("one", "nonsense").expect_err("unknown");
    assert!(unknown.to_string().contains("it closed the connection"), "{unknown}");
}

#[test]
fn who_asks_for_the_end_waits_for_it() {
    let mut control = control();
    let mut stream = control.connect();
    stream.write_all(b"down\n").expect("written");
    control.stop.read_exact(&mut [0]).expect("stopped");
    control.is_answered();
    let mut reader = std::io::BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("read");
    let waiting = control.server.close();
    assert_eq!((line.as_str(), waiting.len()), ("{\"is\":1}\n", 1));
    drop(waiting);
    assert_eq!(reader.read_line(&mut line).expect("read"), 0);
    assert!(matches!(control.instances.ask::<Value>("one", "status"), Err(ControlError::None { .. })));
}

#[test]
fn another_takes_the_place_of_one_that_answers() {
    let control = control();
    let (_stop, ask) = UnixStream::pair().expect("a pair");
    let standby =
        Server::standby(&control.instances, "one", Arc::new(Handler), ask.try_clone().expect("a copy"));
    drop(standby.expect("a socket"));
    let entries = || std::fs::read_dir(control.instances.state().path()).expect("a folder").count();
    assert_eq!(entries(), 1);
    let mut second = Server::standby(&control.instances, "one", Arc::new(Handler), ask).expect("a socket");
    assert_eq!((entries(), control.instances.names().expect("read").len()), (2, 1));
    second.take_place().expect("taken");
    assert_eq!(entries(), 1);
    // The end of the first leaves the second's socket where it is.
    control.is_answered();
    let Control { server, instances, _folder, .. } = control;
    drop(server);
    let after: Value = instances.ask("one", "status").expect("an answer");
    assert_eq!(after["is"], 1);
    drop(second);
    assert!(matches!(instances.ask::<Value>("one", "status"), Err(ControlError::None { .. })));
}

#[test]
fn an_answer_is_as_long_as_there_are_sessions() {
    let control = control();
    let answer: String = control.instances.ask("one", "longest").expect("an answer");
    assert_eq!(answer.len(), LONGEST);
}

/// A process that was killed before it took the place has left its socket: whoever asks removes it, and so does the next one
/// that stands by.
#[test]
fn sockets_that_no_process_holds_are_removed() {
    let control = control();
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    let ended = child.id();
    child.wait().expect("ended");
    let socket = |suffix: &str| {
        let stem = control.instances.named("one").stem();
        control.instances.state().path().join(format!("{stem}.sock.{suffix}"))
    };
    let (left, live) = (socket(&ended.to_string()), socket(&std::process::id().to_string()));
    drop(UnixListener::bind(&left).expect("a socket"));
    // One that is bound, and not listened at yet.
    drop(UnixListener::bind(&live).expect("a socket"));
    let other = socket("x");
    std::fs::write(&other, "").expect("a file");
    assert_eq!(control.instances.names().expect("names"), ["one"]);
    assert!(!left.exists() && live.exists() && other.exists());
    drop(UnixListener::bind(&left).expect("a socket"));
    control.is_answered();
    assert!(!left.exists());
    drop(UnixListener::bind(&left).expect("a socket"));
    std::fs::remove_file(&live).expect("removed");
    let (_stop, ask) = UnixStream::pair().expect("a pair");
    let standby = Server::standby(&control.instances, "one", Arc::new(Handler), ask).expect("a socket");
    assert!(!left.exists());
    drop(standby);
}

#[test]
fn only_its_owner_can_connect_to_a_socket() {
    use std::os::unix::fs::PermissionsExt;
    let control = control();
    let mode = |name: &str| {
        let path = control.instances.file(name, ".sock");
        std::fs::metadata(path).expect("a socket").permissions().mode() & 0o777
    };
    assert_eq!(mode("one"), 0o600);
    // What a careless umask would give to everybody; of this thread alone, since other tests make folders meanwhile.
    let (_stop, ask) = UnixStream::pair().expect("a pair");
    let careless = || {
        kernel::process::unshare_file_system().expect("a umask of its own");
        rustix::process::umask(rustix::fs::Mode::empty());
        Server::new(&control.instances, "two", Arc::new(Handler), ask).expect("a socket")
    };
    let _server = thread::scope(|scope| scope.spawn(careless).join().expect("no panic"));
    assert_eq!(mode("two"), 0o600);
}

/// A question that comes between a socket's name and its listening takes nothing away.
#[test]
fn who_asks_while_a_socket_is_made_leaves_it() {
    const ROUNDS: usize = 2000;
    let folder = tempfile::tempdir().expect("a folder");
    let instances = Instances::new(Kind::Link, StateDir::at(folder.path())).expect("a namespace");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = instances.connect("one");
                }
            });
        }
        let answered = (0..ROUNDS).filter(|_| {
            let (_stop, ask) = UnixStream::pair().expect("a pair");
            let made = Server::new(&instances, "one", Arc::new(Handler), ask);
            made.is_ok_and(|_server| instances.ask::<Value>("one", "status").is_ok())
        });
        let answered = answered.count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(answered, ROUNDS);
    });
}

/// Attack: another user, where somebody opened folder and socket to all.
#[test]
fn another_user_is_not_answered() {
    use rustix::process::Uid;
    use rustix::thread::set_thread_res_uid;
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let control = control();
    let path = control.instances.file("one", ".sock");
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    open(control.instances.state().path(), 0o755);
    open(&path, 0o666);
    let answer = thread::spawn(move || {
        let nobody = Uid::from_raw(65534);
        set_thread_res_uid(nobody, nobody, nobody).expect("another user");
        answer_of(UnixStream::connect(path).expect("connected"), b"status\n")
    });
    assert_eq!(answer.join().expect("no panic"), b"");
    control.is_answered();
}
