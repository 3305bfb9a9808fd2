//! `rxlane link up`.

use super::parent::Opinion;
use super::status::{DOWN, document};
use super::{BOLD, LineArguments, MeansArguments, POOR, StateArguments, item, status};
use crate::arguments::address;
use crate::background::{self, DaemonArguments, no_signals, unread};
use crate::output::{CommandResult, Outcome, Output, complain};
use anyhow::anyhow;
use format::printable;
use format::quoted;
use kernel::netlink::{Address, link_by_name, station};
use kernel::tun::TunError;
use link::error::Error;
use link::frame_size::needed_mtu;
use link::framing::{Form, Framing};
use link::running::{Ended, Event, Request, Running, check_name, find_parent, mtu_of};
use link::status::Status;
use serde_json::json;
use service::Kind;
use service::daemon::Ready;
use service::log::Log;
use service::notify;
use service::signals::{HangUp, end_requests};
use std::io::{self, Write};
use std::net::IpAddr;

/// Schema of a link that came up, or would: fields are added, never renamed.
const SCHEMA: &str = "rxlane.link-up/1";

#[derive(clap::Args)]
#[command(after_help = "\
The interface is there as long as the command runs; SIGTERM, SIGINT, SIGHUP or `rxlane link down NAME` ends it. With --daemon the \
command returns when the interface is up, and a daemon has it in the background until `rxlane link down NAME`. With tags alone it is a TAP device with Ethernet frames and the parent's MAC address, with PPPoE a TUN device with IP packets. With tags \
the parent is promiscuous meanwhile, since cards filter VLANs that nobody registered.\n\n\
Exit codes: 0 ended on request, 1 the name is taken, packets do not fit the parent, or the parent went \
away, or the line or its XDP queue is another link's, 2 wrong usage, 3 a privilege or the kernel's TUN driver is missing.\n\n\
Examples:\n  \
rxlane link up eth0 --ifname sub0 --encap ad:100,q:200 --address 10.0.0.1/24\n  \
rxlane link up eth0 --ifname wan0 --vlan 35 --address 192.0.2.2/30 --mss-clamp\n  \
rxlane link up eth0 --ifname ppp0 --encap q:35,pppoe:7@02:00:5e:00:00:01 --address 192.0.2.2 --peer 192.0.2.1")]
pub struct UpArguments {
    #[command(flatten)]
    line: LineArguments,
    /// Name of the interface.
    #[arg(long, alias = "name", value_name = "NAME")]
    ifname: String,
    /// Address of the interface, with the bits of its prefix; may be given several times.
    #[arg(long, value_name = "ADDRESS[/BITS]")]
    address: Vec<Address>,
    /// Address at the other end, one for IPv4 and one for IPv6.
    #[arg(long, value_name = "ADDRESS", requires = "address", value_parser = peer)]
    peer: Vec<IpAddr>,
    /// Lower the maximum segment size of TCP, both ways, to what fits the MTU.
    #[arg(long)]
    mss_clamp: bool,
    #[command(flatten)]
    means: MeansArguments,
    /// Show what would be done, and do nothing.
    #[arg(long, conflicts_with = "daemon")]
    dry_run: bool,
    /// Print JSON, a line for each document: rxlane.link-up/1 and, at the end in the foreground, rxlane.link-down/1.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArguments,
    #[command(flatten)]
    state: StateArguments,
}

impl UpArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let request = self.request()?;
        if self.dry_run {
            return self.plan(out, &request);
        }
        if self.daemon.is_caller() {
            self.daemon.expect_no_manager("the link")?;
            return background::start(&[]);
        }
        let mut log = None;
        let result = self.link(out, &request, &mut log);
        background::end(log, out, result)
    }

    /// Shows what would be done, and that nothing stands in the way as far as it can be seen before.
    fn plan(&self, out: &mut Output, request: &Request) -> CommandResult {
        let links = self.state.instances(Kind::Link)?;
        let parent = find_parent(&request.parent)?;
        let framing =
            Framing::new(&request.encapsulation, parent.mac.unwrap_or_default()).map_err(Error::from)?;
        let mtu = mtu_of(request, &parent)?;
        check_name(&request.name)?;
        if link_by_name(&request.name).is_ok() {
            return Err(Error::from(TunError::Taken { name: request.name.clone() }).into());
        }
        let opinion = Opinion::of(&request.parent, self.line.mtu, &request.encapsulation, &links);
        if let Some(why) = &opinion.refused {
            complain(why);
            return Ok(Outcome::Negative);
        }
        let needed = needed_mtu(mtu, &request.encapsulation);
        if self.json {
            out.json_of(
                SCHEMA,
                &json!({
                    "dry_run": true,
                    "name": request.name,
                    "parent": request.parent,
                    "encapsulation": request.encapsulation.to_string(),
                    "interface": match framing.form() { Form::Frames => "tap", Form::Packets => "tun" },
                    "mtu": mtu,
                    "datapath": request.means.word(),
                    "addresses": request.addresses.iter().map(Address::to_string).collect::<Vec<_>>(),
                    "needed_parent_mtu": needed,
                    "notes": opinion.notes,
                }),
            )?;
            return Ok(Outcome::Success);
        }
        let title = format!(
            "{} would come up over {}; nothing is changed now.",
            printable(&request.name),
            printable(&request.parent)
        );
        writeln!(out, "{}", out.styled(BOLD, title))?;
        item(out, "line", &request.encapsulation.to_string())?;
        let form = match framing.form() {
            Form::Frames => "TAP device (Ethernet frames)",
            Form::Packets => "TUN device (IP packets)",
        };
        item(out, "interface", &format!("{form}, MTU {mtu}, {} data path", request.means.word()))?;
        for address in &request.addresses {
            item(out, "address", &address.to_string())?;
        }
        item(out, "parent", &format!("needs an MTU of {needed} for these packets"))?;
        notes(out, &opinion.notes)?;
        Ok(Outcome::Success)
    }

    /// Has the link up until its end. In the background `log` takes what is said from then on.
    fn link(&self, out: &mut Output, request: &Request, log: &mut Option<Log>) -> CommandResult {
        let (stop, ask) = end_requests(HangUp::Ends).map_err(no_signals)?;
        let leaving = self.daemon.prepare(&request.name, &ask)?;
        let links = self.state.instances(Kind::Link)?;
        let opinion = Opinion::of(&request.parent, self.line.mtu, &request.encapsulation, &links);
        if let Some(why) = &opinion.refused {
            complain(why);
            return Ok(Outcome::Negative);
        }
        let up = Running::up(request, &links, stop, ask);
        let mut running = up?;
        let status = running.status();
        let printed = if self.json {
            let mut value = document(SCHEMA, &status, None);
            value["dry_run"] = false.into();
            value["notes"] = opinion.notes.into();
            out.json_line(&value)
        } else {
            started(out, &status, self.daemon.is_daemon(), &self.state)
                .and_then(|()| notes(out, &opinion.notes))
        };
        unread(printed.and_then(|()| out.flush()))?;
        // What a daemon reports later is for its log.
        let is_json = self.json && !self.daemon.is_daemon();
        let mut lines = background::lines("the link")?;
        if let Some(leaving) = leaving {
            background::leave(leaving, Ready::Up, &mut lines, out, log)?;
        }
        // Without a service manager there is none to notify.
        let _ = notify::ready(&format!("{} is up", request.name));
        let mark = out.styled(POOR, "note");
        let ended = running.run(&mut |event| {
            let text = happened(request, event);
            lines.write(match is_json {
                true => format!("{}\n", json!({"note": text})),
                false => format!("{mark}: {}\n", printable(&text)),
            });
        });
        let _ = notify::stopping();
        let status = running.down();
        let is_heard = lines.finish();
        if is_heard {
            let printed = match is_json {
                true => out.json_line(&document(DOWN, &status, None)),
                false => over(out, &status, ended.as_ref().ok().copied()),
            };
            unread(printed.and_then(|()| out.flush()))?;
        } else if self.daemon.is_daemon() {
            // The log takes nothing any more, and would hold up what is said on standard error, too.
            std::process::exit(match ended {
                Ok(Ended::Requested) => 0,
                Ok(_) => 1,
                Err(_) => 3,
            });
        }
        Ok(outcome(ended?, request))
    }

    fn request(&self) -> anyhow::Result<Request> {
        let mut addresses = self.address.clone();
        let is_again = |(place, own): (usize, &Address)| {
            addresses.iter().take(place).any(|other| other.local == own.local).then_some(own.local)
        };
        if let Some(address) = addresses.iter().enumerate().find_map(is_again) {
            return Err(anyhow!("--address {address} is there twice: an interface has an address once"));
        }
        for peer in &self.peer {
            let own = addresses
                .iter_mut()
                .find(|own| own.peer.is_none() && own.local.is_ipv4() == peer.is_ipv4())
                .ok_or_else(|| anyhow!("--peer {peer}: there is no --address of its kind that has none"))?;
            own.peer = Some(*peer);
        }
        Ok(Request {
            name: self.ifname.clone(),
            parent: self.line.parent().to_owned(),
            encapsulation: self.line.encapsulation()?,
            is_managed: false,
            addresses,
            mtu: self.line.mtu,
            mss_clamp: self.mss_clamp,
            means: self.means.means()?,
        })
    }
}

/// An address that another station can have.
fn peer(text: &str) -> Result<IpAddr, String> {
    let peer = address("10.0.0.2 or 2001:db8::2")(text)?;
    station(peer).map_err(|error| error.to_string())
}

fn outcome(ended: Ended, request: &Request) -> Outcome {
    match ended {
        Ended::Requested => Outcome::Success,
        Ended::ParentRemoved => {
            let parent = &request.parent;
            complain(&format!(
                "{parent} was removed, or went to another network namespace: {} is over",
                request.name
            ));
            Outcome::Negative
        }
        Ended::InterfaceDeleted => {
            complain(&format!("somebody deleted {}", request.name));
            Outcome::Negative
        }
    }
}

fn started(out: &mut Output, status: &Status, in_background: bool, state: &StateArguments) -> io::Result<()> {
    let identity = &status.identity;
    writeln!(
        out,
        "{}",
        out.styled(BOLD, format!("{} is up over {}.", identity.name, printable(&identity.parent)))
    )?;
    status::line(out, status)?;
    if in_background {
        item(out, "daemon", &format!("process {}", identity.pid))?;
    }
    item(out, "status", &state.command(&format!("link status {}", quoted(&identity.name))))?;
    let interrupt = if in_background { "" } else { ", or SIGINT" };
    item(out, "end", &(state.command(&format!("link down {}", quoted(&identity.name))) + interrupt))
}

fn happened(request: &Request, event: &Event) -> String {
    let (name, parent) = (&request.name, &request.parent);
    match event {
        Event::ParentDown => format!("{parent} is down: {name} has no carrier until it is back"),
        Event::ParentUp => format!("{parent} is up again"),
        Event::ParentMtu { now, needed } if now < needed => format!(
            "the MTU of {parent} is {now} now, and packets of {name} need {needed}: longer ones are dropped (parent-mtu)"
        ),
        Event::ParentMtu { now, .. } => format!("the MTU of {parent} is {now} now; packets of {name} fit"),
        Event::ParentMac => {
            format!("the MAC address of {parent} changed; {name} keeps the one that it came up with")
        }
    }
}

fn notes(out: &mut Output, texts: &[String]) -> io::Result<()> {
    let mark = out.styled(POOR, "note");
    texts.iter().try_for_each(|text| writeln!(out, "{mark}: {}", printable(text)))
}

fn over(out: &mut Output, status: &Status, ended: Option<Ended>) -> io::Result<()> {
    let name = &status.identity.name;
    let why = match ended {
        Some(Ended::Requested) | None => "",
        Some(Ended::ParentRemoved) => ", since its parent is",
        Some(Ended::InterfaceDeleted) => ", since somebody deleted it",
    };
    writeln!(out, "{}", out.styled(BOLD, format!("{name} is removed{why}.")))?;
    status::counted(out, status, None)
}
