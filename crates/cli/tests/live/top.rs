//! `rxlane top` in a pipe and on a terminal: veth pairs in network namespaces of the tests' own, with traffic from the
//! generator, and pseudo-terminals and the screen that a person would see.

mod screen;
mod terminal;

use crate::load;
use crate::machine::{FAR, WAN, counted_queues, send_from_one_queue};
use crate::run::{BINARY, Ended, Report};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use terminal::Terminal;
use testkit::netns::{Namespace, Veth};
use testkit::{program, require};
use traffic::Scenario;

/// All frames on one queue.
fn namespace() -> Option<Namespace> {
    let namespace = counted_queues()?;
    send_from_one_queue(&namespace);
    Some(namespace)
}

/// Some ten thousand PPPoE frames a second while `work` runs.
fn under_load<T>(namespace: &Namespace, work: impl FnOnce() -> T) -> T {
    let scenario = Scenario::named("pppoe").expect("a scenario").with_flows(100);
    let mut generator = scenario.generate(7).expect("a generator");
    let frames: Vec<Vec<u8>> = (0..500).map(|_| generator.next_frame().bytes.to_vec()).collect();
    load::under_load(namespace, FAR, &frames, work)
}

fn run(namespace: &Namespace, arguments: &[&str]) -> Output {
    let command = [&["top"], arguments].concat();
    namespace.command(BINARY).args(command).stdin(Stdio::null()).output().expect("it starts")
}

/// The program on a terminal inside.
fn on_terminal(namespace: &Namespace, arguments: &[&str], environment: &[(&str, &str)]) -> Option<Terminal> {
    require("setsid", program("setsid"))?;
    let mut command = namespace.command("setsid");
    command.args(["--ctty", BINARY, "top"]).args(arguments);
    command.env_remove("NO_COLOR").env("TERM", "xterm-256color").envs(environment.iter().copied());
    Some(Terminal::run(command, 80, 24))
}

#[test]
fn a_pipe_gets_tables() {
    let Some(namespace) = namespace() else { return };
    let output = under_load(&namespace, || run(&namespace, &[WAN, "--once"]));
    let text = output.ends(0).text();
    assert!(text.starts_with("wan0 (veth): ") && !text.contains('\x1b'), "{text}");
    assert!(text.contains("! queue 0 takes 100 % of the frames; 4 queues would take 25.0 % each"), "{text}");
    for part in ["\nQueues\n", "\nCPUs\n", "\nStages\n", "\nTraffic, a sample of ", "\nSteering: off\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_reports_what_was_counted() {
    let Some(namespace) = namespace() else { return };
    let look = || run(&namespace, &[WAN, "--once", "--json"]).json();
    let is_sampled = |model: &Value| model["traffic"]["classes"][0]["share"].is_number();
    // A busy machine may hold the load up while the sample is taken, which then has no frame and no shares.
    let model = under_load(&namespace, || {
        let mut models = std::iter::repeat_with(look).take(5);
        models.find(is_sampled).expect("a sample with frames")
    });
    model.has(json!({"schema": "rxlane.top/1", "driver": "veth", "steering": {"mode": "off"}}));
    let rate = model["queues"][0]["frames_per_second"].as_f64().expect("counted");
    assert!(rate > 500.0, "{model:#}");
    assert_eq!(model["queues"][1]["frames_per_second"], 0.0);
    let classes = model["traffic"]["classes"].as_array().expect("classes");
    let share =
        |name: &str| classes.iter().find(|row| row["class"] == name).and_then(|row| row["share"].as_f64());
    assert!(share("pppoe") > Some(0.9) && share("vlan") == Some(0.0), "{model:#}");
    assert_eq!(model["stages"].as_array().map(Vec::len), Some(10));
}

#[test]
fn lines_of_json_end_with_their_reader() {
    let Some(namespace) = namespace() else { return };
    // Lines longer than a buffer meet the closed pipe in the midst.
    namespace.veth(&Veth { queues: 64, ..Veth::pair("big0", "big1") }).expect("a pair");
    let mut child = namespace
        .command(BINARY)
        .args(["top", "big0", "--json", "--interval", "0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for _ in 0..3 {
        let line = lines.next().expect("a line").expect("UTF-8");
        let model: Value = serde_json::from_str(&line).expect("JSON");
        assert!(model["seconds"].as_f64().is_some_and(|seconds| (0.15..2.0).contains(&seconds)), "{line}");
    }
    drop(lines);
    assert_eq!(child.wait().expect("its end").code(), Some(0));
}

#[test]
fn what_cannot_be_is_said() {
    let output =
        |arguments: &[&str]| Command::new(BINARY).arg("top").args(arguments).output().expect("it starts");
    let unknown = output(&["nothing0", "--once"]);
    unknown.ends(2);
    let text = String::from_utf8_lossy(&unknown.stderr);
    assert!(text.starts_with("rxlane: there is no interface nothing0 here; there are: "), "{text}");
    for interval in ["0", "0.1", "x", "-1", "99999"] {
        output(&["lo", "--interval", interval]).is(&interval, 2, "");
    }
}

#[test]
fn an_interface_that_goes_away_ends_a_pipe_with_a_sentence() {
    let Some(namespace) = namespace() else { return };
    let mut child = namespace
        .command(BINARY)
        .args(["top", WAN, "--interval", "0.2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a first line");
    namespace.run("ip", &["link", "del", WAN]).expect("removed");
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stderr);
    output.ends(3);
    assert!(text.starts_with("rxlane: wan0 was removed: ") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_terminal_gets_a_screen_that_obeys_keys_and_sizes() {
    let Some(namespace) = namespace() else { return };
    let Some(mut terminal) = on_terminal(&namespace, &[WAN], &[]) else { return };
    under_load(&namespace, || {
        terminal.wait_for("! queue 0 takes 100 % of the frames");
        terminal.wait_for("sample: ");
        assert!(terminal.screen().starts_with(" rxlane top  wan0  veth "), "{}", terminal.screen());
        assert!(terminal.is_taken());
        terminal.type_keys("5");
        terminal.wait_for("Stages of the receive path");
        terminal.type_keys("\t");
        terminal.wait_for("eth/pppoe/ipv4/tcp");
        terminal.type_keys("2");
        terminal.wait_for("Receive queues of wan0");
        terminal.type_keys("?");
        terminal.wait_for("Keys (any key goes back)");
        terminal.type_keys("x ");
        terminal.wait_for("PAUSED");
        terminal.type_keys(" ");
        terminal.wait_for("every 1 s");
        terminal.type_keys("+");
        terminal.wait_for("every 2 s");
        terminal.resize(60, 20);
        terminal.wait_for("rxlane top takes 80 columns and 24 lines; these are 60 and");
        terminal.resize(140, 30);
        terminal.wait_for("drops: frames lost since the driver started to count. CPU: where most interrupts of the queue's vector");
        terminal.type_keys("q");
    });
    let status = terminal.end();
    assert_eq!(status.code(), Some(0), "{}", terminal.screen());
    assert!(terminal.is_restored());
}

#[test]
fn an_interface_that_goes_away_gives_the_terminal_back() {
    let Some(namespace) = namespace() else { return };
    let Some(mut terminal) = on_terminal(&namespace, &[WAN, "--interval", "0.2"], &[]) else { return };
    terminal.wait_for("frames/s");
    namespace.run("ip", &["link", "del", WAN]).expect("removed");
    let status = terminal.end();
    terminal.wait_for("rxlane: wan0 was removed: there is no interface wan0 here");
    assert_eq!(status.code(), Some(3), "{}", terminal.screen());
    assert!(terminal.is_restored() && !terminal.screen().contains("panicked"), "{}", terminal.screen());
}

#[test]
fn signals_and_control_c_give_the_terminal_back() {
    let Some(namespace) = namespace() else { return };
    // Also amid a key, whose rest never comes: crossterm waits for it.
    for (keys, signal) in [("", Signal::TERM), ("", Signal::INT), ("", Signal::HUP), ("\x1b[", Signal::TERM)]
    {
        let Some(mut terminal) = on_terminal(&namespace, &[WAN], &[]) else { return };
        terminal.wait_for("frames/s");
        terminal.type_keys(keys);
        terminal.wait_until_read();
        terminal.send(signal);
        let status = terminal.end();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        assert!(terminal.is_restored(), "{signal:?}");
    }
    let Some(mut terminal) = on_terminal(&namespace, &[WAN], &[]) else { return };
    terminal.wait_for("frames/s");
    terminal.type_keys("\x03");
    assert_eq!(terminal.end().code(), Some(0));
    assert!(terminal.is_restored());
}

#[test]
fn a_closed_terminal_ends_it() {
    let Some(namespace) = namespace() else { return };
    let Some(_) = require("setsid", program("setsid")) else { return };
    // Without a controlling terminal the kernel sends no signal.
    for arguments in [&["--ctty", BINARY, "top", WAN][..], &[BINARY, "top", WAN]] {
        let mut command = namespace.command("setsid");
        command.args(arguments).env("TERM", "xterm");
        let mut terminal = Terminal::run(command, 80, 24);
        terminal.wait_for("frames/s");
        terminal.close();
        assert_eq!(terminal.end().signal(), Some(Signal::HUP.as_raw()), "{arguments:?}");
    }
}

#[test]
fn colours_are_used_unless_they_are_disabled() {
    let Some(namespace) = namespace() else { return };
    for (environment, is_coloured) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let Some(mut terminal) = on_terminal(&namespace, &[WAN], environment) else { return };
        terminal.wait_for("frames/s");
        terminal.type_keys("q");
        assert_eq!(terminal.end().code(), Some(0));
        assert_eq!(terminal.has_colours(), is_coloured, "{environment:?}");
    }
    // One that cannot be drawn on.
    let Some(mut terminal) = on_terminal(&namespace, &[WAN], &[("TERM", "dumb")]) else { return };
    assert_eq!(terminal.end().code(), Some(3));
    terminal.wait_for("tables are printed with --once");
}

#[test]
fn without_privilege_the_screen_says_what_is_missing() {
    let Some(namespace) = namespace() else { return };
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    let Some(_) = require("setsid", program("setsid")) else { return };
    let mut command = namespace.command("setsid");
    // Root without any capability, which can still read the program wherever it was built.
    command.args(["--ctty", "setpriv", "--bounding-set=-all", "--inh-caps=-all", BINARY, "top", WAN]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::run(command, 80, 24);
    terminal.wait_for("traffic classes: a sample takes CAP_NET_RAW (sudo rxlane top wan0)");
    terminal.wait_for("admit");
    terminal.type_keys("6");
    terminal.wait_for("Traffic classes; sample: none");
    terminal.type_keys("q");
    assert_eq!(terminal.end().code(), Some(0));
}
