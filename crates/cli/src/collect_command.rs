//! `rxlane collect`: what this machine says of its receive path, as one text; and the script that does the same
//! on machines without rxlane.

#[cfg(target_os = "linux")]
mod issue;

#[cfg(target_os = "linux")]
use crate::arguments::StateArguments;
use crate::arguments::seconds;
use crate::output::{CommandResult, Outcome, Output, complain};
use crate::output_file::OutputFile;
use anyhow::bail;
use format::quoted;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane collect -o bundle.txt
  rxlane collect enp1s0 --seconds 10 | rxlane doctor --from -
  rxlane collect --script | ssh router 'sh -s' >bundle.txt
  rxlane collect --script -o collector.sh
  rxlane collect --issue -o issue.md

A bundle is text: commands and what they print, for `rxlane doctor --from`. Addresses (MAC, IPv4, IPv6), host
name, keys, and arguments and owners of processes are left out. Read it all the same before you post it.

The script takes the same: sh collector.sh [-s SECONDS] [INTERFACE]... >bundle.txt")]
pub struct CollectArguments {
    /// Interfaces to read, and what is below them [default: all]
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,

    /// Time between the two samples of counters, seconds; 0 takes one sample
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value = "3", value_parser = seconds(0.0, 9999.0))]
    seconds: Duration,

    /// File to write, not overwritten if it is there; '-' is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Overwrite FILE
    #[arg(long, requires = "output")]
    force: bool,

    /// Leave RSS hash keys in; who knows the key can aim all traffic at one queue
    #[arg(long)]
    with_hash_key: bool,

    /// Print the collector for machines without rxlane: POSIX sh, for Linux, FreeBSD and NetBSD
    #[arg(long, conflicts_with_all = ["interfaces", "seconds", "with_hash_key"])]
    script: bool,

    /// Write an issue in Markdown: questions to answer, what the doctor says, and the bundle
    #[arg(long, conflicts_with_all = ["script", "with_hash_key"])]
    issue: bool,
}

/// Below the first line of a bundle. No line of it begins like a command.
#[cfg(target_os = "linux")]
const NOTE: &str = "\
# What this machine says of its network interfaces' receive path, for: rxlane doctor --from FILE
# Left out: MAC, IPv4 and IPv6 addresses, keys that were not asked for, arguments and owners of processes,
# log lines that are not about a network interface.
# Please read it before you post it: nobody knows better what on this machine is private.
";

impl CollectArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let file = Some(self.output.as_path()).filter(|path| path.as_os_str() != "-");
        if let Some(path) = file {
            // Before the seconds of sampling, not after.
            drop(self.place(path)?);
        }
        let text = if self.script { host::collector::SCRIPT.to_owned() } else { self.bundle()? };
        match file {
            Some(path) => {
                self.place(path)?.write(&text)?;
                complain(&self.written(path, &text));
            }
            None => out.write_all(text.as_bytes())?,
        }
        Ok(Outcome::Success)
    }

    fn written(&self, path: &Path, text: &str) -> String {
        let (name, file) = (path.display(), quoted(&path.to_string_lossy()));
        let size = format::size(text.len() as u64);
        if self.script {
            return format!("wrote {name}, the collector ({size}): `sh {file} >bundle.txt` on the machine");
        }
        if self.issue {
            return format!(
                "wrote {name}, an issue ({size}): answer its questions, and read the rest before you post it"
            );
        }
        let outputs = outputs(text);
        format!(
            "wrote {name}, {outputs} ({size}): read it before you post it; `rxlane doctor --from {file}` judges it"
        )
    }

    /// The file, whose content appears at once and whole.
    fn place(&self, path: &Path) -> anyhow::Result<OutputFile> {
        let name = path.display();
        if path.is_dir() {
            bail!("{name} is a directory; name a file in it");
        }
        if path.is_file() && !self.force {
            bail!("{name} is there already; --force overwrites it");
        }
        OutputFile::create("--output", path, &[])
    }
}

#[cfg(target_os = "linux")]
impl CollectArguments {
    fn bundle(&self) -> anyhow::Result<String> {
        let options = host::live::Options {
            interval: self.seconds,
            interfaces: Some(self.interfaces.clone()).filter(|names| !names.is_empty()),
            with_hash_key: self.with_hash_key,
        };
        let mut line = crate::progress::Progress::new();
        let mut bundle = Vec::new();
        let mut programs = crate::doctor_command::live::OwnPrograms::of(&StateArguments::default());
        let collected = host::live::collect_with(&options, &mut programs, &mut bundle, &mut |progress| {
            line.show(&words(&progress));
        });
        drop(line);
        collected?;
        let bundle = redacted(&String::from_utf8_lossy(&bundle), self.with_hash_key);
        if !self.issue {
            return Ok(bundle);
        }
        let issue = issue::issue(&bundle)?;
        if issue.chars().count() > issue::MOST {
            complain(
                "the issue is longer than GitHub takes: post it without the bundle, and attach that as a file (`rxlane collect -o bundle.txt`)",
            );
        }
        Ok(issue)
    }
}

#[cfg(not(target_os = "linux"))]
impl CollectArguments {
    fn bundle(&self) -> anyhow::Result<String> {
        let reason = "rxlane reads the state of Linux machines only; on FreeBSD and NetBSD the script does: \
                      rxlane collect --script | sh >bundle.txt";
        Err(crate::output::Lacks(reason.to_owned()).into())
    }
}

/// How many outputs a bundle has.
fn outputs(bundle: &str) -> String {
    format::plural(bundle.lines().filter(|line| line.starts_with("$ ")).count() as u64, "output")
}

/// Whatever the reader of the machine left in: a bundle is to be posted. Interface names made of addresses go, which
/// the doctor on this machine needs.
#[cfg(target_os = "linux")]
fn redacted(bundle: &str, with_hash_key: bool) -> String {
    let mut text = String::with_capacity(bundle.len());
    let mut former = "";
    for (number, line) in bundle.lines().enumerate() {
        if with_hash_key && former.trim() == "RSS hash key:" {
            text.push_str(line);
        } else {
            text.push_str(&host::redact::line(line));
        }
        text.push('\n');
        if number == 0 {
            text.push_str(NOTE);
        }
        former = line;
    }
    text
}

#[cfg(target_os = "linux")]
fn words(progress: &host::live::Progress) -> String {
    use host::live::Progress;
    match progress {
        Progress::Sample(number) => format!("counters, sample {number}"),
        Progress::Interface { name, number, of } => format!("settings of {name} ({number} of {of})"),
        Progress::Waiting { left } => format!("second sample in {:.0} s", left.as_secs_f64().ceil()),
        _ => String::new(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_hash_key_is_kept_where_it_is_requested_and_nothing_else_is() {
        let key = "RSS hash key:\n6d:5a:56:da:25:5b:0e:c2\n";
        let rest = "5: enx00005e005301: <UP>\n    link/ether 00:00:5e:00:53:01\n";
        let bundle = format!("# rxlane bundle 1\n{key}{rest}");
        let expected = |key: &str| {
            format!("# rxlane bundle 1\n{NOTE}{key}5: enxhidden301: <UP>\n    link/ether (mac)\n")
        };
        assert_eq!(redacted(&bundle, true), expected(key));
        assert_eq!(redacted(&bundle, false), expected("RSS hash key:\n(hidden)\n"));
    }
}
