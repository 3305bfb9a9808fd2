//! Two stations with stock programs on the ends of a cable, and the exchanges of which the project's own test captures
//! are made.

use super::exchange::{self, Traffic};
use super::lines::{self, FAR, Line, NEAR};
use super::peers::{self, Login, Server, Subscriber};
use super::{Cable, Frame, connected, summary, tshark, write};
use crate::{Guest, Lab, Model, Nic, Series, Spec};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A capture above this is not small any more, bytes.
pub const LARGEST: u64 = 50 << 10;
/// When nothing has passed for so long, an exchange is over: the end that was requested to terminate a link waits three seconds
/// (RFC 1661 section 4.6) before it ends the session. Interfaces that have just got addresses have no more to report then
/// (RFC 3810 section 9.11).
const QUIET: Duration = Duration::from_secs(4);
/// How often an exchange is recorded before a flaw counts as one of the exchange.
const TRIES: usize = 3;

/// What one capture is recorded of.
type Exchange = fn(&Stage<'_>) -> Result<Vec<Frame>>;

const EXCHANGES: [(&str, Exchange); 13] = [
    ("pppoe_pap", |stage| stage.session(Line::Untagged, Login::Pap, Traffic::Everyday)),
    ("pppoe_chap", |stage| stage.session(Line::Untagged, Login::Chap, Traffic::Everyday)),
    ("pppoe_refused", |stage| stage.refused()),
    ("pppoe_max_payload", |stage| stage.max_payload()),
    ("pppoe_fragments", |stage| stage.session(Line::Untagged, Login::Pap, Traffic::Fragments)),
    ("pppoe_ipv6_extensions", |stage| stage.session(Line::Untagged, Login::Pap, Traffic::Extensions)),
    ("vlan_pppoe", |stage| stage.session(Line::Vlan, Login::Pap, Traffic::Everyday)),
    ("qinq_pppoe", |stage| stage.session(Line::Provider, Login::Chap, Traffic::Everyday)),
    ("qinq_8100_pppoe", |stage| stage.session(Line::Twice, Login::Pap, Traffic::Everyday)),
    ("qinq_pppoe_two_sessions", |stage| stage.two_sessions()),
    ("vlan_ip", |stage| stage.without_pppoe(Line::Vlan)),
    ("qinq_ip", |stage| stage.without_pppoe(Line::Provider)),
    ("qinq_8100_ip", |stage| stage.without_pppoe(Line::Twice)),
];

/// The names of all captures, in the order in which they are recorded.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXCHANGES.into_iter().map(|(name, _)| name)
}

/// The guest with both stations set up, and the cable between them.
#[derive(Debug)]
pub struct Stage<'a> {
    guest: &'a Guest,
    cable: &'a Cable<'a>,
}

/// A guest that others keep from running acknowledges late: neither end sends anything again for that (Linux 6.11 and later).
const PATIENT: &str = "for within in '' 'ip netns exec far'; do \
    $within sysctl -qw net.ipv4.tcp_rto_min_us=10000000 net.ipv4.tcp_early_retrans=0; done";

/// Boots a guest, sets both stations up and hands them over.
///
/// # Errors
///
/// Those of `work`; the guest does not boot, or lacks a program.
pub fn staged<T>(lab: &Lab, work: impl FnOnce(&Stage<'_>) -> Result<T>) -> Result<T> {
    let nics = vec![Nic::new(NEAR, Model::Igb), Nic::new(FAR, Model::Igb)];
    let guest = lab.boot(&Spec { cpus: 2, nics, ..Spec::new(Series::V6_12) })?;
    connected(&guest, NEAR, FAR, |cable| {
        lines::set_up(&guest)?;
        peers::set_up(&guest)?;
        exchange::set_up(&guest)?;
        guest.sh(PATIENT)?;
        work(&Stage { guest: &guest, cable })
    })
}

impl Stage<'_> {
    /// Records an exchange into a file, and gives what tshark counts in it. A recording with a frame that only a slow
    /// guest or a bad cable makes is done anew.
    ///
    /// # Errors
    ///
    /// There is no exchange of that name, a station does not do its part, the capture is large, or has flaws each time.
    pub fn record(&self, name: &str, path: &Path, tshark: &Path) -> Result<Value> {
        let exchange = EXCHANGES.into_iter().find(|(known, _)| *known == name);
        let (_, exchange) = exchange.with_context(|| {
            format!("there is no exchange {name}, only {}", names().collect::<Vec<_>>().join(", "))
        })?;
        let mut flaws = Vec::new();
        for _ in 0..TRIES {
            write(path, &exchange(self)?)?;
            flaws = tshark::flaws(tshark, path)?;
            if flaws.is_empty() {
                let bytes = fs::metadata(path)?.len();
                ensure!(bytes <= LARGEST, "{bytes} bytes are more than {LARGEST}");
                return summary::of(tshark, path);
            }
            eprintln!("{name}: recorded anew because of frame {}", flaws.join(", frame "));
        }
        anyhow::bail!("in each of {TRIES} recordings are flaws, in the last frame {}", flaws.join(", frame "))
    }

    /// What passes the cable from now on until it is quiet after the work.
    fn recorded(&self, work: impl FnOnce() -> Result<()>) -> Result<Vec<Frame>> {
        self.await_quiet()?;
        self.cable.take();
        work()?;
        self.await_quiet()?;
        Ok(self.cable.take())
    }

    fn await_quiet(&self) -> Result<()> {
        self.cable.await_quiet(QUIET, QUIET * 10)
    }

    /// A session from discovery to its end, with traffic in it.
    fn session(&self, line: Line, login: Login, traffic: Traffic) -> Result<Vec<Frame>> {
        let server = Server::start(self.guest, &[line], login)?;
        let frames = self.recorded(|| {
            let subscriber = Subscriber::start(self.guest, line, 0, "secret")?;
            subscriber.await_addresses()?;
            traffic.exchange(self.guest, 0)?;
            subscriber.hang_up()
        })?;
        server.stop()?;
        Ok(frames)
    }

    /// Both customers of one provider tag are online at once.
    fn two_sessions(&self) -> Result<Vec<Frame>> {
        let server = Server::start(self.guest, &[Line::Provider, Line::ProviderNeighbour], Login::Chap)?;
        let frames = self.recorded(|| {
            let first = Subscriber::start(self.guest, Line::Provider, 0, "secret")?;
            first.await_addresses()?;
            let second = Subscriber::start(self.guest, Line::ProviderNeighbour, 1, "secret")?;
            second.await_addresses()?;
            for unit in [0, 1] {
                Traffic::Brief.exchange(self.guest, unit)?;
            }
            first.hang_up()?;
            second.hang_up()
        })?;
        server.stop()?;
        Ok(frames)
    }

    /// The password is wrong, by either protocol.
    fn refused(&self) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        for login in [Login::Pap, Login::Chap] {
            let server = Server::start(self.guest, &[Line::Untagged], login)?;
            frames.extend(
                self.recorded(|| Subscriber::start(self.guest, Line::Untagged, 0, "wrong")?.await_refusal())?,
            );
            server.stop()?;
        }
        Ok(frames)
    }

    /// The subscriber asks for 1,500 bytes in a session (RFC 4638) on a line that has room for them.
    fn max_payload(&self) -> Result<Vec<Frame>> {
        lines::resize(self.guest, 1508)?;
        let frames = self.session(Line::Untagged, Login::Pap, Traffic::Everyday);
        lines::resize(self.guest, 1500)?;
        frames
    }

    /// Addresses are there before the recording begins and go after it, since what interfaces say when they get or lose
    /// addresses comes by chance and is no part of the exchange.
    fn without_pppoe(&self, line: Line) -> Result<Vec<Frame>> {
        line.address(self.guest)?;
        let frames = self.recorded(|| Traffic::Plain.exchange(self.guest, 0));
        line.unaddress(self.guest)?;
        frames
    }

    /// What talked and what listened, a line each.
    ///
    /// # Errors
    ///
    /// One of the programs does not say.
    pub fn versions(&self, tshark: &Path) -> Result<String> {
        let within = "uname -rv; pppd --version 2>&1; \
                      pppoe-server -h 2>&1 | sed -n 's/, Copyright.*//; s/^PPPoE-Server Version/pppoe-server version/p'; \
                      busybox | sed -n '1s/ multi-call.*//p'; perl -e 'print \"perl $^V\\n\"'";
        let lines = [
            format!("Linux {}", self.guest.sh(within)?.trim()),
            crate::machine::emulator()?,
            tshark::version(tshark)?,
        ];
        Ok(lines.join("\n") + "\n")
    }
}
