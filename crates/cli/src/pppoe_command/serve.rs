//! `rxlane pppoe serve`.

mod plan;

use super::options::Auth;
use super::radius_file;
use super::speaker::Speaker;
use super::subscribers_file::{Means, SubscribersFile};
use super::{BOLD, POOR, StateArguments, item, workers};
use crate::arguments::address;
use crate::arguments::numbers::bit_rate;
use crate::background::{self, DaemonArguments, no_signals, unread};
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use anyhow::{anyhow, bail};
use concentrator::Error;
use concentrator::{ConcentratorStatus, End, Over, Prepared, Servers, Start, Unwritten};
use format::quoted;
use format::{Quotable, plural, printable};
use link::batch::Io;
use link::error::Kind;
use pppoe::concentrator::network::Network;
use pppoe::concentrator::pool::NamedRange;
use pppoe::concentrator::secrets::Secrets;
use pppoe::concentrator::{BitRates, Config, MOST_SERVERS, Restored, SameUser};
use pppoe::discovery::limits::{Rate, Rates};
use service::control::report_end;
use service::daemon::Leaving;
use service::log::Log;
use service::memory;
use service::notify;
use service::signals::{HangUp, end_requests};
use service::{Instances, Kind as ServiceKind};
use signal_hook::consts::{SIGHUP, SIGUSR1};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use wire::VlanPattern;

#[derive(clap::Args)]
#[command(after_help = "\
One interface carries all subscribers. It serves until SIGTERM, SIGINT, SIGHUP or `rxlane pppoe disconnect --concentrator IFACE` asks for \
the end, and subscribers get a PADT. SIGUSR1, and SIGHUP with --daemon, has the secrets read again. A second `serve --takeover` goes on with the sessions of the first, which ends; subscribers do not \
notice.\n\n\
Exit codes: 0 ended on request, or another process goes on, 1 another one serves the interface or begins to, it went away, \
packets of --mtu do not fit, rules would not see packets that XDP forwards, or a takeover came to nothing and it could not go on, 2 wrong usage or secrets, 3 a privilege or the kernel's \
TUN driver is missing.\n\n\
Examples:\n  \
rxlane pppoe serve eth1 --secrets subscribers.toml --local 100.64.0.1 --pool 100.64.0.2-100.64.255.254\n  \
rxlane pppoe serve eth1 --vlan '100.*' --secrets /etc/ppp/chap-secrets --local 10.0.0.1 --pool 10.0.0.2-10.0.0.254 --prefix 2001:db8:100::/48 --delegate 2001:db8:8000::/36,56")]
pub struct ServeArguments {
    /// Ethernet interface with the lines of the subscribers.
    #[arg(value_name = "IFACE")]
    interface: String,
    /// Who may connect: a file in TOML, or of pppd's `pap-secrets` and `chap-secrets` form; SIGUSR1 has it read again, and SIGHUP with --daemon.
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// RADIUS servers that authenticate subscribers whom the secrets do not name, and get records of accounting: a file in TOML.
    #[arg(long, value_name = "FILE", conflicts_with = "anybody")]
    radius: Option<PathBuf>,
    /// Accept subscribers without authentication.
    #[arg(long, conflicts_with_all = ["secrets", "auth"])]
    anybody: bool,
    /// What subscribers have to authenticate by, in order of preference [default: chap,ms-chap-v2,pap].
    #[arg(long, value_enum, value_delimiter = ',')]
    auth: Option<Vec<Auth>>,
    /// Own IPv4 address, the gateway of all subscribers.
    #[arg(long, value_name = "ADDRESS", value_parser = address::<Ipv4Addr>("10.0.0.1"))]
    local: Option<Ipv4Addr>,
    /// Addresses for subscribers; may be given several times. With a name, for those for whom RADIUS (Framed-Pool) or the secrets name it. The
    /// own one may be among them, and is given to nobody.
    #[arg(long, value_name = "[NAME=]FIRST-LAST", requires = "local")]
    pool: Vec<NamedRange>,
    /// Name servers for subscribers; may be given several times: two of IPv4 and three of IPv6 at most.
    #[arg(long, value_name = "ADDRESS", value_parser = address::<IpAddr>("10.0.0.1 or 2001:db8::53"))]
    dns: Vec<IpAddr>,
    /// IPv6 network of which each link gets a prefix of 64 bits.
    #[arg(long, value_name = "PREFIX/BITS")]
    prefix: Option<Network>,
    /// IPv6 network of which each subscriber is delegated a prefix of so many bits, for the networks behind the host.
    #[arg(long, value_name = "PREFIX/BITS,BITS", value_parser = delegation)]
    delegate: Option<(Network, u8)>,
    /// Bits of IP packets a second to each subscriber for whom neither the secrets nor RADIUS say another rate (50M) [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = bit_rate)]
    download: Option<u64>,
    /// The same from each.
    #[arg(long, value_name = "RATE", value_parser = bit_rate)]
    upload: Option<u64>,
    /// Whether to speak IPv6.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    ipv6: bool,
    /// Lines to serve: `none`, `any`, or VLANs from outermost to innermost with `*` for any and a range for some, as `100-199.*` [default: none].
    #[arg(long, value_name = "PATTERN")]
    vlan: Option<VlanPattern>,
    /// Name of this concentrator (AC-Name).
    #[arg(long, value_name = "NAME", default_value = "rxlane")]
    name: String,
    /// Service to offer by name; may be given several times [default: any].
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Longest IP packets, bytes; above 1492 with subscribers that ask for it (RFC 4638).
    #[arg(long, value_name = "BYTES", default_value_t = 1492, value_parser = clap::value_parser!(u16).range(576..=9000))]
    mtu: u16,
    /// Name of the interface of all subscribers.
    #[arg(long, value_name = "NAME", default_value = "pppoe0")]
    ifname: String,
    /// Lower the maximum segment size of TCP to what fits each subscriber.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    mss_clamp: bool,
    /// Sessions at the same time.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_sessions: u32,
    /// Sessions of a MAC address at the same time, on one line.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    sessions_per_mac: u32,
    /// Sessions of a line that access nodes name (circuit and remote id) at the same time [default: any number].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sessions_per_circuit: Option<u32>,
    /// Sessions of a stack of VLAN tags at the same time.
    #[arg(long, value_name = "N", default_value_t = 65_000, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    sessions_per_vlan: u32,
    /// Sessions of a user at the same time, where the secrets say nothing else.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sessions_per_user: u32,
    /// What happens to a further session of a user.
    #[arg(long, value_enum, default_value_t = OneMore::Replace)]
    same_user: OneMore,
    /// PADI and PADR, each, of a host that are answered: so many a second, and with a colon how many at once.
    #[arg(long, value_name = "RATE[:BURST]", default_value_t = Rates::DEFAULT.host)]
    host_rate: Rate,
    /// The same of a line, a stack of VLAN tags.
    #[arg(long, value_name = "RATE[:BURST]", default_value_t = Rates::DEFAULT.vlan)]
    line_rate: Rate,
    /// The same of all together.
    #[arg(long, value_name = "RATE[:BURST]", default_value_t = Rates::DEFAULT.port)]
    total_rate: Rate,
    /// Seconds of silence after which a subscriber is sent an echo request.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=3600))]
    echo_interval: u16,
    /// Unanswered echo requests after which the session ends.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    echo_failures: u16,
    /// Regular file to which a line of JSON is added when a session begins and when it ends.
    #[arg(long, value_name = "FILE")]
    accounting: Option<PathBuf>,
    /// Seconds between further lines, and further records for RADIUS, of each session.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    interim: Option<u32>,
    /// Threads that move packets [default: one a CPU, at most 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// What moves packets.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DataPath::Batch)]
    datapath: DataPath,
    /// With `--datapath xdp`: interface to the rest of the world, from and to which packets of subscribers are forwarded in XDP; may be given several times.
    #[arg(long, value_name = "IFACE", required_if_eq("datapath", "xdp"))]
    uplink: Vec<String>,
    /// Go on with the sessions of the process that serves the interface now, which ends.
    #[arg(long)]
    takeover: bool,
    /// Show what would be done, with all that is wrong with the secrets and whether RADIUS servers answer, and send hosts nothing.
    #[arg(long, conflicts_with_all = ["daemon", "takeover"])]
    dry_run: bool,
    #[command(flatten)]
    daemon: DaemonArguments,
    #[command(flatten)]
    state: StateArguments,
}

/// `2001:db8:8000::/36,56`
fn delegation(text: &str) -> Result<(Network, u8), String> {
    let expected = || {
        "expected a network and the bits of each prefix in it, 64 at most, such as 2001:db8:8000::/36,56"
            .to_owned()
    };
    let (network, length) = text.split_once(',').ok_or_else(expected)?;
    let network: Network = network.trim().parse().map_err(|error| format!("{error}"))?;
    let length =
        length.trim().trim_start_matches('/').parse().ok().filter(|length| (1..=64).contains(length));
    Ok((network, length.ok_or_else(expected)?))
}

/// What moves packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DataPath {
    /// Threads of this process, through the interface of all subscribers.
    Batch,
    /// Programs in XDP in front of them, between the lines and the uplinks.
    Xdp,
}

/// What happens to a session of a user who has as many as allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OneMore {
    /// The oldest one ends.
    Replace,
    /// The new one is refused.
    Refuse,
}

impl ServeArguments {
    pub fn run(mut self, out: &mut Output) -> CommandResult {
        // A daemon goes to another folder, and reads them again there.
        self.secrets = self.secrets.map(|file| std::path::absolute(&file).unwrap_or(file));
        self.radius = self.radius.map(|file| std::path::absolute(&file).unwrap_or(file));
        let config = self.config()?;
        if self.dry_run {
            return self.plan(out, &config);
        }
        // Where nobody may serve, it matters neither who does nor whether the secrets can be read.
        super::expect_privilege("serving")?;
        let secrets = self.subscribers().read()?;
        let radius = self.servers()?;
        if self.daemon.is_caller() {
            self.daemon.expect_no_manager("the concentrator")?;
            return background::start(&[]);
        }
        let mut log = None;
        let result = self.serve(out, config, (secrets, radius), &mut log);
        background::end(log, out, result)
    }

    fn means(&self) -> Means<'_> {
        Means {
            name: &self.name,
            has_local: self.local.is_some(),
            pools: &self.pool,
            asks: self.radius.is_some(),
        }
    }

    /// Whom to ask, and who gets records.
    fn servers(&self) -> anyhow::Result<Option<Servers>> {
        let read = |path: &PathBuf| radius_file::read(path, &self.name, !self.daemon.is_caller());
        self.radius.as_ref().map(read).transpose()
    }

    /// What says who may connect.
    fn subscribers(&self) -> SubscribersFile {
        SubscribersFile {
            path: self.secrets.clone(),
            anybody: self.anybody || self.radius.is_some(),
            server: self.name.clone(),
            own: self.local,
            // Of two processes the daemon.
            warns: !self.daemon.is_caller(),
        }
    }

    /// Those of IPv4, which IPCP carries, and those of IPv6.
    fn name_servers(&self) -> anyhow::Result<([Option<Ipv4Addr>; 2], Vec<Ipv6Addr>)> {
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for server in &self.dns {
            match server {
                IpAddr::V4(server) => four.push(*server),
                IpAddr::V6(server) => six.push(*server),
            }
        }
        if four.len() > 2 {
            bail!("--dns: PPP carries two name servers of IPv4 at most (RFC 1877)");
        }
        if six.len() > MOST_SERVERS {
            bail!(
                "--dns: hosts use {MOST_SERVERS} name servers of IPv6 at most: leave {} of them out",
                six.len() - MOST_SERVERS
            );
        }
        Ok(([four.first().copied(), four.get(1).copied()], six))
    }

    fn config(&self) -> anyhow::Result<Config> {
        expect_name("--name", &self.name)?;
        if let (DataPath::Batch, Some(uplink)) = (self.datapath, self.uplink.first()) {
            bail!("--uplink {uplink} is for --datapath xdp: add that, or leave --uplink out");
        }
        self.service.iter().try_for_each(|service| expect_name("--service", service))?;
        let mut config = Config::new(self.name.as_bytes());
        config.discovery.services = self.service.iter().map(|name| name.clone().into_bytes()).collect();
        config.discovery.any_service = self.service.is_empty();
        config.discovery.max_payload = self.mtu;
        let rates = Rates { host: self.host_rate, vlan: self.line_rate, port: self.total_rate };
        (config.discovery.offers, config.discovery.requests) = (rates, rates);
        if let Some(auth) = &self.auth {
            config.methods = auth.iter().map(|auth| auth.method()).collect();
        }
        if self.anybody {
            config.methods.clear();
        }
        config.timers.echo = Duration::from_secs(self.echo_interval.into());
        config.timers.echo_failures = self.echo_failures.into();
        config.local = self.local;
        for NamedRange { name, range } in self.pool.clone() {
            match name {
                None => config.pool.push(range),
                Some(name) => config.named_pools.entry(name).or_default().push(range),
            }
        }
        (config.dns, config.dns6) = self.name_servers()?;
        // Any but zero; that of every link is the same, as fe80::1 of other routers.
        config.identifier = self.ipv6.then_some(1);
        let delegate = self.delegate.map(|(network, length)| format!("--delegate {network},{length}"));
        let prefix = self.prefix.map(|network| format!("--prefix {network}"));
        if let (Some(option), false) = (prefix.or(delegate), self.ipv6) {
            bail!(
                "{option} and --ipv6 false contradict each other: prefixes are for IPv6; leave one of them out"
            );
        }
        (config.prefixes, config.delegated) = (self.prefix, self.delegate);
        config.rates = BitRates { download: self.download, upload: self.upload };
        config.caps.sessions = self.max_sessions;
        config.caps.station = self.sessions_per_mac;
        config.caps.line = self.sessions_per_circuit.unwrap_or(u32::MAX);
        config.caps.place = self.sessions_per_vlan;
        config.sessions_per_user = self.sessions_per_user;
        config.same_user = match self.same_user {
            OneMore::Replace => SameUser::Replace,
            OneMore::Refuse => SameUser::Refuse,
        };
        config.asks = self.radius.is_some();
        if self.interim.is_some() && self.accounting.is_none() && self.radius.is_none() {
            bail!("--interim is for records: add --accounting FILE or --radius FILE");
        }
        config.interim = self.interim.map(|seconds| Duration::from_secs(seconds.into()));
        config.check().map_err(|error| anyhow!("{error}"))?;
        Ok(config)
    }

    fn serve(
        &self,
        out: &mut Output,
        config: Config,
        (secrets, radius): (Secrets, Option<Servers>),
        log: &mut Option<Log>,
    ) -> CommandResult {
        // Before there is any thread: one that gets no memory ends the process.
        memory::expect(memory::BEGINNING)?;
        let hang_up = if self.daemon.is_daemon() { HangUp::Other } else { HangUp::Ends };
        let (stop, ask) = end_requests(hang_up).map_err(no_signals)?;
        let leaving = self.daemon.prepare(&self.ifname, &ask)?;
        let sockets = self.state.instances(ServiceKind::Concentrator)?;
        if !self.takeover
            && let Ok(other) = sockets.ask::<ConcentratorStatus>(&self.interface, "status")
        {
            complain(&format!(
                "the process {} serves {1} already: `--takeover` goes on with its sessions, `rxlane pppoe disconnect --concentrator \
                 {1}` ends it",
                other.pid,
                quoted(&self.interface)
            ));
            return Ok(Outcome::Negative);
        }
        let means = self.means();
        let unserved = means.unserved(&secrets, self.anybody);
        let start = self.start(config, secrets, radius);
        let records_lost = Arc::clone(&start.records_lost);
        let early = self.daemon.is_daemon().then(Vec::new);
        let mut speaker = Speaker::new(
            out.styled(POOR, "note"),
            self.accounting.as_deref().map(|path| (path, records_lost)),
            early,
        )?;
        let prepared = match Prepared::new(start, &sockets, stop, ask, &mut |event| speaker.hear(event)) {
            Ok(prepared) => prepared,
            Err(error) => return self.not_begun(error, &sockets),
        };
        // As long as another process has the sessions nothing is lost: whatever can fail is done before.
        let signals: &[i32] = if self.daemon.is_daemon() { &[SIGUSR1, SIGHUP] } else { &[SIGUSR1] };
        let reread = prepared.waker().and_then(|bell| self.subscribers().read_again(signals, bell));
        let reread = reread.map_err(no_signals)?;
        let has_former = prepared.has_former();
        let (serving, restored) = match prepared.begin(&mut |event| speaker.hear(event)) {
            Ok(begun) => begun,
            Err(error) => return self.not_begun(error, &sockets),
        };
        unserved.into_iter().chain(self.own_in_pool()).for_each(|said| speaker.note(said));
        let announced =
            unread(self.started(out, &restored).and_then(|()| out.flush())).map_err(anyhow::Error::from);
        if let Err(error) = announced.and_then(|()| self.leave(leaving, out, log, &mut speaker, &restored)) {
            // In the place of another process, which has ended, it goes on, though nobody may know of it: nobody else serves.
            if !has_former {
                return Err(error);
            }
            speaker.note(format!("{error:#}; this process serves all the same"));
        }
        // Without a service manager there is none to notify.
        let _ = notify::ready(&format!("serves {}", self.interface));
        let ended = serving.run(&mut |event| speaker.hear(event), &mut || reread.try_recv().ok());
        let _ = notify::stopping();
        let lost = speaker.finish();
        let unwritten = Unwritten {
            accounting: self.accounting.clone(),
            records_lost: lost,
            log_failure: service::log::failure(),
        };
        let End { over, waiting } = ended?;
        report_end(waiting, &unwritten);
        let outcome = self.ended(out, over)?;
        all_written(&unwritten)?;
        Ok(outcome)
    }

    fn start(&self, config: Config, secrets: Secrets, radius: Option<Servers>) -> Start {
        Start {
            parent: self.interface.clone(),
            name: self.ifname.clone(),
            vlans: self.vlan.unwrap_or(VlanPattern::NONE),
            workers: self.workers.map_or_else(|| workers(Io::AfPacket), usize::from),
            uplinks: self.uplink.clone(),
            mss_clamp: self.mss_clamp,
            config,
            secrets,
            radius,
            is_takeover: self.takeover,
            records_lost: Arc::new(AtomicU64::new(0)),
        }
    }

    /// That the own address is in a pool, which is no mistake.
    fn own_in_pool(&self) -> Option<String> {
        let local = self.local?;
        let range = self.pool.iter().map(|pool| pool.range).find(|range| range.contains(local))?;
        Some(format!("{local} of the pool {range} is the own address, and given to nobody"))
    }

    /// Why it does not serve, and that another process still does.
    fn not_begun(&self, error: Error, sockets: &Instances) -> CommandResult {
        let off =
            matches!(&error, Error::Link(link::Error::Address { address, .. }) if address.local.is_ipv6());
        let advice = if off { "; or `--ipv6 false` serves IPv4 alone" } else { "" };
        let other = || sockets.ask::<ConcentratorStatus>(&self.interface, "status").ok();
        let kept = match self.takeover.then(other).flatten() {
            Some(other) => format!("; the process {} goes on with the sessions", other.pid),
            None => String::new(),
        };
        let text = format!("{error}{advice}{kept}");
        match error.kind() {
            Kind::Usage => Err(anyhow!("{text}")),
            Kind::Lacks => Err(Lacks(text).into()),
            Kind::No => {
                complain(&text);
                Ok(Outcome::Negative)
            }
        }
    }

    /// Goes to the background, if that was requested.
    fn leave(
        &self,
        leaving: Option<Leaving>,
        out: &mut Output,
        log: &mut Option<Log>,
        speaker: &mut Speaker,
        restored: &Restored,
    ) -> anyhow::Result<()> {
        let Some(leaving) = leaving else { return Ok(()) };
        speaker.leave(leaving, out, log)?;
        let sessions = self.continued(restored).map(|sessions| format!("; {sessions}")).unwrap_or_default();
        let interface = printable(&self.interface);
        speaker.say(format!("{} serves {interface}{sessions}.\n", self.name));
        // The log begins with what was said on the terminal alone, as why sessions were not taken over.
        speaker.repeat_early();
        Ok(())
    }

    fn started(&self, out: &mut Output, restored: &Restored) -> io::Result<()> {
        writeln!(
            out,
            "{}",
            out.styled(BOLD, format!("{} serves {}.", self.name, printable(&self.interface)))
        )?;
        item(out, "interface", &self.ifname)?;
        self.forwarding(out)?;
        self.continued(restored).map_or(Ok(()), |sessions| item(out, "sessions", &sessions))?;
        let name = quoted(&self.interface);
        item(out, "status", &self.state.command(&format!("pppoe sessions {name}")))?;
        item(out, "end", &self.state.command(&format!("pppoe disconnect --concentrator {name}")))
    }

    /// Where packets are forwarded in XDP, if that is requested.
    fn forwarding(&self, out: &mut Output) -> io::Result<()> {
        if self.uplink.is_empty() {
            return Ok(());
        }
        item(
            out,
            "XDP",
            &format!("between {} and {}", printable(&self.interface), printable(&self.uplink.join(", "))),
        )
    }

    /// What became of the sessions of another process.
    fn continued(&self, restored: &Restored) -> Option<String> {
        let Restored { sessions, ended, draining } = *restored;
        let sessions = plural(sessions as u64, "session");
        let drained = if draining {
            let undo = self.state.command(&format!("pppoe drain {} --undo", quoted(&self.interface)));
            format!("; no more are taken (`{undo}` takes them again)")
        } else {
            String::new()
        };
        if self.takeover {
            return Some(format!("{sessions} taken over, {ended} disconnected (PADT){drained}"));
        }
        let is_continued = *restored != Restored::default();
        is_continued
            .then(|| format!("{sessions} of a process that was killed, {ended} disconnected (PADT){drained}"))
    }

    fn ended(&self, out: &mut Output, over: Over) -> CommandResult {
        let text = match over {
            Over::Requested => format!("{} serves no more.", self.name),
            Over::HandedOver => "Another process goes on with the sessions.".to_owned(),
            Over::Orphaned => {
                complain(
                    "the process that was to go on with the sessions has ended; subscribers were disconnected (PADT) and connect again",
                );
                return Ok(Outcome::Negative);
            }
            Over::ParentRemoved => {
                complain(&format!("{} was removed, or went to another network namespace", self.interface));
                return Ok(Outcome::Negative);
            }
            Over::InterfaceDeleted => {
                complain(&format!("somebody deleted {}", self.ifname));
                return Ok(Outcome::Negative);
            }
        };
        unread(writeln!(out, "{text}").and_then(|()| out.flush()))?;
        Ok(Outcome::Success)
    }
}

/// Sees that accounts and log have everything: who ends a concentrator must not think so where a disk was full.
pub fn all_written(unwritten: &Unwritten) -> Result<(), Lacks> {
    let Unwritten { accounting, records_lost, log_failure } = unwritten;
    let accounts = accounting.as_deref().filter(|_| *records_lost > 0).map(|file| {
        format!("{} lacks {}", printable(&file.to_string_lossy()), plural(*records_lost, "accounting record"))
    });
    let all: Vec<String> = accounts.into_iter().chain(log_failure.clone()).collect();
    if all.is_empty() { Ok(()) } else { Err(Lacks(format!("{}; `df` shows full disks", all.join("; ")))) }
}

/// A name that hosts and terminals display: UTF-8 by RFC 2516 appendix A.
fn expect_name(option: &str, name: &str) -> anyhow::Result<()> {
    if name.is_empty() {
        bail!("{option}: the name is empty, and nobody could ask for it; leave the option out");
    }
    if name.chars().any(char::is_control) {
        bail!(
            "{option}: \"{}\" has control characters, which a name is shown without",
            Quotable(name.as_bytes())
        );
    }
    Ok(())
}
