//! Commands at a shell prompt: which tool's output follows, and of which interface.

use super::line::{is_word_of, trim};

/// Programs whose output is read, or which show an output that is.
const PROGRAMS: &str = "ethtool ip cat lscpu vmstat netstat sysctl pciconf ifconfig top ps dmesg uname grep nproc \
     head tail lspci journalctl ls cpuset intrctl pppoectl lsmod modinfo bpftool strings rxlane \
     uci ubus nft fw4 conntrack echo perf systat swconfig";

/// Words before a program that change nothing about its output.
const PREFIXES: [&str; 4] = ["sudo", "doas", "time", "\\"];

/// First letters of the programs that are known without a prompt, and of the prefixes.
const BARE: [[u8; 2]; 13] =
    [*b"et", *b"ca", *b"sy", *b"vm", *b"ne", *b"pc", *b"ls", *b"su", *b"do", *b"ti", *b"uc", *b"nf", *b"co"];

/// Bytes that a prompt may take before its `$` or `#`.
const LONGEST_PROMPT: usize = 80;

/// Whose output a command's is, where the output itself names no interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Target {
    /// It requests no interface.
    #[default]
    None,
    /// That of the interface that the command names.
    Named,
    /// It names an interface in a way that is no interface's name.
    NotUnderstood,
    /// Of one interface, which a variable or another program's arguments name.
    Unknown,
    /// Of several interfaces in turn: a loop, or commands for different ones on one line.
    Several,
}

/// A command that somebody typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Command<'a> {
    /// From the program on.
    pub text: &'a str,
    /// The program without its folder.
    pub program: &'a str,
    /// `-S` for `ethtool --statistics` too; for other programs the first option as typed.
    pub option: Option<&'a str>,
    pub interface: Option<&'a str>,
    /// Whose output it is.
    pub target: Target,
    /// The first file that it names.
    pub path: Option<&'a str>,
}

/// What stands behind pfSense's prompt, `[2.7.2-RELEASE][admin@fw.example.org]/root: `.
fn of_pfsense(line: &str) -> Option<&str> {
    let (head, rest) = line.strip_prefix('[')?.split_once("]/")?;
    head.contains("][").then(|| rest.split_once(": "))?.map(|(_, command)| command)
}

impl<'a> Command<'a> {
    /// The command on a line with a prompt (`$ `, `# `, `% `, `user@host:~$ `), or on one that begins with a
    /// program and an option or file. Behind a `$ ` that the line begins with any program is one: its output is
    /// nobody's, and does not belong to the command before. `None` for anything else.
    pub(crate) fn at_prompt(line: &'a str) -> Option<Command<'a>> {
        let head = line.as_bytes().get(..LONGEST_PROMPT).unwrap_or(line.as_bytes());
        // Looks at every byte, without a branch, so that the compiler does many at once.
        if head.iter().fold(false, |found, byte| found | is_prompt(*byte)) {
            let candidates = head
                .iter()
                .enumerate()
                .filter(|&(at, c)| is_prompt(*c) && (*c != b'%' || !is_share(line, at)))
                .filter_map(|(at, _)| line.get(at + 1..)?.strip_prefix(' '));
            for candidate in candidates {
                if let Some(command) = Command::parse(candidate) {
                    return Some(command);
                }
            }
        }
        if let Some(command) = line.strip_prefix("$ ").and_then(Command::of_any_program) {
            return Some(command);
        }
        if let Some(command) = of_pfsense(line).and_then(Command::parse) {
            return Some(command);
        }
        // Typed without a prompt: only what prose would not begin with.
        let line = trim(line);
        // Most lines of a long text end here.
        let may_be_bare = line.as_bytes().first_chunk().is_some_and(|letters| BARE.contains(letters));
        if !may_be_bare && !line.starts_with(['/', '\\']) {
            return None;
        }
        let command = Command::parse(line)?;
        let is_bare = match command.program {
            "ethtool" => {
                let most = if command.interface.is_some() { 8 } else { 5 };
                let is_query = command.interface.is_some() || command.option.is_some();
                is_query && command.target != Target::None && command.text.split_whitespace().count() <= most
            }
            "cat" => command.path.is_some(),
            "uci" | "nft" | "conntrack" => {
                let first = command.text.split_whitespace().nth(1).unwrap_or_default();
                first.starts_with('-') || matches!(first, "show" | "get" | "list")
            }
            "sysctl" | "vmstat" | "netstat" | "pciconf" | "lscpu" => {
                command.text.split_whitespace().count() <= 4 && !command.text.contains(':')
            }
            _ => false,
        };
        is_bare.then_some(command)
    }

    fn parse(text: &'a str) -> Option<Command<'a>> {
        let mut text = text.trim();
        while let Some(rest) = PREFIXES.iter().find_map(|prefix| {
            text.strip_prefix(prefix).filter(|rest| rest.starts_with(' ') || *prefix == "\\")
        }) {
            text = rest.trim_start();
        }
        if is_loop(text) {
            let is_query = text.split(is_between_words).any(|word| is_word_of(PROGRAMS, word));
            let target = Target::Several;
            return is_query.then_some(Command { text, target, ..Command::default() });
        }
        let first = text.find([';', '|', '>']).and_then(|end| text.get(..end)).unwrap_or(text);
        let words = || first.split_whitespace().take_while(|word| *word != "&&");
        let program = words().next()?;
        let program = program.rsplit('/').next().filter(|name| is_word_of(PROGRAMS, name))?;
        let arguments = || words().skip(1);
        let typed = arguments().find(|word| word.starts_with('-'));
        let path = arguments().find(|word| word.starts_with('/'));
        let option = if program == "ethtool" { arguments().next().and_then(ethtool_option) } else { typed };
        let requested = match program {
            // `ethtool eth0` and nothing else: "ethtool is good" is prose.
            "ethtool" if typed.is_none() && arguments().count() != 1 => return None,
            // It prints nothing, unless the kernel refuses what it writes.
            "echo" if !text.contains("/smp_affinity") => return None,
            // A bundle's first line is "# rxlane bundle 1".
            "rxlane" if !STATUSES.iter().any(|of| is_status(arguments(), of)) => return None,
            "ethtool" => arguments().find(|word| !word.starts_with('-')),
            "ifconfig" => arguments()
                .find(|word| is_interface(word))
                .or_else(|| arguments().next().filter(|word| !word.starts_with('-'))),
            // A name that is one changes nothing: the output has it.
            "ip" => interface_of_ip(arguments()).filter(|word| !is_name(word)),
            "cat" | "head" | "tail" | "grep" | "ls" => path.and_then(interface_of_path),
            _ => None,
        };
        let requested = requested.map(|word| word.trim_matches(['"', '\'']));
        let interface = requested.filter(|word| is_name(word));
        let target = match requested {
            _ if names_another(text, interface) => Target::Several,
            Some(word) if word.contains(['$', '`']) => Target::Unknown,
            Some(word) if word.contains(['*', '?', '[', '{']) => Target::Several,
            Some(_) if interface.is_some() => Target::Named,
            Some(_) => Target::NotUnderstood,
            None => Target::None,
        };
        let interface = interface.filter(|_| target == Target::Named);
        Some(Command { text, program, option, interface, path, target })
    }

    /// A command whose output nobody reads.
    fn of_any_program(text: &'a str) -> Option<Command<'a>> {
        let text = text.trim();
        let program = text.split_whitespace().next()?.trim_end_matches(';');
        let is_program = program.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '/' | '.'))
            && program.bytes().all(|c| c.is_ascii_alphanumeric() || b"/._+-=".contains(&c));
        let is_query = text.split(is_between_words).any(|word| word == "ethtool");
        let target = match is_query {
            _ if is_loop(text) => Target::Several,
            true => Target::Unknown,
            false => Target::None,
        };
        is_program.then_some(Command { text, target, ..Command::default() })
    }

    /// Whether it reads that file, by itself or through `grep`.
    pub fn reads(&self, path: &str) -> bool {
        self.path == Some(path)
    }

    /// Whether one of its bundles of single-letter options (`-ibdn`) has that letter.
    pub(crate) fn has_flag(&self, letter: char) -> bool {
        let words = self.text.split_whitespace().skip(1);
        words
            .take_while(|word| !matches!(*word, "|" | ">" | ";" | "&&"))
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    }

    /// Whether it may print what is no output of its program's own: several commands in a line, several files.
    pub(crate) fn may_print_more(&self) -> bool {
        let is_several = self.text.contains([';', '&', '`']) || self.text.contains("$(");
        let files = || self.text.split_whitespace().filter(|word| word.starts_with('/')).count();
        is_several || (self.path.is_some() && files() > 1)
    }

    /// Whether it is `rxlane OF status`.
    pub(crate) fn prints_status_of(&self, of: &str) -> bool {
        self.program == "rxlane" && is_status(self.text.split_whitespace().skip(1), of)
    }

    /// Whether it is that program with that option.
    pub fn is(&self, program: &str, option: &str) -> bool {
        self.program == program && self.option == Some(option)
    }
}

/// Whether a byte may end a prompt.
fn is_prompt(byte: u8) -> bool {
    matches!(byte, b'$' | b'#' | b'>' | b'%')
}

/// Whether the per cent sign at `at` ends a number, as in the table of `top`, and no prompt.
fn is_share(line: &str, at: usize) -> bool {
    let word = line.get(..at).and_then(|before| before.rsplit(char::is_whitespace).next());
    word.is_some_and(|word| word.parse::<f64>().is_ok())
}

/// Option in its short form. `ethtool eth0` has none.
fn ethtool_option(first: &str) -> Option<&str> {
    let short = match first {
        name if !name.starts_with('-') => return None,
        "--statistics" => "-S",
        "--show-ring" | "--show-rings" => "-g",
        "--show-channels" => "-l",
        "--show-coalesce" => "-c",
        "--show-features" | "--show-offload" => "-k",
        "--driver" => "-i",
        "--show-rxfh-indir" | "--show-rxfh" => "-x",
        "--show-nfc" | "--show-ntuple" | "-u" => "-n",
        short => short,
    };
    Some(short)
}

/// The interface in `ip -d link show dev eth0` and `ip link show eth0`.
fn interface_of_ip<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words.find(|word| matches!(*word, "show" | "list" | "ls" | "dev"))?;
    words.find(|word| *word != "dev").filter(|word| !word.starts_with('-'))
}

/// Commands of rxlane whose `status` is read.
const STATUSES: [&str; 2] = ["steer", "fastpath"];

/// Whether the words behind `rxlane` are for the status of that.
fn is_status<'a>(words: impl Iterator<Item = &'a str>, of: &str) -> bool {
    words.filter(|word| !word.starts_with('-')).take(2).eq([of, "status"])
}

/// Whether the shell runs something more than once: `for`, `while`, `xargs`.
fn is_loop(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_for = match words.next() {
        Some("for") => words.next().is_some_and(|word| word.starts_with("((")) || words.next() == Some("in"),
        Some("while" | "until") => text.contains(';'),
        _ => false,
    };
    is_for
        || text.split(is_between_words).any(|word| matches!(word, "xargs" | "parallel"))
        || [";do", "; do"].iter().any(|start| {
            text.split_once(start).is_some_and(|(_, rest)| rest.starts_with(char::is_whitespace))
        })
}

/// Whether a later command of the line, behind `;`, `&&` or `|`, is ethtool for another interface.
fn names_another(text: &str, interface: Option<&str>) -> bool {
    let mut commands = text.split([';', '&', '|']).skip(1).map(str::split_whitespace);
    commands.any(|mut words| {
        let is_ethtool = words
            .by_ref()
            .find(|word| !PREFIXES.contains(word))
            .is_some_and(|word| word.rsplit('/').next() == Some("ethtool"));
        is_ethtool && words.find(|word| !word.starts_with('-')) != interface
    })
}

/// What stands between the words of a command, its quotes and operators among it.
fn is_between_words(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '|' | '&' | '(' | ')' | '`' | '/' | '$')
}

/// Whether a word in a command, where only an interface's name can stand, is one: `6in4-wan` too.
pub(super) fn is_name(word: &str) -> bool {
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
    word.len() < 16 && is_interface(letters)
}

/// Whether a word can be an interface's name (Linux: 15 characters, no slash or colon; BSDs: fewer).
pub(super) fn is_interface(word: &str) -> bool {
    (1..16).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b'@'))
}

/// The interface in `/sys/class/net/eth0/…` and `/proc/net/vlan/eth0.35`.
fn interface_of_path(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/sys/class/net/").or_else(|| path.strip_prefix("/proc/net/vlan/"))?;
    rest.split('/').next().filter(|name| !matches!(*name, "" | "config"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::SCRIPT;
    use crate::text::{TOOLS, read};

    fn at(line: &str) -> (&str, Option<&str>, Option<&str>) {
        let command = Command::at_prompt(line).expect(line);
        (command.program, command.option, command.interface)
    }

    #[test]
    fn prompts_of_many_shells() {
        let statistics = ("ethtool", Some("-S"), Some("eth0"));
        assert_eq!(at("$ ethtool -S eth0"), statistics);
        assert_eq!(at("# /usr/sbin/ethtool --statistics eth0"), statistics);
        assert_eq!(at("[user@localhost:~]$ sudo ethtool -S eth0 | grep rx_queue"), statistics);
        assert_eq!(at("root@OpenWrt:~# ethtool -S eth0"), statistics);
        assert_eq!(at("ethtool -S eth0"), statistics);
        assert_eq!(at("$ ethtool -n eth0 rx-flow-hash udp4"), ("ethtool", Some("-n"), Some("eth0")));
        assert_eq!(at("$ ethtool eth0"), ("ethtool", None, Some("eth0")));
        assert_eq!(at("me% sysctl net.isr"), ("sysctl", None, None));
        assert_eq!(at("uci show firewall"), ("uci", None, None));
        assert_eq!(at("nft list flowtables").0, "nft");
        assert_eq!(at("conntrack -L").0, "conntrack");
    }

    #[test]
    fn files_name_interfaces() {
        let command =
            Command::at_prompt("$ cat /sys/class/net/eth0/queues/rx-0/rps_cpus").expect("a command");
        assert_eq!((command.interface, command.path.is_some()), (Some("eth0"), true));
        assert!(
            Command::at_prompt("$ cat /proc/interrupts | grep enp4s0").expect("it").reads("/proc/interrupts")
        );
        assert!(Command::at_prompt("$ grep eth0 /proc/interrupts").expect("it").reads("/proc/interrupts"));
    }

    /// Every command that the script asks for, with names in the place of its variables.
    fn prompts_of_the_script() -> Vec<String> {
        let script = SCRIPT.replace("\\\n", " ");
        let statements = script.lines().flat_map(|line| line.split(['{', ';'])).map(|statement| {
            let words = statement.trim().trim_end_matches('}').trim_start_matches("then ");
            words.trim_start_matches("else ").trim_start_matches("do ").trim()
        });
        let values = [
            ("$net/$1/$file", "/sys/class/net/eth0/speed"),
            ("$path", "/sys/class/net/eth0/queues/rx-0/rps_cpus"),
            ("$folder", "/sys/class/net/eth0/device/msi_irqs"),
            ("$interface", "eth0"),
            ("$vector", "264"),
            ("$tree", "dev.igb.0"),
            ("$flow", "udp4"),
            ("$1", "eth0"),
        ];
        let prompts = statements.filter_map(|statement| {
            let command = match statement.split_once(' ')? {
                ("ask", command) => command.to_owned(),
                ("ask_file", file) => format!("cat {file}"),
                ("keep", rest) => rest.split_once(' ')?.1.to_owned(),
                ("printf", text) => text.strip_prefix("'$ ")?.split_once("\\n'")?.0.to_owned(),
                _ => return None,
            };
            let command = command.replace('"', "").split_whitespace().collect::<Vec<_>>().join(" ");
            // The functions that print what they are given.
            (!command.contains("$@") && !command.contains('%') || command.contains("pcpu")).then_some(command)
        });
        prompts
            .map(|prompt| values.iter().fold(prompt, |text, (name, value)| text.replace(name, value)))
            .collect()
    }

    /// A command of a collector opens the section of its tool, or is one of those that nobody reads; it never falls
    /// into the output before.
    #[track_caller]
    fn check_command(prompt: &str) {
        // The kernel log's lines are read wherever they stand; sysctl says what netstat -q does.
        const NOT_READ: [&str; 5] = ["ethtool", "dmesg", "intrctl list", "vmstat -e", "netstat -q"];
        let command = Command::at_prompt(prompt).unwrap_or_else(|| panic!("{prompt} is no prompt"));
        let is_read = TOOLS.iter().any(|tool| (tool.command)(&command));
        assert!(is_read || NOT_READ.contains(&command.text), "{prompt} is neither read nor known not to be");
        let text = format!(
            "$ ethtool -g eth9\nRing parameters for eth9:\nCurrent hardware settings:\nRX:\t\t256\n{prompt}\nRX:\t\t512\n"
        );
        let snapshot = read(&text);
        let rings = &snapshot.interface("eth9").expect("eth9").rings;
        assert_eq!(rings.rx.current.as_ref().map(|ring| *ring.get()), Some(256), "{prompt}");
    }

    #[test]
    fn commands_of_the_script_are_recognised() {
        let prompts = prompts_of_the_script();
        assert!(prompts.len() > 50, "{prompts:?}");
        for prompt in prompts {
            assert!(!prompt.contains('$'), "{prompt}: a variable that this test does not know");
            check_command(&format!("$ {prompt}"));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_live_machine_is_queried_for_is_recognised() {
        let mut bundle = Vec::new();
        crate::live::collect(&Default::default(), &mut bundle, &mut |_| ()).expect("this machine");
        let bundle = String::from_utf8(bundle).expect("UTF-8");
        let prompts = bundle.lines().filter(|line| line.starts_with("$ "));
        assert!(prompts.clone().count() > 10, "{bundle}");
        prompts.for_each(check_command);
    }

    #[test]
    fn any_program_behind_a_prompt_ends_the_output_before() {
        for line in ["$ tc -s qdisc show dev eth0", "$ ./measure.sh", "$ ethtool", "$ lsmod | grep pppoe"] {
            assert!(Command::at_prompt(line).is_some(), "{line}");
        }
        for line in ["$ 5 a month", "$ (mac)", "$", "$  ", "costs $ five"] {
            assert_eq!(Command::at_prompt(line), None, "{line}");
        }
    }

    #[test]
    fn prose_and_output_are_no_commands() {
        for line in [
            "it is said that # ethtool is good",
            "ethtool is a program",
            "cat sat on the mat",
            "     rx_queue_0_packets: 1",
            "TSO # of segments: 12",
            "top of the morning",
            "conntrack table full",
            "nft is what I use",
            "",
        ] {
            assert_eq!(Command::at_prompt(line), None, "{line}");
        }
        assert_eq!(Command::at_prompt("ethtool is a program that shows what a driver can do"), None);
    }
}
