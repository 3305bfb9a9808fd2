//! What the tests of rules ask of a report, and the outputs that several of them are made of.

use host::System;
use rxlane_doctor::finding::{Certainty, Finding, Severity};
use rxlane_doctor::report::Outcome;
use rxlane_doctor::{Case, Report, Traffic, diagnose};
use std::borrow::Cow;
use std::fmt::{Display, Write};

/// What a rule comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    Finding(Severity, Certainty),
    Without(Outcome),
}

pub const HINT: Answer = Answer::Finding(Severity::Info, Certainty::Possible);
pub const CALM: Answer = Answer::Finding(Severity::Info, Certainty::Certain);
pub const MAYBE: Answer = Answer::Finding(Severity::Warning, Certainty::Possible);
pub const LIMITS: Answer = Answer::Finding(Severity::Warning, Certainty::Certain);
pub const MAYBE_GRAVE: Answer = Answer::Finding(Severity::Critical, Certainty::Possible);
pub const GRAVE: Answer = Answer::Finding(Severity::Critical, Certainty::Certain);
pub const CLEAR: Answer = Answer::Without(Outcome::Clear);
pub const LACKS: Answer = Answer::Without(Outcome::InsufficientData);
pub const NOT_HERE: Answer = Answer::Without(Outcome::DoesNotApply);

/// The report on texts that are samples of one machine, and a capture in pcap form.
pub fn reports(texts: &[&str], sample: Option<Vec<u8>>) -> Report {
    let mut reader = host::text::Reader::new();
    for text in texts {
        reader.read("paste", text.as_bytes()).expect("memory");
    }
    let snapshot = reader.finish();
    let traffic = sample.map(|bytes| {
        let open = move || {
            let bytes = std::io::Cursor::new(bytes.clone());
            vec![capture::Capture::from_reader(bytes, "sample.pcap").expect("a capture")]
        };
        Traffic::new(open, None, 4)
    });
    diagnose(&Case::new(&snapshot, traffic.as_ref(), None).expect("profiles"))
}

/// The report on a text.
pub fn report(text: &str) -> Report {
    reports(&[text], None)
}

/// A report, or a text to report on.
pub trait Reported {
    fn report(&self) -> Cow<'_, Report>;
}

impl Reported for &Report {
    fn report(&self) -> Cow<'_, Report> {
        Cow::Borrowed(self)
    }
}

impl Reported for &str {
    fn report(&self) -> Cow<'_, Report> {
        Cow::Owned(report(self))
    }
}

impl Reported for &String {
    fn report(&self) -> Cow<'_, Report> {
        Cow::Owned(report(self))
    }
}

/// All findings of that id.
pub fn found(report: &Report, id: &str) -> Vec<Finding> {
    report.findings.iter().filter(|finding| finding.id == id).cloned().collect()
}

/// The finding of that id, which there is once.
#[track_caller]
pub fn one(reported: impl Reported, id: &str) -> Finding {
    let report = reported.report();
    let mut findings = found(&report, id);
    assert_eq!(findings.len(), 1, "{id}: {:?}", outcome(&*report, id));
    findings.remove(0)
}

/// The finding of that id, which has that weight.
#[track_caller]
pub fn weighed(reported: impl Reported, id: &str, expected: Answer) -> Finding {
    let finding = one(reported, id);
    assert_eq!(weight(&finding), expected, "{finding:#?}");
    finding
}

/// A finding line by line: `on INTERFACE`, its facts, its evidence, `SYSTEM: COMMANDS` (with ` && ` between them) for each
/// system, `rxlane: COMMANDS`, how many remedies there are, and `offers` with the first.
fn lines(finding: &Finding) -> Vec<String> {
    let mut lines = vec![format!("on {}", finding.interface.as_deref().unwrap_or("the machine"))];
    lines.extend(finding.facts.iter().map(|fact| format!("{fact:?}")));
    lines.extend(finding.evidence.iter().map(|evidence| evidence.text.to_string()));
    let all = || {
        finding.remedies.iter().flat_map(|remedy| remedy.commands.iter().map(|one| (remedy.os, one.as_str())))
    };
    for os in [System::Linux, System::FreeBsd, System::NetBsd] {
        let commands = all().filter(|(of, command)| *of == os && !command.starts_with("rxlane "));
        lines.push(format!(
            "{os:?}: {}",
            commands.map(|(_, command)| command).collect::<Vec<_>>().join(" && ")
        ));
    }
    let own = all().map(|(_, command)| command).filter(|command| command.starts_with("rxlane "));
    lines.push(format!("rxlane: {}", own.collect::<Vec<_>>().join(" && ")));
    lines.push(format!("remedies: {}", finding.remedies.len()));
    let first = finding.remedies.first().map(|remedy| format!("{:?} {:?}", remedy.effect, remedy.forecast));
    lines.push(format!("offers {}", first.unwrap_or_default()));
    lines
}

/// That a rule comes to this: a finding with these in its lines (`=` before a whole line, `!` before what no line has), or
/// an outcome without one, which lacks these outputs.
#[track_caller]
pub fn answers(reported: impl Reported, id: &str, expected: Answer, parts: &[&str]) {
    let report = reported.report();
    if let Answer::Without(expected) = expected {
        let (is, lacks) = outcome(&*report, id);
        assert_eq!(is, expected, "{id}: {:#?}", report.findings);
        assert!(parts.is_empty() || lacks == parts, "{id} lacks {lacks:?}, not {parts:?}");
        return;
    }
    let finding = weighed(&*report, id, expected);
    let lines = lines(&finding);
    if parts.iter().any(|part| part.starts_with("=Linux: ")) {
        // They are ones that `--apply` understands.
        commands(&finding, System::Linux);
    }
    for part in parts {
        let is_so = match part.split_at(1) {
            ("=", line) => lines.iter().any(|is| is == line),
            ("!", part) => !lines.iter().any(|is| is.contains(part)),
            _ => lines.iter().any(|is| is.contains(part)),
        };
        assert!(is_so, "{id}: {part}: {lines:#?}");
    }
}

/// The same of several texts.
#[track_caller]
pub fn all_answer(rows: &[(&str, &str, Answer, &[&str])]) {
    rows.iter().for_each(|(text, id, expected, parts)| answers(*text, id, *expected, parts));
}

/// What became of a rule, and what it lacks.
pub fn outcome(reported: impl Reported, id: &str) -> (Outcome, Vec<String>) {
    let report = reported.report();
    let row = report.rules.iter().find(|row| row.id == id).expect(id);
    (row.outcome, row.lacks.clone())
}

pub fn weight(finding: &Finding) -> Answer {
    Answer::Finding(finding.severity, finding.certainty)
}

/// The commands of a finding for an operating system, but for those of rxlane itself. Those for Linux are ones that
/// `--apply` understands, and prints as they stand.
pub fn commands(finding: &Finding, os: System) -> Vec<String> {
    let remedies = finding.remedies.iter().filter(|remedy| remedy.os == os);
    let commands = remedies.flat_map(|remedy| remedy.commands.clone());
    let commands: Vec<String> = commands.filter(|command| !command.starts_with("rxlane ")).collect();
    for command in commands.iter().filter(|_| os == System::Linux) {
        let setting: host::setting::Setting =
            command.parse().unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(setting.to_string(), *command);
    }
    commands
}

/// That a line of the evidence contains this.
#[track_caller]
pub fn quotes(finding: &Finding, part: &str) {
    assert!(finding.evidence.iter().any(|evidence| evidence.text.contains(part)), "{part}: {finding:#?}");
}

/// Whether a fact of the finding is written so, at least in part.
pub fn has_fact(finding: &Finding, part: &str) -> bool {
    format!("{:?}", finding.facts).contains(part)
}

/// That one is.
#[track_caller]
pub fn states(finding: &Finding, part: &str) {
    assert!(has_fact(finding, part), "{part}: {finding:#?}");
}

/// That the first remedy is written so, at least in part.
#[track_caller]
pub fn offers(finding: &Finding, part: &str) {
    let first = finding.remedies.first().map(|remedy| format!("{:?} {:?}", remedy.effect, remedy.forecast));
    assert!(first.is_some_and(|first| first.contains(part)), "{part}: {finding:#?}");
}

/// `ethtool -i`.
pub fn driver(name: &str, driver: &str) -> String {
    format!(
        "$ ethtool -i {name}\ndriver: {driver}\nversion: 6.12.9\nfirmware-version: 1.63\nexpansion-rom-version: \n\
         bus-info: 0000:01:00.0\nsupports-statistics: yes\nsupports-test: yes\nsupports-eeprom-access: yes\n\
         supports-register-dump: yes\nsupports-priv-flags: yes\n"
    )
}

/// The same and the line of `lspci -nn`: a device known by its PCI id.
pub fn device(name: &str, driver_name: &str, id: &str) -> String {
    let description = "Ethernet controller [0200]: Some Corporation Some Network Connection";
    format!("{}$ lspci -nn\n01:00.0 {description} [{id}] (rev 03)\n", driver(name, driver_name))
}

/// `ethtool -S`.
pub fn statistics(name: &str, counters: &[(&str, u64)]) -> String {
    let mut text = format!("$ ethtool -S {name}\nNIC statistics:\n");
    counters.iter().for_each(|(counter, value)| writeln!(text, "     {counter}: {value}").expect("memory"));
    text
}

/// `ethtool -g`.
pub fn rings(name: &str, most: u32, now: u32) -> String {
    format!(
        "$ ethtool -g {name}\nRing parameters for {name}:\nPre-set maximums:\nRX:\t\t{most}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\n\
         TX:\t\t{most}\nCurrent hardware settings:\nRX:\t\t{now}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t{now}\n"
    )
}

/// `/proc/interrupts` of these lines: vector, counts by CPU, name.
pub fn vectors<C: AsRef<[u64]>, N: Display>(lines: impl IntoIterator<Item = (u32, C, N)>) -> String {
    let lines: Vec<_> = lines.into_iter().collect();
    let cpus = lines.first().map_or(0, |(_, counts, _)| counts.as_ref().len());
    let mut text = String::from("$ cat /proc/interrupts\n     ");
    for cpu in 0..cpus {
        write!(text, "{:>11}", format!("CPU{cpu}")).expect("memory");
    }
    text.push('\n');
    for (vector, counts, name) in lines {
        write!(text, "{vector:>4}:").expect("memory");
        for count in counts.as_ref() {
            write!(text, " {count:>10}").expect("memory");
        }
        writeln!(text, "   PCI-MSI-edge      {name}").expect("memory");
    }
    text
}

/// An interface in `ip -d link`.
pub fn link(text: &mut String, name: &str, mtu: u32, kind: &str) {
    let number = text.lines().count() + 2;
    let (layer, most) = match kind {
        "ppp" => ("link/ppp ", 65_535),
        _ => ("link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff", 9216),
    };
    writeln!(
        text,
        "{number}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
         {layer} promiscuity 0 allmulti 0 minmtu 68 maxmtu {most} \n    {kind} addrgenmode eui64 numtxqueues 4 numrxqueues 4 \
         gso_max_size 65536 gso_max_segs 65535"
    )
    .expect("memory");
}

/// `ip -d link` of a device and what stands on it.
pub fn links(interfaces: &[(&str, u32, &str)]) -> String {
    let mut text = "$ uname -sr\nLinux 6.12.9\n$ ip -d -s link\n".to_owned();
    interfaces.iter().for_each(|(name, mtu, kind)| link(&mut text, name, *mtu, kind));
    text
}

/// `ip -d link` with an XDP program on eth0, in iproute2's words (ip/iplink_xdp.c, xdp_dump).
pub fn with_program(text: &str, mode: &str) -> String {
    text.replacen("mtu 1500 qdisc mq", &format!("mtu 1500 {mode} qdisc mq"), 1).replacen(
        "gso_max_segs 65535",
        "gso_max_segs 65535 \n    prog/xdp id 41 name steer tag 3b185187f1855c4c jited",
        1,
    )
}

pub const Q35: &str = "vlan protocol 802.1Q id 35 <REORDER_HDR>";
pub const AD100: &str = "vlan protocol 802.1ad id 100 <REORDER_HDR>";
/// Behind another tag.
pub const Q7: &str = "vlan protocol 802.1Q id 7 <REORDER_HDR>";
