//! Reads whatever text people paste: outputs of many tools in any order, with or without prompts, of several
//! interfaces, several samples, half a table. One pass, line by line.
//!
//! A line goes, in this order, to: the bundle's own comments; a shell prompt with a command that is known
//! (module `command`), which opens the section of its output; the section that is open; a heading that opens
//! another one; the kernel log, whose lines stand anywhere. What nobody takes is prose.
//!
//! To add a tool: write a module with a `TOOL` and its section, and put it into the list `TOOLS`.

mod command;
mod conntrack;
mod cpu_capacity;
mod cpu_list;
mod cpuset;
mod ethtool;
pub(crate) mod ethtool_flow_hash;
mod ethtool_reta;
mod ethtool_settings;
mod fastpath_status;
mod freebsd_devices;
mod freebsd_nics;
mod ifconfig;
mod ifconfig_linux;
mod ip_link;
mod join;
mod kept;
mod kernel_log;
pub(crate) mod line;
mod link_message;
mod lscpu;
mod lspci;
mod mpstat;
mod nameless;
mod netstat_i;
mod netstat_m;
mod netstat_q;
mod nft;
mod nft_json;
mod nft_rule;
mod on_chip;
mod openwrt;
mod pciconf;
mod perf;
mod pppoe_driver;
mod proc_interrupts;
mod proc_net;
pub(crate) mod proc_softnet;
mod proc_stat;
mod ps;
mod refusal;
mod rxlane_json;
mod statistics;
mod steer_status;
mod sysctl;
mod sysctl_machine;
mod sysfs;
mod systat;
mod top;
pub(crate) mod uci;
mod uname;
mod vector_name;
mod vmstat_i;

use crate::interface;
use crate::{Fact, Load, Quote, Snapshot, System};
use command::{Command, Target};
use line::{Context, Line};
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a line that are looked at; `/proc/interrupts` of 4,096 CPUs fits.
const LONGEST_LINE: u64 = 64 * 1024;

/// What became of a line that was offered to a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It belongs to the output, and was read.
    Taken,
    /// It says nothing, or something else may open with it; the output may go on after it.
    Skipped,
    /// The output ended before it.
    Over,
}

/// The output of one tool, while it is being read.
trait Section {
    /// Takes a line, the heading that opened the section among them.
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome;

    /// Called once when another line ended the output, for what only its whole shows.
    fn end(&mut self, _snapshot: &mut Snapshot) {}

    /// Called instead where the text ended first, so that it is unknown whether the output was complete.
    fn cut(&mut self, snapshot: &mut Snapshot) {
        self.end(snapshot);
    }

    /// Whether it goes on with the output of another command of the same tool, as `cat` of the next file is.
    fn resume(&mut self, _context: &Context) -> bool {
        false
    }

    /// The tool whose output it turned out to be, where the heading did not show it.
    fn name(&self) -> Option<&'static str> {
        None
    }
}

/// An output whose lines each make sense alone.
impl<F: FnMut(&Line<'_>, &mut Snapshot) -> Outcome> Section for F {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        self(line, snapshot)
    }
}

/// A tool whose output can be read.
struct Tool {
    /// The command as people write it, `ethtool -S`.
    name: &'static str,
    /// Whether this command prints such output.
    command: fn(&Command<'_>) -> bool,
    /// Whether this line, without the blanks around it, opens such output where no command was seen. It must not
    /// be a line that prose or another tool could contain.
    heading: fn(&str) -> bool,
    /// A section in its initial state.
    open: fn(&Context) -> Box<dyn Section>,
}

/// Every tool, in the order in which headings are tried.
static TOOLS: &[&Tool] = &[
    &ethtool::RINGS,
    &ethtool::CHANNELS,
    &ethtool::COALESCE,
    &ethtool::DRIVER,
    &ethtool::FEATURES,
    &ethtool_flow_hash::TOOL,
    &ethtool_settings::TOOL,
    &ethtool_reta::TOOL,
    &ip_link::TOOL,
    &proc_interrupts::TOOL,
    &proc_interrupts::SOFTIRQS,
    &proc_softnet::TOOL,
    &proc_stat::TOOL,
    &proc_net::PPPOE,
    &proc_net::VLAN,
    &proc_net::DEV,
    &pppoe_driver::KALLSYMS,
    &pppoe_driver::BTF,
    &sysfs::TOOL,
    &lspci::TOOL,
    &lscpu::TOOL,
    &lscpu::NPROC,
    &lscpu::CPUINFO,
    &cpu_capacity::TOOL,
    &cpu_capacity::TABLE,
    &openwrt::RELEASE,
    &openwrt::BOARD,
    &openwrt::GREETING,
    &openwrt::SWITCH,
    &uname::TOOL,
    &uname::UPTIME,
    &vmstat_i::TOOL,
    &cpuset::TOOL,
    &netstat_q::TOOL,
    &netstat_m::TOOL,
    &netstat_i::TOOL,
    &sysctl::TOOL,
    &pciconf::TOOL,
    &ifconfig::TOOL,
    &ifconfig_linux::TOOL,
    &systat::TOOL,
    &top::TOOL,
    &mpstat::TITLE,
    &mpstat::TOOL,
    &ps::TOOL,
    &perf::TOOL,
    &steer_status::TOOL,
    &fastpath_status::TOOL,
    &uci::TOOL,
    &nft::TOOL,
    &nft_json::TOOL,
    &conntrack::TOOL,
    &statistics::TOOL,
];

/// The output that is being read.
struct Open {
    tool: &'static Tool,
    section: Box<dyn Section>,
    /// Whether the snapshot says that the tool was read.
    is_recorded: bool,
    /// Whether the last command cannot have printed it.
    is_stray: bool,
}

impl Open {
    fn new(tool: &'static Tool, context: &Context) -> Open {
        Open { tool, section: (tool.open)(context), is_recorded: false, is_stray: false }
    }

    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let line = &if self.is_stray { Line { command: None, ..*line } } else { *line };
        let outcome = self.section.line(line, snapshot);
        if outcome == Outcome::Taken && !self.is_recorded {
            self.is_recorded = true;
            note_read(snapshot, self.section.name().unwrap_or(self.tool.name), line);
        }
        outcome
    }
}

/// Reads texts into a [`Snapshot`].
#[derive(Default)]
pub struct Reader {
    snapshot: Snapshot,
    context: Context,
    open: Option<Open>,
    /// What the last command said instead of its output, while nothing else of it was read.
    refusal: Option<String>,
    /// Whether a line of the last command's output was read.
    is_answered: bool,
    /// The tools whose output the last command prints, and no other's; empty where it may print anything.
    printed: Vec<&'static Tool>,
    /// What the kernel log said.
    log: kernel_log::KernelLog,
    /// When the first and the latest sample were taken, seconds.
    samples: Option<(f64, f64)>,
}

impl Reader {
    /// Bytes of one text that are read: a bundle of a large router has some megabytes.
    pub const LONGEST: u64 = 256 << 20;
    /// Lines of one text that are read; more would take minutes, and are no outputs of one machine.
    pub const LINES: u64 = 2_000_000;

    /// A reader that has read nothing.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Reads `text` to its end, or the first [`Reader::LONGEST`] bytes or [`Reader::LINES`] of it, which the snapshot then says of `name`,
    /// what findings call it. What was read before stays: the same counter in a second text is its second sample.
    /// Errors: those of `text`; what came before one is kept.
    pub fn read(&mut self, name: &str, text: impl BufRead) -> io::Result<()> {
        self.read_at_most(Reader::LONGEST, name, text)
    }

    fn read_at_most(&mut self, most: u64, name: &str, text: impl BufRead) -> io::Result<()> {
        let source: Arc<str> = name.into();
        self.log.forget();
        self.printed.clear();
        let (kept, rounds) = (Arc::clone(&self.context.kept), self.context.rounds + 1);
        self.context = Context { kept, rounds, ..Context::default() };
        let mut text = text.take(most);
        let result = self.lines(&source, &mut text);
        self.cut();
        let longer = match &result {
            _ if text.limit() == 0 => Some(format!("{} MiB", most >> 20)),
            Ok(false) => Some(format!("{} million lines", Reader::LINES / 1_000_000)),
            _ => None,
        };
        if let Some(longer) = longer {
            self.snapshot
                .note_unread(name, &format!("it is longer than {longer}, and what follows was not read"));
        }
        result.map(drop)
    }

    /// Whether there are no more.
    fn lines(&mut self, source: &Arc<str>, text: &mut impl BufRead) -> io::Result<bool> {
        let mut bytes = Vec::new();
        for number in 1..=Reader::LINES {
            bytes.clear();
            if text.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(true);
            }
            if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LONGEST_LINE {
                skip_line(text)?;
            }
            match std::str::from_utf8(&bytes) {
                Ok(text) => self.line(source, number, text),
                Err(_) => self.line(source, number, &String::from_utf8_lossy(&bytes)),
            }
        }
        Ok(false)
    }

    /// What all texts said together.
    pub fn finish(mut self) -> Snapshot {
        self.cut();
        let uptimes = self.context.kept().uptimes;
        self.snapshot.interval = self
            .samples
            .or(uptimes)
            .and_then(|(first, latest)| Duration::try_from_secs_f64(latest - first).ok())
            .filter(|interval| !interval.is_zero());
        nameless::give(&mut self.snapshot, &mut self.context.kept());
        join::join(&mut self.snapshot, &self.context.kept());
        self.snapshot
    }

    fn line(&mut self, source: &Arc<str>, number: u64, text: &str) {
        let text = line::unquoted(text);
        if self.bundle_comment(source, number, text) {
            return;
        }
        if let Some(command) = Command::at_prompt(text) {
            self.context.prompt = Some(Quote::new(source, number, None, text));
            // The name that OpenWrt gives a machine until somebody changes it.
            if text.trim_start().starts_with("root@OpenWrt:") {
                openwrt::infer(&mut self.snapshot, &Quote::new(source, number, None, text));
            }
            self.command(&command);
            return;
        }
        let command = self.context.command.clone();
        let kept = Arc::clone(&self.context.kept);
        let line = Line { text, source, number, command: command.as_ref(), kept: &kept };
        let outcome = match &mut self.open {
            Some(open) => open.line(&line, &mut self.snapshot),
            None => Outcome::Over,
        };
        if outcome == Outcome::Taken {
            self.is_answered = true;
            return;
        }
        if outcome == Outcome::Over {
            self.close();
        }
        if self.heading(&line) {
            return;
        }
        let command = line.command.filter(|_| self.printed.is_empty());
        self.log.line(&Line { command, ..line }, &mut self.snapshot);
        if !self.is_answered && line.command.is_some() && self.refusal.is_none() {
            self.refusal = refusal::reason(line.trimmed()).map(str::to_owned);
        }
    }

    /// Opens the section that this line is the heading of, if it is one.
    fn heading(&mut self, line: &Line<'_>) -> bool {
        let text = line.trimmed();
        let Some(tool) = TOOLS.iter().find(|tool| (tool.heading)(text)) else { return false };
        self.close();
        let mut open = Open::new(tool, &self.context);
        open.is_stray = self.cannot_print(tool);
        let outcome = open.line(line, &mut self.snapshot);
        if outcome == Outcome::Over {
            return false;
        }
        self.is_answered = true;
        self.open = Some(open);
        true
    }

    /// Whether the last command prints the output of other tools alone: what people paste behind it without a
    /// prompt is not its output.
    fn cannot_print(&self, tool: &'static Tool) -> bool {
        !self.printed.is_empty() && !self.printed.iter().any(|printed| std::ptr::eq(*printed, tool))
    }

    fn command(&mut self, command: &Command<'_>) {
        let tool = TOOLS.iter().find(|tool| (tool.command)(command));
        let same = self.open.take_if(|open| tool.is_some_and(|tool| std::ptr::eq(*tool, open.tool)));
        self.refuse();
        if same.is_none() {
            self.close();
        }
        self.context.command = Some(command.text.into());
        self.printed.clear();
        if !command.may_print_more() {
            self.printed.extend(TOOLS.iter().filter(|tool| (tool.command)(command)));
        }
        self.context.prompts += 1;
        self.set_target(command);
        self.context.path = command.path.map(str::to_owned);
        self.open = same;
        if self.open.as_mut().is_some_and(|open| open.section.resume(&self.context)) {
            return;
        }
        self.close();
        self.open = tool.map(|tool| Open::new(tool, &self.context));
    }

    /// Notes whose the output of a command is that does not say so itself. It is never that of the interface
    /// before where the command asks for another one.
    fn set_target(&mut self, command: &Command<'_>) {
        let context = &mut self.context;
        context.requested = None;
        if command.target == Target::None {
            return;
        }
        context.is_several = command.target == Target::Several;
        context.is_unknown = matches!(command.target, Target::Several | Target::Unknown);
        context.interface = match command.target {
            Target::Unknown => None,
            _ => Some(command.interface.unwrap_or(interface::NOBODY).to_owned()),
        };
        context.requested = Some(context.interface().to_owned());
        if command.target == Target::NotUnderstood {
            self.snapshot.note_unread(command.text, "interface name not understood");
        }
    }

    fn close(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.section.end(&mut self.snapshot);
        }
    }

    /// Ends what is open, since the text ended.
    fn cut(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.section.cut(&mut self.snapshot);
        }
        self.refuse();
    }

    /// Notes that the last command printed nothing but an error, where that is so.
    fn refuse(&mut self) {
        let refusal = self.refusal.take().filter(|_| !self.is_answered);
        if let (Some(why), Some(what)) = (refusal, &self.context.command) {
            self.snapshot.note_unread(what, &why);
        }
        self.is_answered = false;
    }

    /// `# sample 2 at 17.5`, `# system: linux`, `# not read: …` and `# nothing to tell` of a bundle. Other comments look
    /// like a root prompt and are left to it.
    fn bundle_comment(&mut self, source: &Arc<str>, number: u64, text: &str) -> bool {
        let Some(comment) = text.strip_prefix("# ") else { return false };
        if let Some(why) = comment.strip_prefix("not read: ") {
            if let Some(what) = &self.context.command {
                self.snapshot.note_unread(what, why);
            }
            return true;
        }
        if comment.trim_end() == "nothing to tell" {
            // Of the log alone, which has no section of its own, silence is an answer.
            if self.context.command.as_deref() == Some("dmesg") {
                let read = &mut self.snapshot.read;
                read.entry("dmesg".to_owned()).or_insert_with(|| Quote::new(source, number, None, text));
            }
            return true;
        }
        if let Some(name) = comment.strip_prefix("system: ") {
            if let Some(system) = System::named(name.trim()) {
                self.snapshot.system = Some(Fact::new(system, Quote::new(source, number, None, text)));
            }
            return true;
        }
        let Some((_, at)) = comment.strip_prefix("sample ").and_then(|rest| rest.split_once(" at ")) else {
            return false;
        };
        let Some(at) = at.split_whitespace().next().and_then(|at| at.parse::<f64>().ok()) else {
            return false;
        };
        let first = self.samples.map_or(at, |(first, _)| first);
        self.samples = Some((first, at));
        self.context.rounds += 1;
        self.close();
        self.refuse();
        true
    }
}

/// Notes the load of a CPU.
fn note_load(cpu: u32, load: Fact<Load>, snapshot: &mut Snapshot) {
    let known = &mut snapshot.cpus.load;
    if known.len() < Snapshot::CPUS || known.contains_key(&cpu) {
        known.insert(cpu, load);
    } else {
        snapshot.omitted += 1;
    }
}

fn note_read(snapshot: &mut Snapshot, tool: &str, line: &Line<'_>) {
    if !snapshot.read.contains_key(tool) {
        snapshot.read.insert(tool.to_owned(), line.quote());
    }
}

/// Reads on to the end of the line without keeping it.
fn skip_line(text: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        text.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
pub(crate) fn read(text: &str) -> Snapshot {
    let mut reader = Reader::new();
    reader.read("paste", text.as_bytes()).expect("memory");
    reader.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_end_is_cut_and_says_so() {
        let endless = "$ nproc\n4\n".as_bytes().chain(io::repeat(b'x'));
        let mut reader = Reader::new();
        reader.read_at_most(1 << 20, "endless", io::BufReader::new(endless)).expect("memory");
        let snapshot = reader.finish();
        assert_eq!(snapshot.cpu_count(), Some(4));
        let [unread] = &snapshot.unread[..] else { panic!("{:?}", snapshot.unread) };
        assert_eq!(unread.what, "endless");
        assert_eq!(unread.why, "it is longer than 1 MiB, and what follows was not read");
    }
}
