//! `rxlane pppoe status`.

use super::{BOLD, GOOD, POOR, StateArguments, item};
use crate::output::{CommandResult, Outcome, Output, complain};
use client::status::{SCHEMA, SessionStatus};
use concentrator::{ConcentratorStatus, XdpStatus};
use format::quoted;
use format::{duration, plural, printable, thousands};
use serde_json::{Value, json};
use service::Kind;
use service::control::ControlError;
use std::io::{self, Write};

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 the session is open (without IFNAME: whatever there is), 1 it is not open, there is none, its process was killed, or \
does not answer, 3 it requires root.")]
pub struct StatusArguments {
    /// Interface of the session [default: all of this network namespace, and the interfaces that are served].
    #[arg(value_name = "IFNAME")]
    name: Option<String>,
    /// Print JSON (schema rxlane.pppoe/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl StatusArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match &self.name {
            Some(name) => self.one(out, name),
            None => self.all(out),
        }
    }

    fn one(&self, out: &mut Output, name: &str) -> CommandResult {
        let answer = self
            .state
            .instances(Kind::Session)
            .and_then(|sockets| sockets.ask::<SessionStatus>(name, "status"));
        let status = match answer {
            Ok(status) => status,
            Err(error) => {
                if let Some(served) = self.state.served_by(&error, name) {
                    complain(&format!(
                        "{name} is no client's session: {served} is served here, and `rxlane pppoe sessions {quoted_served}` shows \
                         the subscribers",
                        quoted_served = quoted(&served)
                    ));
                    return Ok(Outcome::Negative);
                }
                if matches!(error, ControlError::Killed { .. }) {
                    self.state.put_back();
                }
                return Err(error.into());
            }
        };
        out.show(self.json, &status, print)?;
        Ok(if status.phase == "open" { Outcome::Success } else { Outcome::Negative })
    }

    fn all(&self, out: &mut Output) -> CommandResult {
        let (clients, silent_client) = self.state.all::<SessionStatus>(Kind::Session)?;
        let (concentrators, silent_concentrator) =
            self.state.all::<ConcentratorStatus>(Kind::Concentrator)?;
        let is_silent = silent_client || silent_concentrator;
        if self.json {
            let served: Vec<Value> = concentrators.iter().map(brief).collect();
            out.json(&json!({"schema": SCHEMA, "clients": clients, "concentrators": served}))?;
        } else if clients.is_empty() && concentrators.is_empty() && !is_silent {
            writeln!(
                out,
                "There is no PPPoE session in this network namespace, and no interface is served."
            )?;
        } else {
            clients.iter().try_for_each(|status| print(out, status))?;
            concentrators.iter().try_for_each(|status| print_concentrator(out, status))?;
        }
        Ok(if is_silent { Outcome::Negative } else { Outcome::Success })
    }
}

/// What is said of a concentrator next to others: `sessions` says more.
fn brief(status: &ConcentratorStatus) -> Value {
    json!({
        "parent": status.parent,
        "interface": status.interface,
        "uptime": status.uptime,
        "draining": status.draining,
        "count": status.count,
        "half_open": status.half_open,
        "frames_lost": status.frames_lost,
        "records_lost": status.records_lost,
        "log_failure": status.log_failure,
        "xdp": status.xdp,
        "parent_works": status.parent_works,
        "pid": status.pid,
    })
}

fn print_concentrator(out: &mut Output, status: &ConcentratorStatus) -> io::Result<()> {
    let title = if status.draining {
        out.styled(POOR, "served, takes no more sessions")
    } else {
        out.styled(GOOD, "served")
    };
    let name = out.styled(BOLD, printable(&status.parent));
    writeln!(out, "{name}: {title}")?;
    if status.parent_works == Some(false) {
        item(out, "carrier", &format!("{} is down, or its cable has no carrier", printable(&status.parent)))?;
    }
    item(out, "sessions", &thousands(status.count as u64))?;
    item(out, "interface", &status.interface)?;
    item(out, "served for", &duration(status.uptime))?;
    status.xdp.as_ref().map_or(Ok(()), |xdp| forwarded(out, xdp))?;
    lost(out, status.frames_lost)?;
    unwritten(status).try_for_each(|text| item(out, "full disk", &text))?;
    item(out, "process", &status.pid.to_string())
}

/// What programs in XDP do.
pub fn forwarded(out: &mut Output, xdp: &XdpStatus) -> io::Result<()> {
    let state = match &xdp.paused {
        Some(why) => format!("forwards nothing for now: {}", printable(why)),
        None => format!("{} mode, uplinks {}", xdp.mode, printable(&xdp.uplinks.join(", "))),
    };
    item(out, "XDP", &state)?;
    for (name, way) in [("… from them", &xdp.received), ("… to them", &xdp.sent)] {
        let passed: Vec<String> =
            way.passed.iter().map(|(why, count)| format!("{why} {}", thousands(*count))).collect();
        let passed =
            if passed.is_empty() { String::new() } else { format!("; not forwarded: {}", passed.join(", ")) };
        let over = if way.over_rate > 0 {
            format!(", {} over their rate", thousands(way.over_rate))
        } else {
            String::new()
        };
        item(out, name, &format!("{} forwarded{over}{passed}", plural(way.packets, "packet")))?;
    }
    Ok(())
}

pub fn print(out: &mut Output, status: &SessionStatus) -> io::Result<()> {
    let parent = printable(&status.parent);
    let has_no_line = status.parent_works == Some(false);
    let title = match (status.phase.as_str(), status.next_try) {
        ("open", _) if is_useless(status) => out.styled(POOR, "open, but without addresses"),
        ("open", _) => out.styled(GOOD, "open"),
        ("closed", None) if has_no_line => out.styled(POOR, format!("waiting for a carrier on {parent}")),
        (_, Some(_)) => out.styled(POOR, "waiting for the next try"),
        ("discovery", _) => out.styled(POOR, "looking for a concentrator"),
        ("lcp", _) => out.styled(POOR, "negotiating the link (LCP)"),
        ("auth", _) => out.styled(POOR, "authenticating"),
        ("network", _) => out.styled(POOR, "negotiating addresses (IPCP, IPV6CP)"),
        _ => out.styled(POOR, "closed"),
    };
    let name = out.styled(BOLD, &status.interface);
    writeln!(out, "{name} over {parent}: {title}")?;
    line(out, status)?;
    routes(out, status)?;
    times(out, status)?;
    if has_no_line {
        let until = if status.phase == "closed" { "; the next try is when it is up" } else { "" };
        item(out, "carrier", &format!("{parent} is down, or its cable has no carrier{until}"))?;
    }
    if let Some(error) = &status.last_error {
        let ago = status.last_error_ago.map(|seconds| format!("{} ago", duration(seconds)));
        let before = (status.phase == "open").then(|| "before this session".to_owned());
        let lead: Vec<String> = ago.into_iter().chain(before).collect();
        let lead = if lead.is_empty() { String::new() } else { format!("{}: ", lead.join(", ")) };
        item(out, "last error", &format!("{lead}{error}"))?;
    }
    traffic(out, status)
}

/// Whether a session is open that carries neither IPv4 nor IPv6.
pub fn is_useless(status: &SessionStatus) -> bool {
    status.phase == "open" && status.local.is_none() && status.local6.is_none()
}

/// Who is at the other end, and the addresses.
pub fn line(out: &mut Output, status: &SessionStatus) -> io::Result<()> {
    if status.vlans != "none" {
        item(out, "line", &status.vlans)?;
    }
    let named = |name: &Option<String>| name.clone().unwrap_or_default();
    if let Some(mac) = &status.ac_mac {
        let session = status.session_id.map_or(String::new(), |id| format!(", session {id:#06x}"));
        item(out, "concentrator", &format!("{} ({mac}){session}", named(&status.ac_name)))?;
    }
    if let Some(user) = &status.user {
        item(out, "user", &printable(user))?;
    }
    let both = |local: Option<std::net::IpAddr>, peer: Option<std::net::IpAddr>| {
        let peer = peer.map_or(String::new(), |peer| format!(", the other end {peer}"));
        local.map(|local| format!("{local}{peer}"))
    };
    if let Some(text) = both(status.local, status.peer) {
        item(out, "IPv4", &text)?;
    }
    if let Some(text) = both(status.local6, status.peer6) {
        item(out, "IPv6", &text)?;
    }
    if !status.dns.is_empty() {
        let servers: Vec<String> = status.dns.iter().map(ToString::to_string).collect();
        let missing = status.dns_missing.as_ref().map_or(String::new(), |why| format!(" ({why})"));
        item(out, "name servers", &format!("{}{missing}", servers.join(", ")))?;
    }
    status.mtu.map_or(Ok(()), |mtu| item(out, "MTU", &format!("{mtu} bytes")))
}

/// Default routes that were requested, or why they are not there.
fn routes(out: &mut Output, status: &SessionStatus) -> io::Result<()> {
    for route in &status.default_routes {
        let family = if route.family == "ipv4" { "IPv4" } else { "IPv6" };
        let text = match &route.missing {
            Some(why) => format!("{family}: none ({why})"),
            None => format!("{family}, metric {}", route.metric),
        };
        item(out, "default route", &text)?;
    }
    Ok(())
}

fn times(out: &mut Output, status: &SessionStatus) -> io::Result<()> {
    if let Some(uptime) = status.uptime {
        item(out, "open for", &duration(uptime))?;
    }
    if let Some(milliseconds) = status.round_trip_ms {
        item(out, "echo", &format!("{milliseconds:.1} ms both ways"))?;
    }
    if let Some(next) = status.next_try {
        item(out, "next try", &format!("in {}", duration(next)))?;
    }
    lost(out, status.frames_lost)
}

/// Frames of discovery and negotiation that were lost, if any were.
fn lost(out: &mut Output, count: u64) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let text = format!(
        "{} of discovery and negotiation, which came faster than they are read",
        plural(count, "frame")
    );
    item(out, "lost", &text)
}

/// What no file took.
pub fn unwritten(status: &ConcentratorStatus) -> impl Iterator<Item = String> {
    let records = (status.records_lost > 0).then(|| {
        format!("{} in no file (`df` shows full disks)", plural(status.records_lost, "accounting record"))
    });
    records.into_iter().chain(status.log_failure.clone())
}

/// What the data path counted.
pub fn traffic(out: &mut Output, status: &SessionStatus) -> io::Result<()> {
    let Some(counted) = &status.counted else { return Ok(()) };
    for (name, way) in [("received", counted.received), ("sent", counted.sent)] {
        let text = format!("{}, {} bytes", plural(way.frames, "frame"), thousands(way.bytes));
        item(out, name, &text)?;
    }
    for (reason, count) in &counted.drops {
        item(out, "dropped", &format!("{reason} {}", thousands(*count)))?;
    }
    Ok(())
}
