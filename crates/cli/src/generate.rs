//! Man pages and shell completions, from the same definitions as the parser.

mod page;

use crate::output::{CommandResult, Outcome, Output};
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Command, ValueHint};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct CompletionsArguments {
    /// Shell
    shell: clap_complete::Shell,
}

impl CompletionsArguments {
    pub fn run(self, out: &mut Output, command: Command) -> CommandResult {
        let name = command.get_name().to_owned();
        let mut command = without_hidden(with_words(command)?);
        // The generator panics when its writer fails, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        out.write_all(&script)?;
        Ok(Outcome::Success)
    }
}

/// `command` without what its help does not name: arguments by which processes of rxlane call each other. clap takes no argument
/// away, so that those of a command that has some are put together anew.
fn without_hidden(command: Command) -> Command {
    let below: Vec<Command> = command.get_subcommands().cloned().map(without_hidden).collect();
    let has_hidden = command.get_arguments().any(clap::Arg::is_hide_set);
    if !has_hidden {
        return below.into_iter().fold(command, |command, below| {
            let name = below.get_name().to_owned();
            command.mut_subcommand(name, |_| below)
        });
    }
    let visible: Vec<clap::Arg> =
        command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned().collect();
    // The process ends with the script: a few names that are kept until then cost nothing.
    let name: &'static str = command.get_name().to_owned().leak();
    // Arguments that exclude each other name groups.
    let groups: Vec<ArgGroup> = command
        .get_groups()
        .map(|group| {
            let members =
                group.get_args().filter(|member| visible.iter().any(|argument| argument.get_id() == *member));
            ArgGroup::new(group.get_id().clone()).args(members.cloned()).multiple(true)
        })
        .collect();
    let anew = Command::new(name).args(visible).groups(groups).subcommands(below);
    match command.get_about() {
        Some(about) => anew.about(about.clone()),
        None => anew,
    }
}

/// `command` with the words that a shell can offer where the parser takes more than these: names of devices
/// besides paths, single words besides lists.
fn with_words(command: Command) -> Result<Command, nic::FileError> {
    let nics: Vec<&str> = nic::builtin()?.iter().map(nic::Profile::device).collect();
    let kinds: Vec<&str> = nic::spread::WORDS.iter().map(|(word, _)| *word).collect();
    let scenarios: Vec<&str> = traffic::NAMED.iter().map(|named| named.name).collect();
    let command = command
        .mut_subcommand("nics", |nics_command| {
            nics_command
                .mut_arg("names", |names| names.value_parser(PossibleValuesParser::new(&nics)))
                .mut_arg("can", |can| can.value_parser(PossibleValuesParser::new(kinds)))
        })
        .mut_subcommand("explain", |explain| {
            explain
                .mut_arg("nic", |nic| nic.value_parser(PossibleValuesParser::new(&nics)))
                .mut_arg("files", |files| files.value_hint(ValueHint::FilePath))
                .mut_arg("reta", |reta| reta.value_hint(ValueHint::FilePath))
                .mut_arg("html", |html| html.value_hint(ValueHint::FilePath))
        })
        .mut_subcommand("gen", |generate| {
            generate
                .mut_arg("scenario", |scenario| scenario.value_parser(PossibleValuesParser::new(&scenarios)))
                .mut_arg("output", |output| output.value_hint(ValueHint::FilePath))
        })
        .mut_subcommand("bench", |bench| {
            let bench = bench.mut_subcommand("send", |send| {
                send.mut_arg("scenario", |scenario| {
                    scenario.value_parser(PossibleValuesParser::new(&scenarios))
                })
                .mut_arg("capture", |capture| capture.value_hint(ValueHint::FilePath))
            });
            let bench =
                ["vlan", "steer", "pps", "pppoe", "forward"].into_iter().fold(bench, |bench, scenario| {
                    bench.mut_subcommand(scenario, |scenario| {
                        scenario.mut_arg("html", |html| html.value_hint(ValueHint::FilePath))
                    })
                });
            bench.mut_subcommand("compare", |compare| {
                compare
                    .mut_arg("before", |before| before.value_hint(ValueHint::FilePath))
                    .mut_arg("after", |after| after.value_hint(ValueHint::FilePath))
            })
        })
        .mut_subcommand("demo", |demo| demo.mut_arg("directory", |path| path.value_hint(ValueHint::DirPath)))
        .mut_subcommand("man", |man| man.mut_arg("directory", |path| path.value_hint(ValueHint::DirPath)))
        .mut_subcommand("rss", |rss| {
            rss.mut_subcommand("hash", |hash| {
                hash.mut_arg("nic", |nic| nic.value_parser(PossibleValuesParser::new(&nics)))
                    .mut_arg("reta", |reta| reta.value_hint(ValueHint::FilePath))
            })
        });
    Ok(command)
}

#[derive(clap::Args)]
pub struct ManArguments {
    /// Directory for one page a command; made when it is not there
    directory: PathBuf,
}

impl ManArguments {
    pub fn run(self, out: &mut Output, command: Command) -> CommandResult {
        let directory = &self.directory;
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let version = command.get_version().unwrap_or_default().to_owned();
        write_pages(&command, &version, directory)?;
        writeln!(out, "The pages are in {}.", directory.display())?;
        Ok(Outcome::Success)
    }
}

fn write_pages(command: &Command, version: &str, directory: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = directory.join(format!("{name}.1"));
    let text = page::render(command, version)?;
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let mut visible = command.get_subcommands().filter(|below| !below.is_hide_set());
    visible.try_for_each(|below| write_pages(below, version, directory))
}
