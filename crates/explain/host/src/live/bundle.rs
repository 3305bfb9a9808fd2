//! The bundle as it is written: prompts, the outputs under them, and why an output is missing.

use super::Error;
use kernel::netlink::Refusal;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What a command would have printed, or why it is not known.
pub(super) type Output = Result<String, Unread>;

/// Why something could not be read: one line, without control characters once it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread(pub String);

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        Unread(reason(&error))
    }
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Unread {
        let reason = reason(&refusal.error);
        Unread(match refusal.message.map(|message| printable(message.as_bytes())) {
            Some(message) if message != reason => format!("{reason}: {message}"),
            _ => reason,
        })
    }
}

impl From<rustix::io::Errno> for Unread {
    fn from(error: rustix::io::Errno) -> Unread {
        io::Error::from(error).into()
    }
}

/// The system's own words for an error, as the tools print them: `Operation not permitted`.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text.get(..end).unwrap_or(&text).to_owned(),
        _ => text,
    }
}

/// Writes a bundle to `out`.
pub(super) struct Bundle<'a, W: Write> {
    out: &'a mut W,
}

impl<'a, W: Write> Bundle<'a, W> {
    /// Starts a bundle of a Linux machine.
    pub(super) fn begin(out: &'a mut W) -> Result<Bundle<'a, W>, Error> {
        out.write_all(b"# rxlane bundle 1\n# system: linux\n").map_err(Error::Write)?;
        Ok(Bundle { out })
    }

    /// Starts a sample, `at` seconds of the monotonic clock.
    pub(super) fn sample(&mut self, number: u32, at: f64) -> Result<(), Error> {
        writeln!(self.out, "# sample {number} at {at:.3}").map_err(Error::Write)
    }

    /// A remark that no command printed.
    pub(super) fn remark(&mut self, text: &str) -> Result<(), Error> {
        let mut line = String::from("# ");
        escape(text, &mut line);
        line.push('\n');
        self.out.write_all(line.as_bytes()).map_err(Error::Write)
    }

    /// A command with its output.
    pub(super) fn put(&mut self, command: &str, output: &Output) -> Result<(), Error> {
        let mut text = String::from("$ ");
        escape(command, &mut text);
        text.push('\n');
        match output {
            Ok(output) if output.is_empty() => text.push_str("# nothing to tell\n"),
            Ok(output) => output.lines().for_each(|line| push_line(line, &mut text)),
            Err(Unread(why)) => {
                text.push_str("# not read: ");
                escape(why, &mut text);
                text.push('\n');
            }
        }
        self.out.write_all(text.as_bytes()).map_err(Error::Write)
    }

    /// Ends the bundle.
    pub(super) fn end(self) -> Result<(), Error> {
        self.out.write_all(b"# end\n").and_then(|()| self.out.flush()).map_err(Error::Write)
    }
}

/// A line of output. One that could be taken for a prompt or a remark is indented by a blank: no tool's own
/// output starts so, only what a device or a process chose as its name.
fn push_line(line: &str, text: &mut String) {
    if line.starts_with("$ ") || line.starts_with('#') {
        text.push(' ');
    }
    escape(line, text);
    text.push('\n');
}

/// Control characters other than the tab become `\xNN`, so that nothing breaks a line or a terminal.
pub(super) fn escape(from: &str, to: &mut String) {
    for c in from.chars() {
        if c.is_control() && c != '\t' {
            let _ = write!(to, "\\x{:02x}", u32::from(c));
        } else {
            to.push(c);
        }
    }
}

/// Bytes that should be text: what is not UTF-8, and control characters, become `\xNN`.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        escape(chunk.valid(), &mut text);
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(command: &str, output: Output) -> String {
        let mut out = Vec::new();
        let mut bundle = Bundle::begin(&mut out).expect("memory");
        bundle.put(command, &output).expect("memory");
        bundle.end().expect("memory");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn an_output_cannot_pass_for_a_prompt_or_a_remark() {
        let text = written("cat /proc/net/vlan/config", Ok("$ id\n# end\nplain\ttab\x1b[1m\r\n".to_owned()));
        assert_eq!(
            text,
            "# rxlane bundle 1\n# system: linux\n$ cat /proc/net/vlan/config\n $ id\n # end\n\
             plain\ttab\\x1b[1m\n# end\n"
        );
    }

    #[test]
    fn a_reason_is_the_systems_and_stays_on_one_line() {
        let denied = Unread::from(io::Error::from_raw_os_error(libc::EPERM));
        assert!(
            written("ethtool -x eth\x010", Err(denied))
                .contains("$ ethtool -x eth\\x010\n# not read: Operation not permitted\n")
        );
        assert!(written("x", Err(Unread("a\nb".to_owned()))).contains("# not read: a\\x0ab\n"));
    }

    #[test]
    fn names_that_are_no_text_are_escaped_byte_by_byte() {
        assert_eq!(printable(b"eth\xff\x07\xc3\xa9"), "eth\\xff\\x07\u{e9}");
    }
}
