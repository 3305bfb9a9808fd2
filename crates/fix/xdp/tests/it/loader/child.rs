//! Processes that attach and detach on their own, which the tests start, watch and kill.

use std::process::{Command, Output};
use std::time::Duration;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use rxlane_xdp::{Attachment, Error, attach};

use crate::loader::machine::{WAN, find, plan};

/// What the process is to do.
const WORK: &str = "RXLANE_TEST_LOADER";
/// Commands of bpf(2), as `1,5` or `all`, that the kernel is to refuse it, and behind a colon the error number.
const DENY: &str = "RXLANE_TEST_DENY";
/// Stands before and behind what says how that went.
const ANSWER: &str = "ANSWER ";
const END: &str = " END\n";

/// No test: what a process does that other tests start.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let Ok(work) = std::env::var(WORK) else { return };
    if let Ok(deny) = std::env::var(DENY) {
        let (commands, number) = deny.split_once(':').expect("two parts");
        filter(commands, number.parse().expect("an error number"));
    }
    let answer = match work.as_str() {
        "attach" => attach(&plan(find(WAN))).map(|attachment| format!("{}", attachment.folder().display())),
        "detach" => detach(),
        "remove" => Attachment::remove(&find(WAN)).map(|removed| removed.to_string()),
        "open" => Attachment::open(&find(WAN)).map(|opened| opened.is_some().to_string()),
        other => panic!("{other}"),
    };
    // Not println!, which the test harness captures.
    let line = match answer {
        Ok(said) => format!("{ANSWER}ok {said}{END}"),
        Err(error) => format!("{ANSWER}lacks={} {error}{END}", error.lacks()),
    };
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("written");
}

/// Has the kernel answer calls of bpf(2) with an error, for the rest of this thread's life.
fn filter(commands: &str, number: u32) {
    let is = |command: &str| {
        let command = command.parse().expect("a number");
        let is = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, command).expect("valid");
        SeccompRule::new(vec![is]).expect("valid")
    };
    let conditions = if commands == "all" { Vec::new() } else { commands.split(',').map(is).collect() };
    let rules = [(libc::SYS_bpf, conditions)].into();
    let architecture = std::env::consts::ARCH.try_into().expect("an architecture with seccomp");
    let refuse = SeccompAction::Errno(number);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).expect("valid");
    let program: BpfProgram = filter.try_into().expect("valid");
    // Threads that it starts inherit the filter.
    seccompiler::apply_filter(&program).expect("seccomp");
}

fn detach() -> Result<String, Error> {
    let attachment = Attachment::open(&find(WAN))?.expect("attached");
    Ok(attachment.detach(Duration::from_secs(1))?.unseen.to_string())
}

/// The arguments with which this program is such a process.
pub fn arguments() -> Vec<String> {
    let program = std::env::current_exe().expect("this program").display().to_string();
    let mut arguments = vec![program];
    arguments.extend(
        ["loader::child::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"]
            .map(str::to_owned),
    );
    arguments
}

/// Makes the process that a command starts do this work.
pub fn work<'a>(command: &'a mut Command, work: &str) -> &'a mut Command {
    command.env(WORK, work).stdin(std::process::Stdio::null())
}

/// Has the kernel refuse the process commands of bpf(2) with an error number.
pub fn deny<'a>(command: &'a mut Command, commands: &str, number: i32) -> &'a mut Command {
    command.env(DENY, format!("{commands}:{number}"))
}

/// Runs it, and gives what it answered: `ok …`, or `lacks=true …`.
pub fn answer(command: &mut Command) -> String {
    let output: Output = command.output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.split_once(ANSWER).and_then(|(_, rest)| rest.split_once(END));
    answer.unwrap_or_else(|| panic!("no answer: {output:?}")).0.to_owned()
}
