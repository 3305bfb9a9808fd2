//! A worker that cannot go on: the link ends with a sentence, and nothing of it stays.
//!
//! strace(1) gives one thread an answer that the kernel would not.

use super::ends::{Ends, LINK, PARENT, Side};
use super::talk;
use crate::process::Process;
use crate::run::Ended;
use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use testkit::{program, require, wait_for, wait_until};
use wire::ethernet::MacAddress;

const LINE: &str = "q:35,pppoe:7@PEER";

/// strace on one thread of a link, ended with this.
struct Fault {
    strace: Child,
}

impl Fault {
    /// In the thread of this name, the next of these system calls fails.
    fn inject(up: &Process, thread: &str, calls: &str, error: &str) -> Fault {
        let tid = thread_of(up, thread);
        let strace = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "-p", &tid])
            .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when=1")])
            .stdin(Stdio::null())
            .spawn()
            .expect("strace");
        let status = format!("/proc/{tid}/status");
        wait_until(format!("strace takes thread {tid}"), || {
            !fs::read_to_string(&status).is_ok_and(|status| status.contains("TracerPid:\t0\n"))
        });
        Fault { strace }
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// A new thread takes its name a moment after it is there.
fn thread_of(up: &Process, name: &str) -> String {
    let is_it = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    wait_for(format!("thread {name}"), || {
        let tasks = fs::read_dir(format!("/proc/{}/task", up.process())).expect("its threads");
        tasks.flatten().find(is_it)?.file_name().into_string().ok()
    })
}

fn is_over(up: &Process) -> bool {
    // A process that nobody has waited for is there, without threads.
    let status = fs::read_to_string(format!("/proc/{}/status", up.process())).unwrap_or_default();
    status.is_empty() || status.contains("State:\tZ")
}

/// Datagrams of so many flows between the ends, each way, that every worker gets some.
fn many_flows(ends: &Ends) {
    for side in [Side::Near, Side::Far] {
        let [to, _] = side.other().addresses();
        ends.namespace(side).inside(|| {
            for _ in 0..64 {
                // Refused while the link goes.
                let socket = UdpSocket::bind("0.0.0.0:0").expect("bound");
                let _ = socket.send_to(&[0; 100], (to, 9));
            }
        });
    }
}

/// Does something again and again until the link has ended.
fn until_over(up: &Process, mut work: impl FnMut()) {
    wait_until("the link ends", || {
        let is_over = is_over(up);
        if !is_over {
            work();
        }
        is_over
    });
}

/// Ended with the code and the sentence, and the line is free for the next.
fn assert_ended(ends: &Ends, up: Process, expected: i32, words: &str) -> String {
    let ended = up.ended();
    ended.ends(expected).says(words);
    assert!(!ends.has(Side::Near, LINK));
    let again = ends.up(Side::Near, LINE, &["--workers", "2"]);
    talk::echo(ends, Side::Near, "10.9.0.1", &[100]);
    again.interrupted().ends(0);
    ended.text()
}

#[test]
fn a_worker_to_which_the_kernel_refuses_something_ends_the_link() {
    let Some(ends) = Ends::new(1516) else { return };
    let Some(_) = require("strace", program("strace")) else { return };
    let far = ends.up(Side::Far, LINE, &[]);
    let deleted = "somebody deleted sub0";
    for (thread, calls, error, expected, words) in [
        ("rxlane", "poll,ppoll", "ENOMEM", 3, "cannot wait for packets: Cannot allocate memory"),
        ("worker 1", "poll,ppoll", "ENOMEM", 3, "cannot receive frames for sub0: Cannot allocate memory"),
        ("rxlane", "read", "EIO", 3, "cannot read packets of sub0: Input/output error"),
        ("worker 1", "read", "EIO", 3, "cannot read packets of sub0: Input/output error"),
        ("worker 1", "read", "EBADFD", 1, deleted),
    ] {
        let near = ends.up(Side::Near, LINE, &["--workers", "2"]);
        let fault = Fault::inject(&near, thread, calls, error);
        until_over(&near, || many_flows(&ends));
        drop(fault);
        let said = assert_ended(&ends, near, expected, words);
        assert!(!said.contains("panicked"), "{said}");
    }
    far.interrupted().ends(0);
    ends.assert_nothing_left();
}

/// A pause that fails is what the standard library panics at; a worker pauses where frames come densely.
#[test]
fn a_worker_that_panics_ends_the_link_and_says_that_this_is_a_defect() {
    let Some(ends) = Ends::new(1516) else { return };
    let Some(_) = require("strace", program("strace")) else { return };
    let near = ends.up(Side::Near, LINE, &["--workers", "2"]);
    let far = ends.up(Side::Far, LINE, &[]);
    let fault = Fault::inject(&near, "worker 1", "nanosleep,clock_nanosleep", "EINVAL");
    let mut flows = 0..=u8::MAX;
    until_over(&near, || {
        // All frames of a flow are one worker's, and half of the flows are this one's.
        let flow = flows.next().expect("dense enough for one of 256 flows");
        // Of somebody who is not the peer, so that it is counted and goes no further.
        let frame = ends.frame(LINE, Some(MacAddress([2, 0, 0x5e, 0, 0, 0x66])), [10, 9, 1, flow]);
        ends.namespace(Side::Far).send(PARENT, vec![&frame[..]; 5000]).expect("sent");
    });
    drop(fault);
    let said = assert_ended(&ends, near, 3, "a worker of sub0 ended unexpectedly: this is a defect");
    assert!(said.contains("thread 'worker 1'") && said.contains("panicked"), "{said}");
    far.interrupted().ends(0);
    ends.assert_nothing_left();
}
