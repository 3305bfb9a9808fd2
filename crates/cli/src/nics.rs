//! `rxlane nics`: what is known of network cards, with the sources, and which would spread which traffic.

mod json;
mod side_by_side;
mod stack;

use crate::arguments::device::driven_by;
use crate::output::{CommandResult, Outcome, Output};
use anstyle::{AnsiColor, Style};
use format::wrapped;
use json::{answer_json, profiles_json};
use nic::Profile;
use nic::spread::{self, Answer, Traffic, Verdict};
use nic::stacked::{KernelRules, Stack};
use nic::{Citation, Claim, Key, LookupError, Stage, Value, schema};
use rss::HashType;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::io::{self, Write};

#[derive(clap::Args)]
#[command(
    after_help = "A value is yes, no or unknown; what no source says is unknown. Frame sizes are bytes \
without FCS.\nWith --stack alone, kinds of devices are compared over kernels; with names, what is left on these \
devices, and which frames they let in:\n  rxlane nics --stack ad:100,q:200 i210 82599 --kernel 4.7\nExit code: 0; 1 where --can finds no device that would as it is or in a mode that its usual driver \
can turn on; 2 for a name that is none."
)]
pub struct NicsArguments {
    /// A device (i210), its PCI id as lspci -nn prints it (8086:1533), a device in another mode
    /// (i210+double-vlan), a driver (ixgbe) for all its devices, or a profile of your own (./my-nic.toml); several stand side by side.
    /// Without one, all are listed.
    names: Vec<String>,
    /// Which devices would spread such traffic over their queues: words joined by commas out of vlan, qinq,
    /// a tag stack such as 8100.8100, pppoe, mpls, llc, ipv6, udp, options, extensions.
    #[arg(long, value_name = "TRAFFIC")]
    can: Option<Traffic>,
    /// What offloads are left to a stack of VLAN devices, with pppoe at its end or without, and by which rule; which
    /// frames are let in. Outermost tag first: ad:100,q:200 is 802.1ad outside and 802.1Q inside; q:35,pppoe.
    #[arg(long, value_name = "STACK", conflicts_with = "can")]
    stack: Option<Stack>,
    /// The kernel whose rules hold: 3.10, 4.7, or current (6.12).
    #[arg(long, value_name = "KERNEL", requires = "stack", value_parser = stack::kernel)]
    kernel: Option<KernelRules>,
    /// Print everything with its source: all claims, the modes of each device, why it spreads or not.
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON (schema rxlane.nics/1).
    #[arg(long)]
    json: bool,
}

/// The profile of that name, or those of the driver.
fn named(name: &str) -> anyhow::Result<Vec<Profile>> {
    match nic::lookup(name) {
        Err(error @ LookupError::Unknown { .. }) => match driven_by(name)? {
            none if none.is_empty() => Err(error.into()),
            driven => Ok(driven),
        },
        other => Ok(vec![other?]),
    }
}

impl NicsArguments {
    /// Runs the command. Negative: `--can` was given, and no device would by default or in an available mode.
    pub fn run(self, out: &mut Output) -> CommandResult {
        let named = self.names.iter().map(|name| named(name)).collect::<anyhow::Result<Vec<_>>>()?.concat();
        let profiles: Cow<[Profile]> =
            if named.is_empty() { Cow::Borrowed(nic::builtin()?) } else { Cow::Owned(named) };
        if let Some(stack) = &self.stack {
            let named = if self.names.is_empty() { &[] } else { profiles.as_ref() };
            return stack::run(out, stack, self.kernel, named, (self.json, self.verbose));
        }
        if let Some(traffic) = &self.can {
            return self.can(out, &profiles, traffic);
        }
        match profiles.as_ref() {
            all if self.json => out.json(&json!({"schema": "rxlane.nics/1", "nics": profiles_json(all)}))?,
            all if self.names.is_empty() => list(out, all, self.verbose)?,
            [one] if self.verbose => show(out, one)?,
            [one] => summary(out, one)?,
            several => side_by_side::print(out, several, self.keys())?,
        }
        Ok(Outcome::Success)
    }

    fn keys(&self) -> &'static [Key] {
        if self.verbose { schema::KEYS } else { SUMMARY }
    }

    fn can(&self, out: &mut Output, profiles: &[Profile], traffic: &Traffic) -> CommandResult {
        let mut answers: Vec<Answer> =
            profiles.iter().map(|profile| spread::answer(profile, traffic)).collect();
        answers.sort_by_key(|answer| WORDS.iter().position(|word| *word == word_of(answer)));
        if self.json {
            let list: Vec<Json> = answers.iter().map(answer_json).collect();
            let can = json!({"traffic": traffic.to_string(), "answers": list});
            out.json(&json!({"schema": "rxlane.nics/1", "can": can}))?;
        } else {
            paragraph(out, "", &format!("Spread over the receive queues by the device: {traffic}"), HEAD)?;
            writeln!(out)?;
            let with_reasons = self.verbose || !self.names.is_empty();
            print_answers(out, &answers, with_reasons)?;
        }
        let found = answers.iter().any(Answer::is_available);
        Ok(if found { Outcome::Success } else { Outcome::Negative })
    }
}

/// What decides most questions about a NIC.
const SUMMARY: &[Key] = &[
    schema::DRIVERS,
    schema::FRAME_ONE_TAG,
    schema::TAGS_THROUGH,
    schema::PPPOE,
    schema::MPLS,
    schema::KEY_BYTES,
    schema::TYPES_DEFAULT,
    schema::FIELDS_UDP4,
    schema::SELECTION,
    schema::RX_QUEUES,
    schema::TABLE_SIZES,
    schema::UNHASHED_FRAMES,
    schema::RING_DEFAULT,
    schema::RING_MAX,
    schema::ADAPTIVE,
    schema::XDP_NATIVE,
    schema::VLAN_STRIP,
];

const HEAD: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const UNKNOWN: &str = "?";

/// A claim's value as a cell; `?` where unknown.
fn cell(profile: &Profile, key: Key) -> String {
    match profile.claim(key) {
        None | Some(Claim { value: Value::Unknown, .. }) => UNKNOWN.to_owned(),
        Some(claim) => claim.value.display(key).to_string(),
    }
}

fn list(out: &mut Output, profiles: &[Profile], is_verbose: bool) -> io::Result<()> {
    let head = ["name", "driver", "queues", "table", "key", "tags seen", "PPPoE", "UDP", "modes"];
    let columns = if is_verbose { head.len() } else { head.len() - 1 };
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut elsewhere = false;
    for profile in profiles {
        let driver = profile.words(schema::DRIVERS).and_then(|words| words.first());
        let driver =
            driver.map_or(UNKNOWN, |word| word.split_once(':').map_or(word.as_str(), |(_, name)| name));
        let modes: Vec<String> = profile.modes().iter().map(|mode| format!("+{}", mode.name)).collect();
        let udp = match (cell(profile, schema::FIELDS_UDP4), cell(profile, schema::FIELDS_UDP6)) {
            (four, six) if four == six => four,
            (four, six) => format!("{four}/{six}"),
        };
        let mut pppoe = cell(profile, schema::PPPOE);
        if matches!(profile.text(schema::SELECTION), Some("sender" | "host")) {
            pppoe.push('*');
            elsewhere = true;
        }
        rows.push(vec![
            profile.name(),
            driver.to_owned(),
            cell(profile, schema::RX_QUEUES),
            profile
                .ints(schema::TABLE_SIZES)
                .and_then(|sizes| sizes.first())
                .map_or(UNKNOWN.to_owned(), u64::to_string),
            cell(profile, schema::KEY_BYTES),
            tags_seen(profile),
            pppoe,
            udp,
            modes.join(" "),
        ]);
    }
    rows.iter_mut().for_each(|row| row.truncate(columns));
    table(out, &rows)?;
    if !is_verbose {
        let more = "tags seen: TPIDs before IP; UDP: hash fields; ?: unknown. --verbose: legend and modes.";
        return paragraph(out, "", more, QUIET);
    }
    let legend = "queues: receive queues for RSS; table: entries of the indirection table; key: bytes; tags seen: \
                  TPIDs behind which the hash finds IP, ≤2 of them where it sees through so many; UDP: default \
                  hash fields, s and d addresses, f and n ports; ?: unknown. `rxlane nics NAME` shows everything \
                  with its source.";
    writeln!(out)?;
    if elsewhere {
        let mark = "*: headers are seen through, but the queue is chosen by the sending side (veth) or the host \
                    (virtio-net), so whether it spreads is unknown.";
        paragraph(out, "", mark, QUIET)?;
    }
    paragraph(out, "", legend, QUIET)
}

/// The tags seen through in short: `8100`, or of several stacks the TPIDs in them and how many tags at most.
fn tags_seen(profile: &Profile) -> String {
    let Some(stacks) = profile.stacks(schema::TAGS_THROUGH) else { return UNKNOWN.to_owned() };
    let stacks: Vec<String> = stacks.iter().map(ToString::to_string).collect();
    let mut tpids: Vec<&str> = stacks.iter().flat_map(|stack| stack.split('.')).collect();
    tpids.sort_unstable();
    tpids.dedup();
    let most = stacks.iter().map(|stack| stack.split('.').count()).max().unwrap_or_default();
    match stacks.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        _ if most > 1 => format!("≤{most} {}", tpids.join("/")),
        _ => tpids.join("/"),
    }
}

/// Columns as wide as their widest cell; the last one takes what is left and is wrapped. Where too little is
/// left, its cells stand below their rows.
pub fn table(out: &mut Output, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let last = columns.saturating_sub(1);
    let widths: Vec<usize> = (0..last).map(width_of).collect();
    let behind: usize = widths.iter().map(|width| width + 2).sum();
    let needed = rows.iter().filter_map(|row| row.get(last)).flat_map(|cell| cell.split(' '));
    let needed = needed.map(|word| word.chars().count()).max().unwrap_or_default();
    let below = behind + needed > out.width();
    let indent = if below { 4 } else { behind };
    let room = out.width().saturating_sub(indent);
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width + 2 - cell.chars().count()));
        }
        let mut parts = wrapped(row.get(last).map_or("", String::as_str), room);
        if !below {
            line.push_str(&parts.remove(0));
        }
        parts.retain(|part| !part.is_empty());
        let further = parts.iter().map(|part| format!("{:indent$}{part}", ""));
        for text in std::iter::once(line).chain(further) {
            let text = text.trim_end();
            writeln!(out, "{}", if number == 0 { out.styled(HEAD, text) } else { text.to_owned() })?;
        }
    }
    Ok(())
}

/// `text` wrapped behind `lead`, further lines indented as far.
fn paragraph(out: &mut Output, lead: &str, text: &str, style: Style) -> io::Result<()> {
    out.hanging(lead, lead.chars().count(), text, style)
}

const LABEL: usize = 36;

fn summary(out: &mut Output, profile: &Profile) -> io::Result<()> {
    let name = out.styled(HEAD, profile.name());
    writeln!(out, "{name}  {}", profile.title)?;
    for key in SUMMARY {
        label_and_value(out, key.label, &cell(profile, *key))?;
    }
    let modes: Vec<String> = profile.modes().iter().map(|mode| format!("+{}", mode.name)).collect();
    if !modes.is_empty() {
        label_and_value(out, "modes", &modes.join(" "))?;
    }
    let known = schema::KEYS.iter().filter(|key| profile.claim(**key).is_some()).count();
    paragraph(out, "", &format!("?: unknown. --verbose prints all {known} claims with their sources."), QUIET)
}

fn show(out: &mut Output, profile: &Profile) -> io::Result<()> {
    let name = out.styled(HEAD, profile.name());
    writeln!(out, "{name}  {}", profile.title)?;
    if !profile.aliases.is_empty() {
        paragraph(out, "  also     ", &profile.aliases.join(", "), Style::new())?;
    }
    if !profile.pci.is_empty() {
        paragraph(out, "  PCI      ", &profile.pci.join(" "), Style::new())?;
    }
    if let Some(mode) = profile.mode() {
        paragraph(out, "  mode     ", &mode.title, Style::new())?;
        paragraph(out, "  enable   ", &mode.enable, Style::new())?;
    }
    for stage in Stage::all() {
        let keys = schema::KEYS.iter().filter(|key| key.stage == stage);
        let claims: Vec<_> = keys.filter_map(|key| Some((*key, profile.claim(*key)?))).collect();
        let knobs = if stage == Stage::Moderate { &profile.device_options[..] } else { &[] };
        if claims.is_empty() && knobs.is_empty() {
            continue;
        }
        heading(out, stage)?;
        for (key, claim) in claims {
            claim_lines(out, key.label, &claim.value.display(key).to_string(), claim)?;
        }
        for knob in knobs {
            let default =
                knob.default.as_deref().map_or(String::new(), |default| format!("default {default}"));
            label_and_value(out, &knob.name, &default)?;
            for value in &knob.values {
                paragraph(out, &format!("      {:<10} ", value.set), &value.means, Style::new())?;
            }
            remarks(out, knob.note.as_deref(), &knob.citations)?;
        }
    }
    modes(out, profile)?;
    silent(out, profile)?;
    writeln!(out, "\n{}", out.styled(HEAD, "sources"))?;
    for (name, source) in &profile.sources {
        let url = source.url.as_deref().map_or(String::new(), |url| format!(" <{url}>"));
        paragraph(
            out,
            &format!("  {name:<8} "),
            &format!("{} ({}){url}", source.title, source.kind.name()),
            QUIET,
        )?;
    }
    Ok(())
}

fn heading(out: &mut Output, stage: Stage) -> io::Result<()> {
    writeln!(out, "\n{}  {}", out.styled(HEAD, stage), out.styled(QUIET, stage.question()))
}

fn label_and_value(out: &mut Output, label: &str, value: &str) -> io::Result<()> {
    let style = match value {
        "yes" => AnsiColor::Green.on_default(),
        "no" => AnsiColor::Red.on_default(),
        "unknown" => AnsiColor::Yellow.on_default(),
        _ => Style::new(),
    };
    paragraph(out, &format!("  {label:<LABEL$}  "), value, style)
}

fn claim_lines(out: &mut Output, label: &str, value: &str, claim: &Claim) -> io::Result<()> {
    label_and_value(out, label, value)?;
    remarks(out, claim.note.as_deref(), &claim.citations)
}

fn remarks(out: &mut Output, note: Option<&str>, citations: &[Citation]) -> io::Result<()> {
    if let Some(note) = note {
        paragraph(out, "      ", note, Style::new())?;
    }
    let cited: Vec<String> = citations.iter().map(|c| format!("{}: {}", c.source, c.place)).collect();
    paragraph(out, "      ", &cited.join("; "), QUIET)
}

fn modes(out: &mut Output, profile: &Profile) -> io::Result<()> {
    for mode in profile.modes() {
        let name = out.styled(HEAD, format!("{}+{}", profile.device(), mode.name));
        writeln!(out, "\n{name}")?;
        paragraph(out, "  mode     ", &mode.title, Style::new())?;
        paragraph(out, "  enable   ", &mode.enable, Style::new())?;
        remarks(out, None, &mode.citations)?;
        for key in schema::KEYS {
            if let Some(claim) = mode.claim(*key) {
                claim_lines(out, key.label, &claim.value.display(*key).to_string(), claim)?;
            }
        }
    }
    Ok(())
}

/// The keys that the profile does not mention: they are unknown, and the reader should see that they are.
fn silent(out: &mut Output, profile: &Profile) -> io::Result<()> {
    let missing: Vec<&str> =
        schema::KEYS.iter().filter(|key| profile.claim(**key).is_none()).map(|key| key.label).collect();
    if missing.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}  no source says", out.styled(HEAD, "unknown"))?;
    paragraph(out, "  ", &missing.join("; "), Style::new())
}

fn print_answers(out: &mut Output, answers: &[Answer], with_reasons: bool) -> io::Result<()> {
    let of = |word: &'static str| answers.iter().filter(move |answer| word_of(answer) == word);
    if with_reasons {
        let mut rows = vec![["name", "spreads", "why"].map(str::to_owned).to_vec()];
        for answer in answers {
            rows.push(vec![answer.profile.name(), word_of(answer).to_owned(), explanation(answer)]);
        }
        table(out, &rows)?;
    } else {
        for word in WORDS.into_iter().filter(|word| of(word).count() > 0) {
            let names: Vec<String> = of(word).map(|answer| answer.profile.name()).collect();
            paragraph(out, &format!("{word:<11}"), &names.join(" "), Style::new())?;
        }
    }
    let [yes, mode, theory, unknown, no] = WORDS.map(|word| of(word).count());
    writeln!(out)?;
    let why = if with_reasons { "" } else { " --verbose says why." };
    let counts = format!(
        "{yes} would as they are, {mode} in a mode that can be turned on, {theory} in one that no usual driver \
         turns on, {no} would not, of {unknown} it is unknown.{why}"
    );
    paragraph(out, "", &counts, Style::new())
}

/// What is said of devices, the best first.
const WORDS: [&str; 5] = ["yes", "in a mode", "in theory", "unknown", "no"];

fn word_of(answer: &Answer) -> &'static str {
    match (answer.word(), answer.is_available()) {
        ("mode", true) => "in a mode",
        ("mode", false) => "in theory",
        (word, _) => word,
    }
}

fn explanation(answer: &Answer) -> String {
    if !answer.modes.is_empty() {
        let modes = answer.modes.iter().map(|mode| format!("+{}: {}", mode.name, mode.enable));
        return modes.collect::<Vec<_>>().join("; ");
    }
    match &answer.verdict {
        Verdict::Yes(HashType::None) => "hashed; its hash type is not modelled".to_owned(),
        Verdict::Yes(hash_type) if hash_type.has_ports() => format!("hashed as {hash_type}"),
        Verdict::Yes(hash_type) => format!("hashed as {hash_type}: addresses only"),
        Verdict::No(reason) | Verdict::Unknown(reason) => reason.to_string(),
    }
}
