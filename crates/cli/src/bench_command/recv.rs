//! `rxlane bench recv`.

use super::{CommonArguments, Lines, Local, refused, stop_by_signals, text};
use crate::output::{CommandResult, Outcome, Output};
use anyhow::Context;
use bench::report::{Interval, Run};
use bench::run::Requested;
use bench::udp::{self, Receiving};
use bench::wire_size::Framing;
use serde_json::json;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane bench recv
  rxlane bench recv --workers 2 --cpus 0,1 --interface enp1s0 --seconds 30
  rxlane bench recv --gro --once --json

Loss and reordering are known of datagrams that rxlane bench send made, from 16 bytes of payload on.
Exit codes: 0 something arrived, 1 nothing did, 2 wrong usage, 3 the environment lacks something.")]
pub struct RecvArguments {
    /// Port
    #[arg(long, value_name = "N", default_value_t = udp::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// Address; without one all of both IP versions
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,

    /// Bytes that may wait in the socket of each thread, 1 GiB at most; beyond net.core.rmem_max as root only
    #[arg(long, value_name = "BYTES", default_value = "4194304", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    buffer: u32,

    /// Take several datagrams as one where the kernel puts them together (UDP GRO)
    #[arg(long)]
    gro: bool,

    /// End when all flows that were seen have ended
    #[arg(long)]
    once: bool,

    /// MTU of the line, 68 (RFC 791) to 65535; the interface's own otherwise, or 1500
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65535))]
    mtu: Option<u32>,

    #[command(flatten)]
    common: CommonArguments,
}

impl RecvArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let interface = self.common.interface.clone().or_else(|| kernel::netlink::interface_with(self.bind?));
        let receiving = self.receiving(interface.as_deref())?;
        let Local { watched, machine, line_rate } = self.common.local(interface.as_deref())?;
        let stop = stop_by_signals()?;
        let listening = receiving.listen().map_err(refused)?;
        if !self.common.json {
            out.paragraph("", &format!("Receiving on {}; SIGINT (^C) ends it.", receiving.address))?;
            std::io::Write::flush(out)?;
        }
        let mut lines = Lines::new(out, text::Of::Sink, self.common.json);
        let received = udp::receive(&receiving, listening, watched, &stop, &mut |interval: &Interval| {
            lines.print(interval)
        });
        lines.result?;
        let received = received.map_err(refused)?;
        let parameters = json!({
            "address": receiving.address.to_string(),
            "threads": receiving.threads,
            "cpus": receiving.cpus,
            "buffer": self.buffer,
            "socket_buffer": received.buffer,
            "gro": receiving.coalesce,
            "mtu": receiving.framing.mtu,
            "overhead": receiving.framing.overhead,
        });
        let run = Run::received(parameters, received, Requested { rate: None, line_rate });
        let outcome = if run.packets > 0 { Outcome::Success } else { Outcome::Negative };
        self.common.print(out, "recv", machine, run, "datagrams")?;
        Ok(outcome)
    }

    fn receiving(&self, interface: Option<&str>) -> anyhow::Result<Receiving> {
        let of_interface = |name: &str| {
            kernel::netlink::link_by_name(name)
                .map(|link| link.mtu)
                .with_context(|| format!("interface {name}"))
        };
        let mtu = match (self.mtu, interface) {
            (Some(mtu), _) => mtu,
            (None, Some(name)) => of_interface(name)?,
            (None, None) => 1500,
        };
        Ok(Receiving {
            address: SocketAddr::new(self.bind.unwrap_or(Ipv6Addr::UNSPECIFIED.into()), self.port),
            threads: self.common.workers,
            cpus: self.common.cpus(),
            buffer: Some(self.buffer as usize),
            coalesce: self.gro,
            length: self.common.seconds,
            once: self.once,
            framing: Framing { mtu: mtu.into(), overhead: self.common.overhead },
        })
    }
}
