//! A machine that is not there: programs of another system, each answering to the arguments it knows.

use rxlane_host::collector;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use testkit::program;

/// Tools of every base system that the script uses as they are.
const TOOLS: [&str; 15] = [
    "[", "awk", "cat", "date", "grep", "head", "ls", "printf", "sed", "sh", "sleep", "sort", "tail", "tr",
    "true",
];

pub struct Machine {
    folder: TempDir,
    temporary: TempDir,
}

impl Machine {
    /// One of the system that `uname -s` names, whose programs answer as in `answers`: prompts (`$ PROGRAM ARGUMENTS`), each
    /// before its output.
    pub fn new(system: &str, release: &str, answers: &str) -> Machine {
        let machine = Machine {
            folder: tempfile::tempdir().expect("a folder"),
            temporary: tempfile::tempdir().expect("a folder"),
        };
        for tool in TOOLS {
            let path = program(tool).expect(tool);
            symlink(path, machine.folder.path().join(tool)).expect("a link");
        }
        let both = format!("{system} {release}");
        machine.program("uname", &[("-s", system), ("-sr", &both), ("-n", "gateway.example.net")]);
        let mut programs: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for answer in answers.strip_prefix("$ ").into_iter().flat_map(|answers| answers.split("\n$ ")) {
            let (command, output) = answer.split_once('\n').expect("an output");
            let (program, arguments) = command.split_once(' ').unwrap_or((command, ""));
            programs.entry(program).or_default().push((arguments, output));
        }
        programs.iter().for_each(|(name, answers)| machine.program(name, answers));
        machine
    }

    /// A program: arguments, output. Every other call fails with a complaint.
    pub fn program(&self, name: &str, answers: &[(&str, &str)]) {
        let cases: String = answers
            .iter()
            .map(|(arguments, output)| {
                format!("'{arguments}') cat <<'END-OF-OUTPUT'\n{}\nEND-OF-OUTPUT\n;;\n", output.trim_end())
            })
            .collect();
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in\n{cases}*) echo \"{name}: $*: unknown\" >&2; exit 1;;\nesac\n"
        );
        let path = self.folder.path().join(name);
        // Never through the link to a tool of the machine that the test runs on, which root could overwrite.
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).expect("its place");
        }
        let mut file = fs::File::create_new(&path).expect("a program");
        file.write_all(text.as_bytes()).expect("a program");
        drop(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The collector on this machine.
    pub fn collector(&self, arguments: &[&str]) -> Command {
        self.collector_under(&["/bin/sh".to_owned()], arguments)
    }

    /// The same under another shell.
    pub fn collector_under(&self, shell: &[String], arguments: &[&str]) -> Command {
        // Otherwise programs of the machine that the test runs on would be found.
        let script = collector::SCRIPT.replace("PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin\n", "");
        let mut command = Command::new(&shell[0]);
        command
            .args(&shell[1..])
            .args(["-c", &script, "collector.sh"])
            .args(arguments)
            .env("PATH", self.folder.path())
            .env("TMPDIR", self.temporary.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs it.
    pub fn collect(&self, arguments: &[&str]) -> Output {
        let output = self.collector(arguments).output().expect("sh");
        let left = fs::read_dir(self.temporary.path()).expect("the folder").count();
        assert_eq!(left, 0, "files were left behind");
        output
    }
}

/// The prompts of a bundle, in order.
pub fn prompts(bundle: &str) -> Vec<&str> {
    bundle.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// What follows a prompt the first time.
pub fn output_of<'a>(bundle: &'a str, command: &str) -> Vec<&'a str> {
    let prompt = format!("$ {command}");
    let mut lines = bundle.lines().skip_while(|line| *line != prompt);
    assert_eq!(lines.next(), Some(prompt.as_str()), "{bundle}");
    lines.take_while(|line| !line.starts_with("$ ") && !is_mark(line)).collect()
}

fn is_mark(line: &str) -> bool {
    line == "# end" || line.starts_with("# sample ")
}
