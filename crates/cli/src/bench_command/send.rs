//! `rxlane bench send`.

mod remote;

use super::{CommonArguments, Lines, Local, refused, stop_by_signals, text};
use crate::arguments::numbers::{self, Rate};
use crate::gen_command::TrafficArguments;
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use anyhow::{Context, anyhow, bail};
use bench::frames::{self, Frames, LoadError, Playing};
use bench::machine::{Machine, Watched};
use bench::report::{Interval, Run};
use bench::run::Requested;
use bench::udp::{self, Sending};
use capture::{Capture, LinkType};
use clap::builder::NonEmptyStringValueParser;
use format::quoted;
use kernel::netlink::{Link, link_by_name};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane bench send 198.51.100.7
  rxlane bench send 198.51.100.7 --rate max --payload 18 --seconds 10
  rxlane bench send 198.51.100.7 '[2001:db8::1]:9000' --source-ports 64 --workers 2 --rate 500k --seconds 10
  rxlane bench send 198.51.100.7 --payload 1400 --gso 40 --rate max
  rxlane bench send 198.51.100.7 --remote
  sudo rxlane bench send --raw eth0 --encap 'ad:100,q:200,pppoe' --flows 2000 --size 64 --rate 100k --seconds 10
  sudo rxlane bench send --raw eth0 --capture line.pcap --rate max --seconds 10

On the other host, rxlane bench recv counts what arrives. Without --rate and --count it sends 10,000 packets a second for ten seconds: \
--rate max sends as fast as it goes, which can keep a shared link or a router busy.
Exit codes: 0 something was sent, 1 nothing could be, 2 wrong usage, 3 the environment lacks something.")]
pub struct SendArguments {
    /// Where to send datagrams: an address or name, with a port or without (7184)
    #[arg(value_name = "TARGET", conflicts_with_all = ["raw", "capture"], conflicts_with_all = TrafficArguments::IDS)]
    targets: Vec<String>,

    /// Wait until `rxlane bench pps --from` on a target asks for load, and send it there; others are not listened to
    #[arg(long, alias = "on-request", conflicts_with_all = ["raw", "rate", "count", "payload", "source_ports", "source_port", "batch", "gso", "CommonArguments"])]
    remote: bool,

    /// Send frames out of this interface instead of datagrams (requires CAP_NET_RAW)
    #[arg(long, value_name = "INTERFACE", value_parser = NonEmptyStringValueParser::new())]
    raw: Option<String>,

    /// Packets a second of all threads, with k or M; max: as fast as they go [default: 10k]
    #[arg(long, value_name = "N", value_parser = numbers::rate)]
    rate: Option<Rate>,

    /// End after so many packets, with k, M or G
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    count: Option<u64>,

    /// Bytes of payload, 0 to 65507
    #[arg(long, value_name = "BYTES", default_value_t = 18, conflicts_with = "raw", value_parser = clap::value_parser!(u16).range(..=65507))]
    payload: u16,

    /// Source ports; each makes a flow to each target (default: as many as threads)
    #[arg(long, value_name = "N", conflicts_with = "raw")]
    source_ports: Option<u16>,

    /// First of the source ports; any that are free otherwise
    #[arg(long, value_name = "PORT", conflicts_with = "raw")]
    source_port: Option<u16>,

    /// Source address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "raw")]
    source: Option<IpAddr>,

    /// Messages of a system call
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "raw")]
    batch: u16,

    /// Datagrams of a message, which the kernel or the NIC cuts (UDP GSO)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "raw")]
    gso: u16,

    /// With --raw: send the Ethernet frames of a capture, 512 MiB at most, again and again, instead of generated ones
    #[arg(long, value_name = "FILE", conflicts_with_all = TrafficArguments::IDS)]
    capture: Option<PathBuf>,

    /// With --raw: generate so many frames, a million at most, which are then sent again and again
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with_all = ["targets", "capture"])]
    pool: u32,

    #[command(flatten)]
    common: CommonArguments,

    #[command(flatten, next_help_heading = "Frames of --raw")]
    traffic: TrafficArguments,
}

/// What is sent where nobody says otherwise: more may disturb somebody who does not expect it.
const DEFAULT_RATE: f64 = 10_000.0;
const DEFAULT_LENGTH: Duration = Duration::from_secs(10);

struct Loaded {
    machine: Machine,
    run: Run<Value>,
    noun: &'static str,
    /// What ended it before its time.
    ended: Option<anyhow::Error>,
}

impl SendArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if self.targets.is_empty() && self.raw.is_none() {
            bail!(
                "where to send: rxlane bench send TARGET (an address or name), or --raw INTERFACE for frames"
            );
        }
        if self.remote {
            return remote::serve(out, &self.targets, self.source);
        }
        let Loaded { machine, run, noun, ended } = match &self.raw {
            Some(interface) => self.frames(out, interface)?,
            None => self.datagrams(out)?,
        };
        let outcome = if run.packets > 0 { Outcome::Success } else { Outcome::Negative };
        self.common.print(out, "send", machine, run, noun)?;
        match ended {
            Some(error) => Err(error),
            None => Ok(outcome),
        }
    }

    /// Packets a second; `None`: as fast as they go.
    fn rate(&self) -> Option<f64> {
        match self.rate {
            Some(Rate::Max) => None,
            Some(Rate::PerSecond(rate)) => Some(rate),
            None => Some(DEFAULT_RATE),
        }
    }

    fn length(&self) -> Option<Duration> {
        self.common.seconds.or(self.count.is_none().then_some(DEFAULT_LENGTH))
    }

    /// Says which limits nobody requested.
    fn print_defaults(&self, out: &mut Output) -> io::Result<()> {
        let rate = self.rate.is_none().then_some("10,000 packets/s (--rate N or max)");
        let length = (self.length() != self.common.seconds).then_some("for 10 seconds (--seconds)");
        let limits: Vec<&str> = rate.into_iter().chain(length).collect();
        if self.common.json || limits.is_empty() {
            return Ok(());
        }
        out.paragraph("", &format!("Sending {}; ^C ends it.", limits.join(" ")))?;
        out.flush()
    }

    fn datagrams(&self, out: &mut Output) -> anyhow::Result<Loaded> {
        let sending = self.sending()?;
        let interface = sending.targets.first().and_then(udp::interface_to);
        let Local { watched, machine, line_rate } = self.common.local(interface.as_deref())?;
        sending.check()?;
        if let Some(name) = interface.filter(|name| link_by_name(name).is_ok_and(|link| !link.works())) {
            complain(&format!("{name} is down, or has no carrier: the kernel drops what is sent"));
        }
        let stop = stop_by_signals()?;
        self.print_defaults(out)?;
        let mut lines = Lines::new(out, text::Of::Datagrams, self.common.json);
        let sent = udp::send(&sending, watched, &stop, &mut |interval: &Interval| lines.print(interval));
        lines.result?;
        let parameters = json!({
            "targets": sending.targets.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
            "source": sending.source,
            "source_port": sending.first_port,
            "source_ports": sending.ports,
            "threads": sending.threads,
            "cpus": sending.cpus,
            "payload": sending.payload,
            "rate": sending.rate,
            "count": sending.count,
            "batch": sending.batch,
            "gso": sending.segments,
            "overhead": sending.overhead,
        });
        let requested = Requested { rate: sending.rate, line_rate };
        let run = Run::sent(parameters, sent.map_err(refused)?, requested);
        Ok(Loaded { machine, run, noun: "datagrams", ended: None })
    }

    fn sending(&self) -> anyhow::Result<Sending> {
        Ok(Sending {
            targets: self.targets.iter().map(|target| address(target)).collect::<anyhow::Result<_>>()?,
            source: self.source,
            first_port: self.source_port,
            ports: self.source_ports.unwrap_or(self.common.workers),
            threads: self.common.workers,
            cpus: self.common.cpus(),
            payload: self.payload.into(),
            rate: self.rate(),
            length: self.length(),
            count: self.count,
            batch: self.batch,
            segments: self.gso,
            overhead: self.common.overhead,
        })
    }

    /// Generated traffic. Where nobody said how long its packets may be, they are as long as the interface lets out.
    fn generated(&self, link: &Link) -> anyhow::Result<Frames> {
        let generate = |mtu| {
            Ok::<_, anyhow::Error>(Frames::generated(&mut self.traffic.generator(mtu)?, self.pool as usize))
        };
        let frames = generate(None)?;
        let Link { name, mtu, .. } = link;
        let longest = frames.iter().map(|frame| frame.len() - header(frame)).max().unwrap_or(0);
        let Some(excess) =
            u16::try_from(longest.saturating_sub(*mtu as usize)).ok().filter(|excess| *excess > 0)
        else {
            return Ok(frames);
        };
        if self.traffic.has_mtu() {
            bail!(
                "frames have {longest} bytes behind the Ethernet header, and {name} lets {mtu} out: `ip link set dev {quoted_name} mtu \
                 {longest}` makes room; --mtu, --size and --fragments 0 make shorter ones",
                quoted_name = quoted(name)
            );
        }
        let shorter = TrafficArguments::MTU.saturating_sub(excess);
        complain(&format!(
            "{name} lets {mtu} bytes out behind the Ethernet header, so IP packets have {shorter} at most (`ip link set dev {quoted_name} \
             mtu {longest}` makes room for {})",
            TrafficArguments::MTU,
            quoted_name = quoted(name)
        ));
        generate(Some(shorter))
    }

    fn frames(&self, out: &mut Output, interface: &str) -> anyhow::Result<Loaded> {
        let link = link_by_name(interface).or_else(|error| {
            // Of one that is not there this says which there are.
            Watched::open(interface)?;
            Err(anyhow!("{interface}: {error}"))
        })?;
        let frames = match &self.capture {
            Some(file) => captured(file)?,
            None => self.generated(&link)?,
        };
        if !link.works() {
            complain(&format!(
                "{interface} is down, or has no carrier: the kernel drops what is sent, and says nothing"
            ));
        }
        let Local { watched, machine, line_rate } = self.common.local(Some(interface))?;
        let playing = Playing {
            interface,
            shares: frames.distributed(self.common.workers.into()),
            cpus: self.common.cpus(),
            rate: self.rate(),
            length: self.length(),
            count: self.count,
            overhead: self.common.overhead,
        };
        let stop = stop_by_signals()?;
        self.print_defaults(out)?;
        let mut lines = Lines::new(out, text::Of::Frames, self.common.json);
        let played = frames::play(&playing, watched, &stop, &mut |interval: &Interval| lines.print(interval));
        lines.result?;
        let parameters = json!({
            "interface": interface,
            "capture": self.capture,
            "frames": frames.len(),
            "threads": self.common.workers,
            "cpus": playing.cpus,
            "rate": self.rate(),
            "count": self.count,
            "overhead": playing.overhead,
        });
        let requested = Requested { rate: self.rate(), line_rate };
        let mut played = played.map_err(|error| not_played(error, interface))?;
        let ended = played.ended.take().map(|error| not_played(error, interface));
        Ok(Loaded { machine, run: Run::played(parameters, played, requested), noun: "frames", ended })
    }
}

/// Bytes of a frame before what its MTU is of: one tag of 0x8100 more than without (packet(7)).
fn header(frame: &[u8]) -> usize {
    if frame.get(12..14) == Some(&[0x81, 0x00]) { 18 } else { 14 }
}

/// An address or a name, with a port or without.
pub fn address(text: &str) -> anyhow::Result<SocketAddr> {
    match resolved(text)? {
        address if address.port() == 0 => bail!("target `{text}`: port 0 is nobody's"),
        address => Ok(address),
    }
}

fn resolved(text: &str) -> anyhow::Result<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, udp::PORT));
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let found = match text.rsplit_once(':') {
        Some(_) => text.to_socket_addrs(),
        None => (text, udp::PORT).to_socket_addrs(),
    };
    let mut found = found.with_context(|| format!("target `{text}`"))?;
    found.next().with_context(|| format!("target `{text}` has no address"))
}

const HEADER: usize = 14;
/// Bytes of a capture that is sent: it lies in memory twice, and a pipe may have no end.
const MOST_BYTES: usize = 512 << 20;

fn captured(file: &Path) -> anyhow::Result<Frames> {
    let mut capture = Capture::open(file)?;
    let mut frames = Frames::new();
    let mut excluded = 0_u64;
    while let Some(frame) = capture.next_frame() {
        let is_whole = frame.data.len() == frame.wire_len as usize && frame.data.len() >= HEADER;
        if frame.link_type() == LinkType::Ethernet && is_whole {
            frames.push(frame.data);
            if frames.bytes() > MOST_BYTES {
                bail!(
                    "{} has more than {} MiB of frames, which have to be in memory while they are sent: a part of it, cut out by \
                     `tcpdump -r FILE -c FRAMES -w PART`, is sent again and again",
                    file.display(),
                    MOST_BYTES >> 20
                );
            }
        } else {
            excluded += 1;
        }
    }
    let name = file.display();
    if let Some(problem) = capture.report().problems.first() {
        bail!("{name} is damaged: {problem}");
    }
    if frames.is_empty() {
        bail!("{name} has no whole Ethernet frame ({excluded} cut ones, or of another kind)");
    }
    if excluded > 0 {
        complain(&format!("{excluded} frames of {name} are excluded: cut short, or no Ethernet frames"));
    }
    Ok(frames)
}

/// A frame beyond the MTU (packet(7)).
const EMSGSIZE: i32 = 90;

fn not_played(error: LoadError, interface: &str) -> anyhow::Error {
    let cause = match &error {
        LoadError::Transmit(error) => &error.cause,
        LoadError::Cpu(error) => &error.cause,
        LoadError::Thread(_) => return Lacks(error.to_string()).into(),
    };
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            Lacks(format!("{error}; sending frames requires CAP_NET_RAW: run rxlane as root")).into()
        }
        _ if cause.raw_os_error() == Some(EMSGSIZE) => {
            anyhow!("{error}; a larger MTU lets it out (ip link set dev {interface} mtu N)")
        }
        // The kernel says one or the other of an interface that was removed.
        _ if link_by_name(interface).is_err() => {
            Lacks(format!("{error}: there is no interface {interface} any more")).into()
        }
        io::ErrorKind::NetworkDown => Lacks(format!("{error}; ip link set dev {interface} up")).into(),
        // It names its cause itself.
        _ => anyhow!("{error}"),
    }
}
