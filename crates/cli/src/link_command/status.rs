//! `rxlane link status`.

use super::{BAD, BOLD, GOOD, POOR, StateArguments, item};
use crate::arguments::{responses, seconds};
use crate::output::{CommandResult, Outcome, Output};
use format::quoted;
use format::{bit_rate, plural, printable, thousands};
use link::status::{Identity, Status};
use link::{Counted, Dropped, Traffic};
use serde_json::{Value, json};
use service::control::ControlError;
use service::{Instances, Kind};
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

/// Schema of the answer: fields are added, never renamed.
const SCHEMA: &str = "rxlane.link/1";

/// Schema of a link at its end, with the same fields.
pub const DOWN: &str = "rxlane.link-down/1";

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 there is such a link (without NAME: or none at all), 1 there is none, its process was killed, or does \
not answer, 3 it requires root.")]
pub struct StatusArguments {
    /// Name of the link [default: all of this network namespace].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Time over which rates are taken, seconds; 0 for none.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value = "1", value_parser = seconds(0.0, 3600.0))]
    interval: Duration,
    /// Print JSON (schema rxlane.link/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// What a second brings one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    frames: f64,
    bits: f64,
}

pub type Rates = (Rate, Rate);

impl StatusArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let sockets = self.state.instances(Kind::Link)?;
        match &self.name {
            Some(name) => self.one(out, &sockets, name),
            None => self.all(out, &sockets),
        }
    }

    fn one(&self, out: &mut Output, sockets: &Instances, name: &str) -> CommandResult {
        let (status, rates) = self.sample(sockets, name)?;
        if self.json {
            out.json(&document(SCHEMA, &status, rates))?;
        } else {
            print(out, &status, rates)?;
        }
        Ok(Outcome::Success)
    }

    fn all(&self, out: &mut Output, sockets: &Instances) -> CommandResult {
        let (links, is_silent) = responses(sockets, |name| self.sample(sockets, name), |_| {})?;
        if self.json {
            let links: Vec<Value> =
                links.iter().map(|(status, rates)| document(SCHEMA, status, *rates)).collect();
            out.json(&json!({"schema": SCHEMA, "links": links}))?;
        } else if links.is_empty() && !is_silent {
            writeln!(out, "There is no link in this network namespace.")?;
        }
        if !self.json {
            for (status, rates) in &links {
                print(out, status, *rates)?;
            }
        }
        Ok(if is_silent { Outcome::Negative } else { Outcome::Success })
    }

    /// A status, and the rates from one to the next.
    fn sample(&self, sockets: &Instances, name: &str) -> Result<(Status, Option<Rates>), ControlError> {
        let first = sockets.ask::<Status>(name, "status")?;
        if self.interval.is_zero() {
            return Ok((first, None));
        }
        thread::sleep(self.interval);
        let second = sockets.ask::<Status>(name, "status")?;
        let rates = rates(&first, &second);
        Ok((second, rates))
    }
}

fn rates(first: &Status, second: &Status) -> Option<Rates> {
    let seconds = second.seconds - first.seconds;
    // Another process has the name now, or no time has passed.
    if first.identity.pid != second.identity.pid || seconds <= 0.0 {
        return None;
    }
    let rate = |way: fn(&Counted) -> Traffic| {
        let (before, now) = (way(&first.counted), way(&second.counted));
        let per_second = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        Rate {
            frames: per_second(before.frames, now.frames),
            bits: per_second(before.bytes, now.bytes) * 8.0,
        }
    };
    Some((rate(|counted| counted.received), rate(|counted| counted.sent)))
}

/// A link by a schema: its status, with rates, drops as a list, and the frames of a delivery.
pub fn document(schema: &str, status: &Status, rates: Option<Rates>) -> Value {
    let way = |traffic: Traffic, rate: Option<Rate>| {
        json!({
            "frames": traffic.frames,
            "octets": traffic.bytes,
            "frames_per_second": rate.map(|rate| rate.frames),
            "bits_per_second": rate.map(|rate| rate.bits),
        })
    };
    let counted = &status.counted;
    let drops = counted.drops.iter().map(|(reason, frames)| json!({"reason": reason, "frames": frames}));
    let mut document = json!(status);
    document["schema"] = schema.into();
    document["received"] = way(counted.received, rates.map(|rates| rates.0));
    document["sent"] = way(counted.sent, rates.map(|rates| rates.1));
    document["drops"] = drops.collect();
    document["frames_per_delivery"] = json!(per(counted.delivered, counted.deliveries));
    document
}

fn print(out: &mut Output, status: &Status, rates: Option<Rates>) -> io::Result<()> {
    let identity = &status.identity;
    let age = format!("for {:.0} s, process {}", status.seconds, identity.pid);
    let state = match (status.interface_up, status.parent_works) {
        (Some(false), _) => out.styled(BAD, "down"),
        (_, false) => out.styled(BAD, "no carrier"),
        (_, true) => out.styled(GOOD, "up"),
    };
    let name = out.styled(BOLD, &identity.name);
    writeln!(out, "{name}: {state} over {}, {age}", printable(&identity.parent))?;
    line(out, status)?;
    counted(out, status, rates)
}

pub fn line(out: &mut Output, status: &Status) -> io::Result<()> {
    let identity = &status.identity;
    let present = printable(status.present_name.as_ref().unwrap_or(&identity.name));
    if present != identity.name {
        item(
            out,
            "name",
            &format!("{present} now; `rxlane link` knows it by the first one, {}", identity.name),
        )?;
    }
    let form = match identity.interface.as_str() {
        "tun" => "IP packets (TUN)",
        _ => "Ethernet frames (TAP)",
    };
    item(out, "encapsulation", &printable(&identity.encapsulation))?;
    item(out, "interface", &format!("{form}, data path {}", path_of(identity)))?;
    if !identity.offloads.is_empty() {
        item(out, "offloads", &printable(&identity.offloads.join(", ")))?;
    }
    let parent = printable(&identity.parent);
    item(out, "mtu", &format!("{} bytes; that of {parent} is {}", identity.mtu, status.parent_mtu))?;
    if !identity.addresses.is_empty() {
        item(out, "addresses", &identity.addresses.join(", "))?;
    }
    if identity.mss_clamp {
        item(out, "tcp", "the maximum segment size is lowered to what fits the MTU")?;
    }
    notes(out, status, &present)
}

/// What is not as it should be.
fn notes(out: &mut Output, status: &Status, present: &str) -> io::Result<()> {
    let identity = &status.identity;
    let parent = printable(&identity.parent);
    let needed = identity.needed_parent_mtu;
    let notes = [
        (
            status.interface_up == Some(false),
            "interface",
            format!("it was set down: `ip link set {} up`", quoted(present)),
        ),
        (
            status.counted.drops.contains_key(Dropped::XdpFrame.word()),
            "interface",
            "frames are longer than its XDP sockets have room for, since MTUs were raised when it was up: end it and bring it \
             up again, or without `--io af-xdp`"
                .to_owned(),
        ),
        (
            status.parent_mtu < needed,
            "parent",
            format!("packets of {} bytes need an MTU of {needed} of {parent}", identity.mtu),
        ),
        (!status.parent_works, "parent", format!("{parent} is down or has no carrier")),
    ];
    let mark = out.styled(POOR, "note");
    notes
        .iter()
        .filter(|(applies, ..)| *applies)
        .try_for_each(|(_, name, text)| item(out, name, &format!("{mark}: {text}")))
}

fn path_of(identity: &Identity) -> String {
    let path = printable(&identity.datapath);
    if identity.datapath == "simple" {
        return path;
    }
    format!("{path}, {}, {}", printable(&identity.io), plural(identity.workers as u64, "worker"))
}

pub fn counted(out: &mut Output, status: &Status, rates: Option<Rates>) -> io::Result<()> {
    let way = |traffic: Traffic, rate: Option<Rate>| {
        let rate = rate.map_or(String::new(), |rate| {
            format!("; {}/s, {}", thousands(rate.frames.round() as u64), bit_rate(rate.bits))
        });
        let frames = plural(traffic.frames, "frame");
        format!("{frames}, {}{rate}", plural(traffic.bytes, "byte"))
    };
    let counted = &status.counted;
    item(out, "received", &way(counted.received, rates.map(|rates| rates.0)))?;
    item(out, "sent", &way(counted.sent, rates.map(|rates| rates.1)))?;
    if counted.super_packets > 0 {
        let number = plural(counted.super_packets, "super-packet");
        item(out, "segmented", &format!("{number} to send"))?;
    }
    if let Some(factor) = per(counted.delivered, counted.deliveries).filter(|factor| *factor > 1.0) {
        let number = plural(counted.deliveries, "packet");
        item(out, "coalesced", &format!("{number} received, of {factor:.1} frames each"))?;
    }
    if counted.segments > 0 {
        item(out, "super-packets", &format!("taken apart into {}", plural(counted.segments, "segment")))?;
    }
    if status.identity.mss_clamp {
        item(out, "mss", &format!("lowered in {}", plural(counted.mss_clamped, "segment")))?;
    }
    let mut drops: Vec<(&str, u64)> =
        counted.drops.iter().map(|(reason, frames)| (reason.as_str(), *frames)).collect();
    drops.extend(status.interface_full.filter(|lost| *lost > 0).map(|lost| ("interface-full", lost)));
    drops.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
    if drops.is_empty() {
        return item(out, "dropped", "nothing");
    }
    for (place, (reason, frames)) in drops.into_iter().enumerate() {
        let name = if place == 0 { "dropped" } else { "" };
        item(out, name, &format!("{:>12}  {}", thousands(frames), printable(reason)))?;
    }
    Ok(())
}

/// How many of these come to one of those; `None`: there are none.
fn per(these: u64, those: u64) -> Option<f64> {
    (those > 0).then(|| these as f64 / those as f64)
}
