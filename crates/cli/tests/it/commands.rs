//! The commands around the product: demo, man pages, completions, help, exit codes.

use crate::run::{BINARY, Command, Ended, rxlane};
use std::process::{Output, Stdio};
use tempfile::TempDir;

fn stdout(command: &mut Command) -> String {
    command.output().ends(0).text()
}

#[test]
fn demo_shows_queue_0_and_writes_captures_and_page() {
    let directory = TempDir::new().unwrap();
    let text = stdout(rxlane().arg("demo").current_dir(directory.path()));
    let section = |number: u32| {
        let from = text.find(&format!("\n{number}. ")).expect("a numbered part");
        let part = &text[from + 1..];
        part.find("\n\n").map_or(part, |to| &part[..to]).to_owned()
    };
    assert!(section(2).contains(" 100 %") && section(2).contains("1.00 effective queues of 4"), "{text}");
    assert!(!section(3).contains(" 100 %"), "{text}");
    assert!(!section(4).contains(" 100 %"), "{text}");
    assert!(section(5).contains("Bottleneck: parse"), "{text}");
    assert!(text.contains("echo e > /sys/class/net/enp1s0/queues/rx-0/rps_cpus"), "{text}");
    if testkit::require("netns", testkit::netns::probe()).is_some() {
        assert!(section(6).contains("A line and a router"), "{text}");
        assert!(
            text.contains("wan0 is steered in native mode") && text.contains("wan0 is no longer steered"),
            "{text}"
        );
        assert!(text.contains("Both namespaces are removed"), "{text}");
    } else {
        assert!(section(6).contains("Left out: "), "{text}");
    }
    for file in ["pppoe.pcap", "untagged.pcap", "pppoe.html", "doctor.html"] {
        let size = std::fs::metadata(directory.path().join("rxlane-demo").join(file)).unwrap().len();
        assert!(size > 10_000, "{file}: {size} bytes");
    }
}

#[test]
fn demo_says_where_it_cannot_write() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("taken"), b"").unwrap();
    let output = rxlane().args(["demo", "--directory", "taken"]).current_dir(directory.path()).output();
    output.ends(2).says("taken").says("--directory");
    assert_eq!(output.text().lines().count(), 1, "{}", output.text());
}

#[test]
fn every_command_has_a_man_page_and_every_shell_completions() {
    let directory = TempDir::new().unwrap();
    stdout(rxlane().arg("man").arg(directory.path()));
    let page = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    for command in ["", "-bench-recv", "-bench-compare", "-explain", "-nics", "-rss-hash", "-gen", "-demo"] {
        let page = page(&format!("rxlane{command}.1"));
        let sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "\"SEE ALSO\""];
        let places: Vec<Option<usize>> =
            sections.iter().map(|section| page.find(&format!("\n.SH {section}\n"))).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "rxlane{command}.1: {places:?}");
        assert!(page.contains(concat!("rxlane ", env!("CARGO_PKG_VERSION"))), "rxlane{command}.1");
        assert!(!page.contains(".SH EXTRA") && page.is_ascii(), "rxlane{command}.1");
    }
    let hash = page("rxlane-rss-hash.1");
    assert!(hash.contains("\n\\fB\\-\\-src\\fR\\ \\fIADDRESS\\fR\n"), "{hash}");
    assert!(hash.contains("\n[\\fB\\-\\-reta\\fR\\ \\fITABLE\\fR]\n"), "{hash}");
    let connect = page("rxlane-pppoe-connect.1");
    assert!(connect.contains("\n[\\fB\\-\\-default\\-route\\fR[=\\fIBOOL\\fR]]\n"), "{connect}");
    // Exit codes are the command's own, once.
    for (name, own) in [
        ("rxlane-pppoe-serve.1", "\\fB1\\fR\nAnother one serves the interface or begins to, "),
        ("rxlane-pppoe-connect.1", "\\fB1\\fR\nThe name is taken, "),
        ("rxlane-pppoe-status.1", "\\fB3\\fR\nIt requires root.\n"),
        ("rxlane-pppoe-sessions.1", "\\fB2\\fR\nSeveral are served and none is named.\n"),
    ] {
        let page = page(name);
        assert!(page.contains(own) && !page.contains("a capture is damaged"), "{page}");
        assert!(!page.contains("Exit codes:") && page.matches("\\fB0\\fR\n").count() == 1, "{page}");
    }
    assert!(hash.contains("a capture is damaged"), "{hash}");
    assert!(hash.contains("\n.SH EXAMPLES\n.nf\nrxlane rss hash \\-\\-src 66.9.149.187"), "{hash}");
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(rxlane().args(["completions", shell]));
        for word in ["explain", "82599", "pppoe-qinq", "extensions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // What the help does not name is between processes of rxlane.
        for word in ["daemon-process", "journal", "parent"] {
            assert!(!script.contains(&format!("--{word}")), "{shell}: {word}");
            assert!(!script.contains(&format!("-l {word} ")), "{shell}: {word}");
        }
        assert!(script.contains("ifname") && script.contains("takeover"), "{shell}");
    }
}

#[test]
fn wrong_usage_is_exit_2_and_help_fits_a_hundred_columns() {
    for arguments in [&[][..], &["frobnicate"], &["explain"], &["explain", "--frobnicate", "x"]] {
        assert!(!rxlane().args(arguments).output().is(&arguments, 2, "").stderr.is_empty(), "{arguments:?}");
    }
    let help = stdout(rxlane().arg("--help"));
    let purpose = "Finds out why PPPoE, VLAN and QinQ traffic is slow on a multi-queue router,";
    assert!(help.starts_with(purpose), "{help}");
    assert!(help.contains("Exit codes of every command: 0 success, 1 negative result"), "{help}");
    for command in ["collect", "demo", "doctor", "explain", "gen", "nics", "rss", "man", "completions"] {
        let help = stdout(rxlane().args([command, "--help"]));
        assert!(help.contains("Usage: rxlane"), "{command}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}:\n{help}");
    }
}

/// Commands whose output is longer than any buffer, or ends in a document; `CAPTURE` is a file.
const LONG_OUTPUTS: [&str; 20] = [
    "explain CAPTURE",
    "explain CAPTURE --json",
    "explain CAPTURE --html -",
    "nics",
    "nics --json",
    "nics --can vlan --json",
    "collect --script",
    "collect --seconds 0.1",
    "doctor --seconds 0.1",
    "doctor --seconds 0.1 --json",
    "doctor --seconds 0.1 --html -",
    "gen --list --json",
    "gen --scenario pppoe -o -",
    "rss table equal 4 --json",
    "rss key symmetric --json",
    "steer status --json",
    "steer check lo --seconds 0 --json",
    "top lo --once --interval 0.2 --json",
    "completions bash",
    "--help",
];

/// Runs it with standard output, or standard error, somewhere else.
fn run_into(arguments: &str, capture: &str, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Output {
    let arguments = arguments.replace("CAPTURE", capture);
    let mut command = std::process::Command::new(BINARY);
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    command.spawn().unwrap().wait_with_output().unwrap()
}

/// A pipe that nobody reads: the first write finds it closed.
fn closed() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

fn capture(directory: &TempDir) -> String {
    let path = directory.path().join("line.pcap").to_str().unwrap().to_owned();
    stdout(rxlane().args(["gen", "--scenario", "pppoe", "--frames", "2000", "-o", &path]));
    path
}

#[test]
fn a_reader_that_closes_the_pipe_hears_no_complaint_and_a_full_disk_is_reported() {
    let directory = TempDir::new().unwrap();
    let capture = capture(&directory);
    for arguments in LONG_OUTPUTS {
        let output = run_into(arguments, &capture, closed(), Stdio::piped());
        // What a command has found out by its end it reports by its exit code, as with a reader; one that has not come there exits 0.
        let read = run_into(arguments, &capture, Stdio::null(), Stdio::null());
        assert!([0, read.code()].contains(&output.code()), "{arguments}: {}", output.status);
        assert_eq!(output.text(), "", "{arguments}");
        // clap prints help by itself.
        if arguments != "--help" {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let output = run_into(arguments, &capture, full, Stdio::piped());
            output.is(&arguments, 3, "standard output: No space left");
        }
    }
}

#[test]
fn complaints_that_nobody_reads_change_no_exit_code() {
    run_into("explain no-such-file.pcap", "", Stdio::null(), closed()).ends(2);
    // A damaged capture is reported on standard error, too, and is exit 1.
    let directory = TempDir::new().unwrap();
    let path = capture(&directory);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    run_into("explain CAPTURE", &path, Stdio::null(), closed()).ends(1);
}

/// Runs the program under a limit of the shell.
fn limited(limit: &str, arguments: &[&str]) -> Output {
    let script = format!("ulimit {limit}; exec \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, "sh", BINARY]).args(arguments).output().unwrap()
}

#[test]
fn a_capture_for_which_there_is_no_room_is_not_there() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("line.pcap").to_str().unwrap().to_owned();
    let output = limited("-f 64", &["gen", "--scenario", "pppoe", "-o", &path]);
    output.ends(3).says(&format!("cannot write {path}: File too large"));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn too_little_memory_is_what_the_machine_lacks() {
    let directory = TempDir::new().unwrap();
    let capture = capture(&directory);
    let state = directory.path().join("state").to_str().unwrap().to_owned();
    // With less the program is not even loaded; how much that takes differs a little with where the kernel places it.
    let is_loaded = |kilobytes: &u32| limited(&format!("-v {kilobytes}"), &["--version"]).code() == 0;
    let least = (10_000..60_000).step_by(2000).find(is_loaded).expect("it starts") + 2000;
    let run = |kilobytes: u32, arguments: &str| {
        let arguments = arguments.replace("CAPTURE", &capture).replace("STATE", &state);
        let output = limited(&format!("-v {kilobytes}"), &arguments.split(' ').collect::<Vec<_>>());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for arguments in [
        "steer up lo --state-dir STATE",
        "steer check lo --state-dir STATE",
        "steer status --state-dir STATE",
        "steer down lo --state-dir STATE",
        "envelope up lo --header 8 --state-dir STATE",
        "doctor --state-dir STATE",
        "doctor --from /dev/null --state-dir STATE",
        "explain CAPTURE",
        "gen --flows 50000000 --frames 10 -o STATE",
        "top lo --once --state-dir STATE",
        "collect --seconds 0",
        "link up lo --ifname sub0 --vlan 35 --state-dir STATE",
        "pppoe serve lo --anybody --state-dir STATE",
        "pppoe connect lo --reconnect false --state-dir STATE",
    ] {
        let (code, error) = run(60_000, arguments);
        let is_short = code == Some(3) && error.contains("too little memory") && error.lines().count() == 1;
        // A command that needs little, or is refused before it needs any, ends as ever.
        let is_modest =
            ["link", "pppoe", "steer status", "steer down"].iter().any(|word| arguments.starts_with(word));
        assert!(is_short || is_modest && matches!(code, Some(0..=3)), "{arguments}: {code:?}: {error}");
        for kilobytes in (least..least + 150_000).step_by(30_000) {
            let (code, error) = run(kilobytes, arguments);
            let is_sentence =
                !["panicked", "memory allocation of", "backtrace"].iter().any(|word| error.contains(word));
            assert!(is_sentence && code.is_some(), "{kilobytes} kB, {arguments}: {code:?}: {error}");
        }
    }
}

#[test]
fn a_line_that_is_none_is_refused_alike_by_every_command() {
    let commands = [
        "link check eth0",
        "link up eth0 --ifname sub0",
        "pppoe connect eth0",
        "pppoe up eth0",
        "pppoe discover eth0",
        "gen -o -",
        "bench send --raw eth0",
    ];
    for (option, typed) in
        [("--vlan", "35.4095"), ("--vlan", "all"), ("--encap", "q:7,vlan"), ("--encap", "8100:7")]
    {
        let mut all = std::collections::BTreeSet::new();
        for command in commands {
            let error = rxlane().args(command.split(' ')).args([option, typed]).output().ends(2).text();
            let first = error.lines().next().unwrap_or_default().to_owned();
            assert!(first.contains(option) && first.contains(typed), "{command:?}: {error}");
            let others: Vec<&str> = error
                .split(|c: char| c.is_whitespace() || "'`,;.()".contains(c))
                .filter(|word| word.starts_with("--") && ![option, "--help"].contains(word))
                .collect();
            assert!(others.is_empty(), "{command:?} names {others:?}: {error}");
            all.insert(first);
        }
        assert_eq!(all.len(), 1, "{all:#?}");
    }
}

#[test]
fn former_names_of_options_are_taken_and_not_listed() {
    let directory = TempDir::new().unwrap();
    let state = directory.path().to_str().unwrap();
    // No such interface, which is found after the arguments are read.
    for arguments in [
        "link up --parent no-such --name sub0 --vlan 35 --state STATE --dry-run",
        "link up no-such --ifname sub0 --vlan 35 --state-dir STATE --dry-run",
        "link check --parent no-such --vlan 35 --state STATE --journal STATE",
        "pppoe connect no-such --dry-run --state STATE",
        "pppoe serve no-such --anybody --dry-run --state STATE",
        "steer up no-such --dry-run --journal STATE",
        "envelope check no-such --header 8 --journal STATE",
    ] {
        let arguments = arguments.replace("STATE", state);
        let error = String::from_utf8(rxlane().args(arguments.split(' ')).output().stderr).unwrap();
        assert!(error.starts_with("rxlane: ") && error.contains("no-such"), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    }
}
