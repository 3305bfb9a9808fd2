//! `rxlane fastpath check`.

use super::{BAD, BOLD, GOOD, POOR, PortArguments, item};
use crate::arguments::StateArguments;
use crate::output::{CommandResult, Outcome, Output};
use fastpath::bypass::Bypassed;
use fastpath::{Checked, Error, Request};
use format::printable;
use kernel::netlink::xdp_features;
use serde::Serialize;
use std::io::{self, Write};
use xdp::Interface;

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 it can come up, 1 something stands in the way, 2 wrong usage, 3 the machine cannot be read.\n\n\
Example:\n  \
rxlane fastpath check eth0 ppp0")]
pub struct CheckArguments {
    #[command(flatten)]
    ports: PortArguments,
    /// Print JSON (schema rxlane.fastpath-check/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// Schema `rxlane.fastpath-check/1`: fields are added, never renamed.
#[derive(Debug, Serialize)]
pub struct Check {
    schema: &'static str,
    /// Whether it can come up as requested.
    can: bool,
    ports: Vec<PortRow>,
    /// What stands in the way, and the way out.
    obstacles: Vec<String>,
    bypassed: Vec<Bypassed>,
    /// Whether the machine forwards IPv4 or IPv6.
    forwards: bool,
    /// Connections that conntrack follows now; `None`: it is not in the kernel.
    connections: Option<u32>,
}

#[derive(Debug, Serialize)]
struct PortRow {
    name: String,
    driver: Option<String>,
    /// Whether the driver runs XDP and lets it redirect; `None`: it does not say (before Linux 6.3).
    native: Option<bool>,
}

impl CheckArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let request = self.ports.request(&self.state)?;
        let checked = fastpath::check(&request, &self.state.folder())?;
        let check = check(&request, &checked)?;
        out.show(self.json, &check, print)?;
        Ok(check.outcome())
    }
}

/// What was found, with what stands in the way.
pub fn check(request: &Request, checked: &Checked) -> anyhow::Result<Check> {
    let mut obstacles = Vec::new();
    if checked.is_up {
        obstacles.push(Error::Up.to_string());
    }
    if request.has_limit() && !checked.has_line {
        obstacles.push(Error::NoLine.to_string());
    }
    for (interface, qdisc) in checked.shapers().filter(|_| !request.bypass_qdisc) {
        obstacles.push(format!(
            "{interface} shapes what it sends ({qdisc}), and the fast path sends past it: --bypass-qdisc, or --limit-upload and \
             --limit-download instead of the shaper"
        ));
    }
    for setting in checked.hiding.iter().filter(|_| !request.disable_rxvlan) {
        obstacles
            .push(format!("a NIC takes VLAN tags off before XDP sees them: --disable-rxvlan ({setting})"));
    }
    let mut ports = Vec::new();
    for (port, driver) in &checked.ports {
        if let Err(error) = Interface::find(&port.name)?.is_free()
            && !checked.is_up
        {
            obstacles.push(error.to_string());
        }
        let features = xdp_features(&port.name);
        // Other drivers say so only with a program.
        let is_no_target =
            port.is_verified && features.is_some_and(|features| !features.is_redirect_target());
        if is_no_target && !request.generic {
            let refusal = Error::NoTarget { interface: port.name.clone(), is_veth: true };
            obstacles.push(refusal.to_string());
        }
        let native = features.map(|features| features.is_native() && features.redirects());
        if native == Some(false) && !request.generic {
            let driver = driver.as_deref().unwrap_or("its driver");
            obstacles.push(format!(
                "{} ({driver}) does not run XDP itself: --generic lets the kernel do so, slower",
                port.name
            ));
        }
        ports.push(PortRow { name: port.name.clone(), driver: driver.clone(), native });
    }
    let bypassed = checked.bypassed.clone();
    let can = obstacles.is_empty();
    Ok(Check {
        schema: "rxlane.fastpath-check/1",
        can,
        ports,
        obstacles,
        bypassed,
        forwards: checked.forwards,
        connections: checked.connections,
    })
}

impl Check {
    /// Whether it can come up.
    pub fn outcome(&self) -> Outcome {
        if self.can { Outcome::Success } else { Outcome::Negative }
    }
}

/// What stands in the way, and what there is.
pub fn print(out: &mut Output, check: &Check) -> io::Result<()> {
    let names: Vec<&str> = check.ports.iter().map(|port| port.name.as_str()).collect();
    let says = if check.can { out.styled(GOOD, "can come up") } else { out.styled(BAD, "cannot come up") };
    let title = out.styled(BOLD, format!("A fast path on {}", printable(&names.join(", "))));
    out.paragraph("", &format!("{title} {says}."))?;
    for obstacle in &check.obstacles {
        let mark = out.styled(BAD, "no");
        item(out, "", &format!("{mark}: {}", printable(obstacle)))?;
    }
    if !check.forwards {
        let mark = out.styled(POOR, "note");
        item(out, "", &format!("{mark}: this machine does not forward: `sysctl -w net.ipv4.ip_forward=1`"))?;
    }
    if check.connections.unwrap_or_default() == 0 {
        let mark = out.styled(POOR, "note");
        let says = "conntrack follows no connection at the moment, and no other becomes fast: a rule of nftables with `ct state`, \
                    or one that translates addresses, makes it follow them";
        item(out, "", &format!("{mark}: {says}"))?;
    }
    for port in &check.ports {
        let native = match port.native {
            Some(true) => "native XDP",
            Some(false) => "no native XDP",
            None => "whether its driver has native XDP shows when it is attached",
        };
        let driver = port.driver.as_deref().unwrap_or("unknown driver");
        item(out, &printable(&port.name), &format!("{}: {native}", printable(driver)))?;
    }
    bypassed(out, &check.bypassed)
}

/// What packets of the fast path do not pass.
fn bypassed(out: &mut Output, all: &[Bypassed]) -> io::Result<()> {
    writeln!(out, "Packets of established connections would not pass:")?;
    let rules =
        "whatever rules nftables has, and their counters, after the first packets; `tcpdump` on the ports";
    item(out, "", rules)?;
    for one in all {
        let text = match one {
            Bypassed::Shaper { interface, qdisc } => format!("the shaper {qdisc} of {interface}"),
            Bypassed::Counters { interface, of } => {
                format!("counters of {interface} ({of}), and `tcpdump` there")
            }
        };
        item(out, "", &printable(&text))?;
    }
    Ok(())
}
