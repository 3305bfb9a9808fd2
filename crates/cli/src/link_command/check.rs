//! `rxlane link check`.

use super::parent::{Envelope, nested};
use super::{BAD, BOLD, GOOD, LineArguments, POOR, StateArguments, item};
use crate::output::{CommandResult, Lacks, Outcome, Output};
use anyhow::anyhow;
use doctor::Case;
use format::{printable, quoted};
use host::{Interface, Snapshot};
use link::frame_size::{longest_mtu, needed_mtu, on_the_line};
use link::framing::Framing;
use link::running::{find_parent, usual_mtu};
use nic::{Receiver, Setup, schema};
use serde::Serialize;
use service::Kind;
use std::io;
use std::time::Duration;
use steer::observation::{Observation, observe};
use wire::IpVersion;
use wire::emit::Encapsulation;
use wire::ethernet::MacAddress;

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 frames pass, 1 they do not, or nobody knows, 2 wrong usage, 3 the machine cannot be read.\n\n\
Examples:\n  \
rxlane link check eth0 --vlan 35\n  \
rxlane link check eth0 --encap ad:100,q:200,pppoe:7@02:00:5e:00:00:01 --mtu 1500")]
pub struct CheckArguments {
    #[command(flatten)]
    line: LineArguments,
    /// Print JSON (schema rxlane.link-check/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Yes,
    No,
    Unknown,
    /// Worth knowing, and no answer.
    Note,
}

#[derive(Debug, Serialize)]
pub struct Fact {
    pub about: &'static str,
    pub answer: Answer,
    pub text: String,
}

/// Schema `rxlane.link-check/1`: fields are added, never renamed.
#[derive(Debug, Serialize)]
struct Check {
    schema: &'static str,
    parent: String,
    encapsulation: String,
    /// Longest IP packet, bytes.
    mtu: u32,
    /// The frame around it on the line, FCS included.
    frame: u32,
    parent_mtu: u32,
    needed_parent_mtu: u32,
    /// The longest packet that the parent's MTU lets out.
    longest_mtu: u32,
    driver: Option<String>,
    profile: Option<String>,
    answer: Answer,
    facts: Vec<Fact>,
}

/// Bytes of a MAC header, and of an FCS.
const MAC_HEADER: u32 = 14;
const FCS: u32 = 4;
/// The MTU for which profiles state what a device lets in.
const USUAL_MTU: u32 = 1500;

/// Driver of TUN and TAP devices.
const TUN_DRIVER: &str = "tun";

struct Line {
    parent: kernel::netlink::Link,
    encapsulation: Encapsulation,
    /// Longest IP packet, bytes.
    mtu: u32,
    envelope: Option<Envelope>,
}

impl CheckArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let encapsulation = self.line.encapsulation()?;
        let parent = find_parent(self.line.parent())?;
        Framing::new(&encapsulation, parent.mac.unwrap_or_default()).map_err(|error| anyhow!("{error}"))?;
        let name = self.line.parent().parse().map_err(|error| anyhow!("{error}"))?;
        let Observation { snapshot, .. } =
            observe(&name, Duration::ZERO, &mut |_| ()).map_err(|error| Lacks(error.to_string()))?;
        let mtu = self.line.mtu.unwrap_or_else(|| usual_mtu(parent.mtu, &encapsulation));
        let (envelope, unsure) = Envelope::of(&parent.name, &self.state.records());
        let mut stands: Vec<Fact> = unsure.into_iter().collect();
        // Nobody but a link asks for further tags, and every link with tags is a TAP device.
        let driver = snapshot.interface(&parent.name).and_then(driver_of);
        if driver.as_deref() == Some(TUN_DRIVER) {
            let sockets = self.state.instances(Kind::Link)?;
            stands.extend(nested(&parent, &encapsulation, &sockets));
        }
        let line = Line { parent, encapsulation, mtu, envelope };
        let check = check(line, stands, &snapshot)?;
        out.show(self.json, &check, print)?;
        Ok(if check.answer == Answer::Yes { Outcome::Success } else { Outcome::Negative })
    }
}

/// `stands`: what was found to stand in the way, or may.
fn check(line: Line, stands: Vec<Fact>, snapshot: &Snapshot) -> anyhow::Result<Check> {
    let case = Case::new(snapshot, None, None)?;
    let Line { parent, encapsulation, mtu, envelope } = &line;
    let (mtu, needed) = (*mtu, needed_mtu(*mtu, encapsulation));
    let interface = snapshot.interface(&parent.name);
    let device = device(&case, interface, parent.mtu, encapsulation, mtu);
    let mut facts = vec![sending(&line), device.fact];
    facts.extend(envelope.as_ref().map(|envelope| envelope.receiving(&parent.name, mtu, needed)));
    facts.extend(stands);
    if !parent.works() {
        let text = format!("{} is down or has no carrier", parent.name);
        facts.push(Fact { about: "line", answer: Answer::Note, text });
    }
    facts.extend(interface.map(|interface| filtering(interface, encapsulation)).into_iter().flatten());
    let is = |answer| facts.iter().any(|fact| fact.answer == answer);
    let answer = match (is(Answer::No), is(Answer::Unknown)) {
        (true, _) => Answer::No,
        (false, true) => Answer::Unknown,
        (false, false) => Answer::Yes,
    };
    Ok(Check {
        schema: "rxlane.link-check/1",
        parent: parent.name.clone(),
        encapsulation: encapsulation.to_string(),
        mtu,
        frame: on_the_line(mtu, encapsulation),
        parent_mtu: parent.mtu,
        needed_parent_mtu: needed,
        longest_mtu: longest_mtu(parent.mtu, encapsulation),
        driver: device.driver,
        profile: device.profile,
        answer,
        facts,
    })
}

fn driver_of(interface: &Interface) -> Option<String> {
    interface.driver.as_ref().map(|driver| driver.value.clone())
}

fn sending(line: &Line) -> Fact {
    let Line { parent, encapsulation, mtu, envelope } = line;
    let (needed, most) = (needed_mtu(*mtu, encapsulation), longest_mtu(parent.mtu, encapsulation));
    let (name, has) = (&parent.name, parent.mtu);
    let (answer, text) = if needed <= has {
        (Answer::Yes, format!("packets of {mtu} bytes need an MTU of {needed}, and {name} has {has}"))
    } else {
        let way_out = match envelope {
            Some(envelope) => envelope.way_out(name, needed),
            None => {
                format!("`ip link set {quoted_name} mtu {needed}` makes room", quoted_name = quoted(name))
            }
        };
        let text = format!(
            "packets of {mtu} bytes need an MTU of {needed}, and {name} has {has}, enough for {most}: {way_out} where the \
             device allows it"
        );
        (Answer::No, text)
    };
    Fact { about: "sending", answer, text }
}

struct Device {
    driver: Option<String>,
    profile: Option<String>,
    fact: Fact,
}

fn device(
    case: &Case<'_>,
    interface: Option<&Interface>,
    parent_mtu: u32,
    encapsulation: &Encapsulation,
    mtu: u32,
) -> Device {
    let driver = interface.and_then(driver_of);
    let profiles = interface.map_or(Vec::new(), |interface| case.profiles(interface));
    let profile = match profiles.as_slice() {
        [one] => Some(one.name().to_owned()),
        _ => None,
    };
    let mut limits = profiles.iter().map(|profile| {
        let receiver = Receiver::new((*profile).clone(), &Setup::default()).ok()?;
        longest(&receiver, encapsulation)
    });
    let first = limits.next().flatten();
    let limit = first.filter(|first| limits.all(|other| other == Some(*first)));
    let frame = mtu + encapsulation.length() as u32;
    let whole = frame + FCS;
    let accepted = |why: String| (Answer::Yes, format!("frames of {whole} bytes with FCS are let in: {why}"));
    let (answer, text) = match limit {
        _ if frame <= parent_mtu + MAC_HEADER => {
            accepted(format!("they are no longer than untagged ones of its MTU {parent_mtu}"))
        }
        Some(limit) if frame <= limit => accepted(format!("its driver takes {} at MTU 1500", limit + FCS)),
        Some(limit) if parent_mtu <= USUAL_MTU => {
            let text = format!(
                "frames of {whole} bytes with FCS are dropped in the device, which takes {} at MTU {parent_mtu}{}",
                limit + FCS,
                follows(&profiles)
            );
            (Answer::No, text)
        }
        Some(limit) => {
            let text = format!(
                "the device takes frames of {} bytes with FCS at MTU 1500, and these have {whole}; nothing is known for \
                 MTU {parent_mtu}{}",
                limit + FCS,
                follows(&profiles)
            );
            (Answer::Unknown, text)
        }
        None => {
            let of = driver.as_ref().map_or("this device".to_owned(), |driver| format!("driver {driver}"));
            (
                Answer::Unknown,
                format!("what {of} makes of frames of {whole} bytes with FCS is not known here"),
            )
        }
    };
    Device { driver, profile, fact: Fact { about: "receiving", answer, text } }
}

fn follows(profiles: &[&nic::Profile]) -> String {
    match profiles.first().and_then(|profile| profile.text(schema::FRAME_FOLLOWS)) {
        Some(what) => format!(" (the limit follows {what})"),
        None => String::new(),
    }
}

/// The longest frame with this encapsulation that a device lets in, without FCS.
fn longest(receiver: &Receiver, encapsulation: &Encapsulation) -> Option<u32> {
    let mut frame = [0; 128];
    let address = MacAddress::default();
    let length = encapsulation.emit(address, address, IpVersion::V4, 0, &mut frame).ok()?;
    let frame = frame.get(..length)?;
    receiver.disposition(&wire::dissect(wire::Link::Ethernet, frame, frame.len())).longest
}

fn filtering(interface: &Interface, encapsulation: &Encapsulation) -> Vec<Fact> {
    if encapsulation.tags().is_empty() {
        return Vec::new();
    }
    let is_on = |name: &str| interface.features.get(name).map(|seen| seen.get().on);
    let note = |about, text: &str| Fact { about, answer: Answer::Note, text: text.to_owned() };
    let filter = match is_on("rx-vlan-filter") {
        Some(true) => {
            "the device filters VLANs; `link up` makes the parent promiscuous, which most drivers take as no filter"
        }
        Some(false) => "the device does not filter VLANs; the parent is promiscuous all the same",
        None => "whether the device filters VLANs is not known; `link up` makes the parent promiscuous",
    };
    let strip = match is_on("rx-vlan-offload") {
        Some(true) => "the device takes the outermost tag off; `link up` puts it back",
        Some(false) => "the device leaves tags in frames",
        None => "whether the device takes tags off is not known; `link up` puts back what is off",
    };
    vec![note("vlan filter", filter), note("vlan tags", strip)]
}

fn print(out: &mut Output, check: &Check) -> io::Result<()> {
    let Check { parent, encapsulation, mtu, frame, .. } = check;
    let (style, says) = match check.answer {
        Answer::Yes => (GOOD, "pass"),
        Answer::No => (BAD, "do not pass"),
        Answer::Unknown | Answer::Note => (POOR, "may or may not pass"),
    };
    let title = out.styled(BOLD, format!("{} over {}", printable(encapsulation), printable(parent)));
    let says = out.styled(style, says);
    let headline = format!("{title}: packets of {mtu} bytes, frames of {frame} with FCS, {says}.");
    out.paragraph("", &headline)?;
    for fact in &check.facts {
        let mark = match fact.answer {
            Answer::Yes => out.styled(GOOD, "yes: "),
            Answer::No => out.styled(BAD, "no: "),
            Answer::Unknown => out.styled(POOR, "unknown: "),
            Answer::Note => String::new(),
        };
        item(out, fact.about, &format!("{mark}{}", printable(&fact.text)))?;
    }
    Ok(())
}
