//! `rxlane pppoe capture`: what one subscriber of a concentrator sends and receives on the line.

use super::sessions::is_meant;
use super::{StateArguments, expect_interface};
use crate::arguments::seconds;
use crate::live_sample::lacks_privilege;
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use crate::output_file::{OutputFile, standard_output};
use crate::progress::Progress;
use crate::signals::stop_by_signals;
use anyhow::Context;
use concentrator::{ConcentratorStatus, SubscriberStatus};
use format::{plural, printable, quoted};
use host::sample::{self, End, Limits, Sample};
use kernel::socket::filter::{Instruction, Program, To};
use service::Kind;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wire::emit::{Encapsulation, EncapsulationError};
use wire::ethernet::{EtherType, MacAddress, MacAddressError};
use wire::vlan_pattern::Level;

/// The largest file, bytes: what a person can open.
const LARGEST: u64 = 1 << 30;
/// Bytes of a frame: all of it, also where segments were merged.
const SNAP: u32 = 65_535;
/// Tags of a host whose VLANs are not known.
const TAGS: usize = 2;
/// Hosts that an error names.
const NAMED: usize = 5;

#[derive(clap::Args)]
#[command(after_help = "\
The file is pcapng: PPPoE frames of one host in both directions, in the VLANs of its session, from its PADI on and over reconnections. A \
password that is sent by PAP is in it: the file can be read by its owner alone. Frames that an XDP program forwards are not in it.\n\n\
It ends with SIGINT (^C), with --seconds, or with 1 GiB.\n\n\
Exit codes: 0 done, 1 no session is meant or those of several hosts are, or no frame came, or nothing is served, 2 several interfaces are served \
and none is named, 3 it requires root.\n\n\
Examples:\n  \
rxlane pppoe capture alice -o alice.pcapng\n  \
rxlane pppoe capture 02:00:5e:00:00:01 --seconds 60 -o host.pcapng\n  \
ssh ac rxlane pppoe capture alice | wireshark -k -i -")]
pub struct CaptureArguments {
    /// Whose frames: a user, an address or another text that stands in the sessions of one host alone, as rxlane pppoe sessions --filter takes
    /// it; or a MAC address, also of a host that has no session yet.
    #[arg(value_name = "SUBSCRIBER")]
    subscriber: String,
    /// Interface that is served [default: the only one].
    #[arg(long, value_name = "IFACE")]
    concentrator: Option<String>,
    /// File to write, overwritten if it is there; '-' is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// End after so many seconds [default: at ^C].
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = seconds(0.1, 86_400.0))]
    seconds: Option<Duration>,
    #[command(flatten)]
    state: StateArguments,
}

/// A host, and the tags of its session; `None`: any.
struct Host {
    station: MacAddress,
    tags: Option<Encapsulation>,
}

impl CaptureArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let is_file = self.output.as_os_str() != "-";
        let stdout = if is_file { None } else { Some(standard_output()?) };
        let naming = "rxlane pppoe capture SUBSCRIBER --concentrator";
        let Some(interface) = self.state.served(self.concentrator, naming)? else {
            return Ok(Outcome::Negative);
        };
        expect_interface(&interface)?;
        let sockets = self.state.instances(Kind::Concentrator)?;
        let status: ConcentratorStatus = sockets.ask(&interface, "sessions")?;
        let host = match host(&status.sessions, &self.subscriber) {
            Ok(host) => host,
            Err(text) => {
                complain(&text);
                return Ok(Outcome::Negative);
            }
        };

        if status.xdp.is_some() {
            complain(&format!(
                "packets that XDP forwards on {} are not in the capture: it has control frames, and what XDP leaves to the workers \
                 (`--datapath batch --takeover` has all of them pass here)",
                printable(&interface)
            ));
        }
        let limits = Limits {
            duration: self.seconds.unwrap_or(Duration::MAX),
            frames: u64::MAX,
            bytes: LARGEST,
            snap: SNAP,
        };
        let filter = filter(&host);
        let taken = if let Some(mut stdout) = stdout {
            take(&interface, &filter, &limits, &mut stdout)?
        } else {
            // Passwords may be in it.
            let mut output = OutputFile::create_private("--output", &self.output)?;
            let taken = take(&interface, &filter, &limits, &mut output.open()?)?;
            output.commit()?;
            taken
        };
        said(out, &self.output, &host, &taken, is_file)?;
        Ok(if taken.frames > 0 { Outcome::Success } else { Outcome::Negative })
    }
}

/// The host that a text means; else what is said of it: there is none, or there are several.
fn host(sessions: &[SubscriberStatus], text: &str) -> Result<Host, String> {
    let mut hosts = BTreeMap::new();
    // A user's whole name is theirs, also where it stands in that of others.
    let is_user = sessions.iter().any(|session| session.user == text);
    let is_its =
        |session: &&SubscriberStatus| if is_user { session.user == text } else { is_meant(session, text) };
    for session in sessions.iter().filter(is_its) {
        hosts.entry((session.mac.as_str(), session.tags.as_str())).or_insert(session);
    }
    if let [((mac, tags), _)] = hosts.iter().take(2).collect::<Vec<_>>()[..] {
        let cannot = |error: &dyn Display| format!("{mac}, {tags}: {error}");
        let station = mac.parse().map_err(|error: MacAddressError| cannot(&error))?;
        return Ok(Host {
            station,
            tags: Some(tags.parse().map_err(|error: EncapsulationError| cannot(&error))?),
        });
    }
    match text.parse() {
        // In several VLANs, or in none yet.
        Ok(station) => Ok(Host { station, tags: None }),
        Err(_) if hosts.is_empty() => Err(format!(
            "no session is of `{}`: `rxlane pppoe sessions` lists them; a host without one is named by its MAC address",
            printable(text)
        )),
        Err(_) => {
            let all = plural(hosts.len() as u64, "host");
            let name = |((mac, tags), session): (&(&str, &str), &&SubscriberStatus)| {
                format!("{} ({mac}, {tags})", printable(&session.user))
            };
            let names: Vec<String> =
                hosts.iter().take(NAMED).map(|(place, session)| name((place, session))).collect();
            let more = if hosts.len() > NAMED { " and others" } else { "" };
            Err(format!(
                "`{}` means {all}: {}{more}; name one by its MAC address or its VLANs (100.200)",
                printable(text),
                names.join(", ")
            ))
        }
    }
}

/// Lets PPPoE frames from and to the host through.
fn filter(host: &Host) -> Vec<Instruction> {
    let mut program = Program::default();
    let is_its = program.label();
    program.station(host.station, To::Label(is_its), To::Refuse);
    program.here(is_its);
    match &host.tags {
        Some(tags) => program.tags(&tags.tags().iter().map(|tag| Level::from(*tag)).collect::<Vec<_>>()),
        None => program.any_tags(TAGS),
    }
    program.load_behind(0);
    program.equals(EtherType::PPPOE_DISCOVERY.0, To::Accept, To::Next);
    program.equals(EtherType::PPPOE_SESSION.0, To::Accept, To::Refuse);
    program.finish()
}

fn take(
    interface: &str,
    filter: &[Instruction],
    limits: &Limits,
    file: &mut dyn Write,
) -> anyhow::Result<Sample> {
    let stop = stop_by_signals()?;
    let name = interface.parse().with_context(|| format!("`{}`", printable(interface)))?;
    let mut line = Progress::new();
    let mut is_listening = false;
    let taken = sample::mirror(&name, filter, limits, file, &mut |taken| {
        // Who waits for a host that connects may let it do so now.
        if !std::mem::replace(&mut is_listening, true) {
            complain(&format!("capturing on {}; ^C ends it", printable(interface)));
        }
        line.show(&format!("{}, {:.0} s", plural(taken.frames, "frame"), taken.elapsed.as_secs_f64()));
        !stop.load(Ordering::Relaxed)
    });
    drop(line);
    taken.map_err(|error| {
        let error = anyhow::Error::from(error);
        if lacks_privilege(&error) {
            return Lacks(format!(
                "capturing on {} takes CAP_NET_RAW: run rxlane as root",
                printable(interface)
            ))
            .into();
        }
        error
    })
}

fn said(
    out: &mut Output,
    path: &std::path::Path,
    host: &Host,
    taken: &Sample,
    is_file: bool,
) -> io::Result<()> {
    let frames = plural(taken.frames, "frame");
    if taken.dropped > 0 {
        complain(&format!("the machine was too slow for {} more", plural(taken.dropped, "frame")));
    }
    match taken.end {
        End::Bytes => complain("1 GiB is full: the capture ends here"),
        End::Down => complain("the interface went down: the capture ends here"),
        _ => {}
    }
    if is_file {
        let path = path.display().to_string();
        let way = match taken.frames {
            0 => String::new(),
            _ => format!("; `rxlane explain {}` explains them", quoted(&path)),
        };
        let time = format::duration(taken.elapsed.as_secs_f64());
        writeln!(out, "{}: {frames} of {} in {time}{way}", printable(&path), host.station)?;
    }
    Ok(())
}
