//! A capture on standard input, from a pipe and from a file: this program runs itself to have one.

use std::fs::File;
use std::io::{Seek, Write};
use std::process::{Command, ExitCode, Stdio};

use rxlane_capture::{Capture, LinkType, Resolution, Writer};

const CHILD: &str = "RXLANE_STANDARD_INPUT_CHILD";

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return count();
    }
    let mut writer = Writer::pcap(Vec::new(), LinkType::Ethernet, Resolution::Nanoseconds).expect("header");
    for at in 0..20_000 {
        writer.write(at, &[0; 100], 100).expect("write");
    }
    let capture = writer.finish().expect("flush");
    let mut file = tempfile::tempfile().expect("temporary file");
    file.write_all(b"#!").and_then(|()| file.write_all(&capture)).expect("write");
    let whole = tempfile::NamedTempFile::new().expect("temporary file");
    std::fs::write(whole.path(), &capture).expect("write");

    let from_pipe = child(Stdio::piped(), Some(&capture));
    assert_eq!(from_pipe, "standard input: 20000 frames, 0 problems, size None");
    let from_file = child(File::open(whole.path()).expect("open").into(), None);
    assert_eq!(from_file, "standard input: 20000 frames, 0 problems, size Some(2320024)");
    // As a shell leaves it after `read`: the capture begins where the position is.
    file.seek(std::io::SeekFrom::Start(2)).expect("seek");
    assert_eq!(child(file.into(), None), "standard input: 20000 frames, 0 problems, size None");
    assert_eq!(child(Stdio::null(), None), "standard input: no capture: empty");
    ExitCode::SUCCESS
}

/// What a child says that has this standard input.
fn child(input: Stdio, content: Option<&[u8]>) -> String {
    let program = std::env::current_exe().expect("own path");
    let mut command = Command::new(program);
    let mut child =
        command.env(CHILD, "1").stdin(input).stdout(Stdio::piped()).spawn().expect("run this program again");
    if let (Some(content), Some(mut pipe)) = (content, child.stdin.take()) {
        pipe.write_all(content).expect("pipe");
    }
    let output = child.wait_with_output().expect("output");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn count() -> ExitCode {
    let said = match Capture::stdin() {
        Ok(capture) => {
            let (name, total) = (capture.name().to_owned(), capture.progress().total());
            let (frames, report) = capture.read_parallel(2, |_| 0, |frames, batch| *frames += batch.len());
            let frames: usize = frames.iter().sum();
            format!("{name}: {frames} frames, {} problems, size {total:?}", report.problems.len())
        }
        Err(error) => error.to_string(),
    };
    std::io::stdout().write_all(said.as_bytes()).expect("output");
    ExitCode::SUCCESS
}
