//! What `rxlane pppoe connect` is told: options of the command line, and the same names in a file of configuration (TOML).

use super::password::PasswordSource;
use super::{regular_file, workers};
use anyhow::anyhow;
use clap::Args;
use link::batch::Io;
use link::running::Means;
use pppoe::client::{Config, Reconnect};
use pppoe::discovery::PLAIN_PAYLOAD;
use pppoe::discovery::host as discovery;
use pppoe::discovery::offer::Pin;
use pppoe::session::{self, Host, Method, Role, Timers};
use serde::Deserialize;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::emit::Encapsulation;

/// The usual name of the interface.
const IFNAME: &str = "ppp0";
/// What is agreed to if nobody says: the password does not go over the line where there is a choice.
const AUTH: [Auth; 3] = [Auth::Chap, Auth::MsChapV2, Auth::Pap];

/// What the numbers may be, on the command line and in a file.
const MTU: RangeInclusive<i64> = 128..=9000;
const ECHO_INTERVAL: RangeInclusive<i64> = 1..=3600;
const ECHO_FAILURES: RangeInclusive<i64> = 1..=100;
const WORKERS: RangeInclusive<i64> = 1..=256;
const NUMBERS: [(&str, RangeInclusive<i64>); 4] =
    [("mtu", MTU), ("echo-interval", ECHO_INTERVAL), ("echo-failures", ECHO_FAILURES), ("workers", WORKERS)];

/// The options. Each stands in a file by the same name, without the dashes; what is on the command line comes first.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Options {
    /// Ethernet interface with the line; may stand in the file as `interface`.
    #[arg(value_name = "IFACE")]
    pub interface: Option<String>,
    /// Name to authenticate with.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// File whose first line is the password; without it RXLANE_PPPOE_PASSWORD is taken, or the terminal asked.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Methods of authentication to agree to, the most wanted first [default: chap,ms-chap-v2,pap].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub auth: Option<Vec<Auth>>,
    /// VLAN tags of the line, outermost first: 35, or 100.200.
    #[arg(long, value_name = "VID[.VID…]")]
    pub vlan: Option<String>,
    /// TPID of the outermost tag [default: 0x8100 of one tag, 0x88a8 of several].
    #[arg(long, value_name = "0xTPID", requires = "vlan")]
    pub tpid: Option<String>,
    /// Service to ask for [default: any].
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Only this concentrator, by its name or MAC address.
    #[arg(long, value_name = "NAME|MAC")]
    pub ac: Option<String>,
    /// Longest IP packets, octets [default: 1492]; more than 1492 where both ends can (RFC 4638), else 1492.
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(MTU))]
    pub mtu: Option<u16>,
    /// Name of the network interface [default: ppp0].
    #[arg(long, value_name = "NAME")]
    pub ifname: Option<String>,
    /// Send everything that has no other way through the session.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub default_route: Option<bool>,
    /// Metric of the default routes; of several the least is used [default: the least: 0, for IPv6 1].
    #[arg(long, value_name = "N")]
    pub metric: Option<u32>,
    /// Make the name servers that the concentrator names those of this machine.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub dns: Option<bool>,
    /// Whether to ask for IPv4 [default: true].
    #[arg(long, value_name = "BOOL")]
    pub ipv4: Option<bool>,
    /// Whether to ask for IPv6 [default: true].
    #[arg(long, value_name = "BOOL")]
    pub ipv6: Option<bool>,
    /// Lower the maximum segment size of TCP to what fits [default: true].
    #[arg(long, value_name = "BOOL")]
    pub mss_clamp: Option<bool>,
    /// Program to run when a session is up, with the arguments and variables of pppd's ip-up.
    #[arg(long, value_name = "FILE")]
    pub up_script: Option<PathBuf>,
    /// Program to run when a session is over.
    #[arg(long, value_name = "FILE")]
    pub down_script: Option<PathBuf>,
    /// Whether to try again after a failure, and to come back after an end [default: true].
    #[arg(long, value_name = "BOOL")]
    pub reconnect: Option<bool>,
    /// Seconds of silence after which the other end is asked whether it lives [default: 20].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(ECHO_INTERVAL))]
    pub echo_interval: Option<u16>,
    /// Questions without an answer after which it is dead [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(ECHO_FAILURES))]
    pub echo_failures: Option<u16>,
    /// How packets are moved [default: batch].
    #[arg(long, value_enum)]
    pub datapath: Option<Datapath>,
    /// Threads that move packets [default: one a CPU, at most 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(WORKERS))]
    pub workers: Option<u16>,
    /// How frames leave the parent [default: af-packet].
    #[arg(long, value_enum)]
    pub io: Option<WayOut>,
}

/// Methods of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// PAP: the password goes over the line as it is.
    Pap,
    /// CHAP with MD5.
    Chap,
    /// MS-CHAPv2.
    MsChapV2,
}

/// How packets are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// One packet a system call: the reference.
    Simple,
    /// Super-packets, rings and batches, by one or more workers.
    Batch,
}

/// How frames leave the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayOut {
    /// Packet sockets.
    AfPacket,
    /// Transmit rings of XDP sockets: cheaper, but past the queueing discipline of the parent.
    AfXdp,
}

impl Auth {
    /// What it is in PPP.
    pub fn method(self) -> Method {
        match self {
            Auth::Pap => Method::Pap,
            Auth::Chap => Method::ChapMd5,
            Auth::MsChapV2 => Method::MsChapV2,
        }
    }
}

/// Where the error is and what it is, without the line itself: who takes the file for the place of the password has it there.
fn in_words(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    let message = error.message();
    // These have the value in them, which may be the password as well.
    let has_value = ["invalid type", "invalid value", "invalid length", "unknown variant"];
    if let Some(name) = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        return format!("line {number}: {}", unknown(name));
    }
    if message.starts_with("string values must be quoted") {
        return format!("line {number}: expected text in quotes, a number without quotes, true or false");
    }
    if !has_value.iter().any(|beginning| message.starts_with(beginning)) {
        return format!("line {number}: {message}");
    }
    let key = before.rsplit('\n').next().and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
    let is_plain = |key: &&str| key.bytes().all(|octet| octet.is_ascii_lowercase() || octet == b'-');
    let key = key.filter(is_plain).unwrap_or_default();
    let expected = message.rsplit_once(", expected ").map_or("another value", |(_, expected)| expected);
    let expected = expected_by(key, expected);
    let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
    format!("line {number}: {key}expected {expected}")
}

/// What is wrong with a key that is none.
fn unknown(name: &str) -> String {
    let command = Options::augment_args(clap::Command::new("connect"));
    let names: Vec<&str> =
        command.get_arguments().map(|argument| argument.get_long().unwrap_or("interface")).collect();
    let close = names.iter().max_by(|one, other| similarity(name, one).total_cmp(&similarity(name, other)));
    let close = close.filter(|close| similarity(name, close) > 0.8);
    match (name, close) {
        ("password", _) => {
            "a password does not stand in this file: `password-file` names the one whose first line it is"
                .to_owned()
        }
        ("daemon" | "log" | "config", _) => format!("`{name}` is for the command line alone"),
        (_, Some(close)) => format!("there is no key `{name}`: is `{close}` meant?"),
        (_, None) => format!(
            "there is no key `{name}`: keys are the options of `rxlane pppoe connect --help` without the dashes, and there are no tables"
        ),
    }
}

/// Of names, whatever case they are in; from 0 to 1.
fn similarity(name: &str, other: &str) -> f64 {
    strsim::jaro_winkler(&name.to_ascii_lowercase().replace('_', "-"), other)
}

/// What the words of the parser mean to people.
fn expected_by(key: &str, words: &str) -> String {
    match words {
        "u16" | "u32" => NUMBERS.iter().find(|(name, _)| *name == key).map_or_else(
            || "a number without quotes, 0 or more".to_owned(),
            |(_, range)| format!("a number without quotes, {} to {}", range.start(), range.end()),
        ),
        "a string" | "path string" => format!("text in quotes: {key} = \"…\""),
        "a boolean" => "true or false, without quotes".to_owned(),
        "a sequence" => format!("a list: {key} = [\"…\"]"),
        _ => words.to_owned(),
    }
}

/// The line of an option in a file, for people.
fn line_of(key: &str, text: &str) -> String {
    let is_it = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    text.lines().position(is_it).map_or(String::new(), |line| format!("line {}: ", line + 1))
}

/// Reads options from a file.
///
/// # Errors
///
/// It cannot be read, or is not as it should be; the line is named.
pub fn from_file(path: &Path) -> anyhow::Result<Options> {
    let text = String::from_utf8(regular_file::read(path)?)
        .map_err(|_| anyhow!("{}: this is no UTF-8, which TOML has to be", path.display()))?;
    let mut options: Options =
        toml::from_str(&text).map_err(|error| anyhow!("{}: {}", path.display(), in_words(&error, &text)))?;
    if let Err((key, why)) = options.check() {
        return Err(anyhow!("{}: {}{key}: {why}", path.display(), line_of(key, &text)));
    }
    // Where a file is not said to be is beside the one that names it.
    let folder = path.parent().unwrap_or(Path::new("."));
    for file in [&mut options.password_file, &mut options.up_script, &mut options.down_script] {
        *file = file.take().map(|file| folder.join(file));
    }
    Ok(options)
}

impl Options {
    /// What the command line sees by itself; else the option, and what is wrong with it.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let values = [self.mtu, self.echo_interval, self.echo_failures, self.workers];
        for ((key, range), value) in NUMBERS.into_iter().zip(values) {
            if let Some(value) = value.filter(|value| !range.contains(&i64::from(*value))) {
                return Err((key, format!("{value} is not in {}..={}", range.start(), range.end())));
            }
        }
        if let Some(Err(error)) = self.tpid.as_deref().map(crate::link_command::tpid) {
            return Err(("tpid", error));
        }
        if let Some(Err(error)) =
            self.vlan.as_deref().map(|vlans| Encapsulation::NONE.with_vlans(vlans, None))
        {
            return Err(("vlan", error.to_string()));
        }
        if self.auth.as_deref() == Some(&[]) {
            return Err((
                "auth",
                "it names no method: leave it out, or name chap, ms-chap-v2 or pap".to_owned(),
            ));
        }
        for (key, name) in [("interface", &self.interface), ("ifname", &self.ifname)] {
            if name.as_deref().is_some_and(|name| !super::may_be_an_interface(name)) {
                return Err((key, super::NO_NAME.to_owned()));
            }
        }
        Ok(())
    }

    /// These, and of `other` what they do not say.
    pub fn or(self, other: Options) -> Options {
        Options {
            interface: self.interface.or(other.interface),
            user: self.user.or(other.user),
            password_file: self.password_file.or(other.password_file),
            auth: self.auth.or(other.auth),
            vlan: self.vlan.or(other.vlan),
            tpid: self.tpid.or(other.tpid),
            service: self.service.or(other.service),
            ac: self.ac.or(other.ac),
            mtu: self.mtu.or(other.mtu),
            ifname: self.ifname.or(other.ifname),
            default_route: self.default_route.or(other.default_route),
            metric: self.metric.or(other.metric),
            dns: self.dns.or(other.dns),
            ipv4: self.ipv4.or(other.ipv4),
            ipv6: self.ipv6.or(other.ipv6),
            mss_clamp: self.mss_clamp.or(other.mss_clamp),
            up_script: self.up_script.or(other.up_script),
            down_script: self.down_script.or(other.down_script),
            reconnect: self.reconnect.or(other.reconnect),
            echo_interval: self.echo_interval.or(other.echo_interval),
            echo_failures: self.echo_failures.or(other.echo_failures),
            datapath: self.datapath.or(other.datapath),
            workers: self.workers.or(other.workers),
            io: self.io.or(other.io),
        }
    }

    /// The interface with the line.
    ///
    /// # Errors
    ///
    /// Nobody named one.
    pub fn interface(&self) -> anyhow::Result<&str> {
        let interface = self.interface.as_deref();
        let interface =
            interface.ok_or_else(|| anyhow!("which interface has the line? `rxlane pppoe connect eth0`"))?;
        super::expect_interface(interface)?;
        Ok(interface)
    }

    /// Name of the network interface.
    pub fn ifname(&self) -> &str {
        self.ifname.as_deref().unwrap_or(IFNAME)
    }

    /// Where the password is.
    pub fn password(&self) -> PasswordSource<'_> {
        PasswordSource::of(self.user.as_deref(), self.password_file.as_deref())
    }

    /// The tags of the line.
    pub fn tags(&self) -> anyhow::Result<Encapsulation> {
        let Some(vlans) = &self.vlan else {
            return match self.tpid {
                Some(_) => Err(anyhow!("tpid is that of a VLAN tag, and there is none: `--vlan`")),
                None => Ok(Encapsulation::NONE),
            };
        };
        let tpid = self.tpid.as_deref().map(crate::link_command::tpid).transpose();
        let tpid = tpid.map_err(|error| anyhow!("--tpid: {error}"))?;
        Encapsulation::NONE.with_vlans(vlans, tpid).map_err(|error| anyhow!("--vlan {vlans}: {error}"))
    }

    /// What is wanted of the concentrator.
    ///
    /// # Errors
    ///
    /// Neither IPv4 nor IPv6 is; or the name of the service is too long.
    pub fn client(&self, secret: Vec<u8>) -> anyhow::Result<Config> {
        let (ipv4, ipv6) = (self.ipv4.unwrap_or(true), self.ipv6.unwrap_or(true));
        if !ipv4 && !ipv6 {
            return Err(anyhow!("--ipv4=false and --ipv6=false leave nothing to connect for"));
        }
        let host = Host {
            user: self.user.clone().unwrap_or_default().into_bytes(),
            secret,
            methods: self.auth.as_deref().unwrap_or(&AUTH).iter().map(|auth| auth.method()).collect(),
            ipv4: ipv4.then_some(Ipv4Addr::UNSPECIFIED),
            dns: ipv4,
            ipv6: ipv6.then_some(0),
        };
        let mut timers = Timers::DEFAULT;
        timers.echo = self.echo_interval.map_or(timers.echo, |seconds| Duration::from_secs(seconds.into()));
        timers.echo_failures = self.echo_failures.map_or(timers.echo_failures, u32::from);
        let discovery = discovery::Config {
            service: self.service.clone().unwrap_or_default().into_bytes(),
            pin: self.ac.as_deref().and_then(|ac| ac.parse::<Pin>().ok()),
            max_payload: self.mtu.unwrap_or(PLAIN_PAYLOAD),
            ..discovery::Config::default()
        };
        discovery.check().map_err(|error| anyhow!("--service: {error}"))?;
        let most = if self.reconnect.unwrap_or(true) { None } else { Some(1) };
        Ok(Config {
            discovery,
            session: Arc::new(session::Config { role: Role::Host(host), timers }),
            reconnect: Reconnect { most, ..Reconnect::DEFAULT },
        })
    }

    /// How packets are moved.
    ///
    /// # Errors
    ///
    /// Options that do not go together.
    pub fn means(&self) -> anyhow::Result<Means> {
        if self.datapath == Some(Datapath::Simple) {
            return match (self.workers, self.io) {
                (None | Some(1), None | Some(WayOut::AfPacket)) => Ok(Means::Simple),
                _ => Err(anyhow!(
                    "--datapath simple has one worker and packet sockets: leave out --workers and --io"
                )),
            };
        }
        let io = if self.io == Some(WayOut::AfXdp) { Io::AfXdp } else { Io::AfPacket };
        Ok(Means::Batch { workers: self.workers.map_or_else(|| workers(io), usize::from), io })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> anyhow::Result<Options> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("wan.toml");
        fs::write(&path, text)?;
        from_file(&path)
    }

    #[test]
    fn a_file_has_the_names_of_the_options() {
        let options = read("interface = 'eth0'\nuser = 'me'\nvlan = '100.200'\nmtu = 1500\nauth = ['ms-chap-v2', 'chap']\ndns = true\n").expect("options");
        assert_eq!(options.interface().expect("one"), "eth0");
        let config = options.client(b"secret".to_vec()).expect("a configuration");
        assert_eq!(config.discovery.max_payload, 1500);
        assert_eq!(config.reconnect.most, None);
        let Role::Host(host) = &config.session.role else { panic!("the other end") };
        assert_eq!(host.methods, [Method::MsChapV2, Method::ChapMd5]);
        assert_eq!(options.tags().expect("tags").to_string(), "ad:100,q:200");
        let on_line = Options { user: Some("you".to_owned()), dns: Some(false), ..Options::default() };
        let both = on_line.or(options);
        assert_eq!((both.user.as_deref(), both.dns, both.mtu), (Some("you"), Some(false), Some(1500)));
    }

    #[test]
    fn what_no_option_is_called_is_named_with_its_line() {
        let error = read("user = 'me'\npassword = 'secret'\n").expect_err("no such option").to_string();
        assert!(
            error.contains("line 2: a password does not stand in this file: `password-file`")
                && !error.contains("secret"),
            "{error}"
        );
        let error = read("\npassword = secret\n").expect_err("no TOML").to_string();
        assert!(error.contains("line 2: ") && !error.contains("secret"), "{error}");
        let error = read("mtu = 'big'\n").expect_err("no number").to_string();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_file_has_the_limits_of_the_command_line_and_errors_no_values() {
        for (line, expected) in [
            ("workers = 0", "line 2: workers: 0 is not in 1..=256"),
            ("workers = 257", "line 2: workers: 257 is not in 1..=256"),
            ("mtu = 100", "line 2: mtu: 100 is not in 128..=9000"),
            ("echo-interval = 0", "line 2: echo-interval: 0 is not in"),
            ("echo-failures = 0", "line 2: echo-failures: 0 is not in"),
            ("tpid = 'zz'", "line 2: tpid: one of 0x8100"),
            ("interface = \"c0\\u0000x\"", "line 2: interface: "),
            ("mtu = 'mysecret, expected x'", "line 2: mtu: expected a number without quotes, 128 to 9000"),
            ("metric = 'mysecret'", "line 2: metric: expected a number without quotes, 0 or more"),
            (
                "Password_File = 'mysecret'",
                "line 2: there is no key `Password_File`: is `password-file` meant?",
            ),
            ("daemon = true", "line 2: `daemon` is for the command line alone"),
            ("[wan]", "line 2: there is no key `wan`: keys are"),
            ("dns = yes", "line 2: expected text in quotes, a number without quotes, true or false"),
            ("vlan = '35.4095'", "line 2: vlan: "),
            ("auth = []", "line 2: auth: it names no method"),
            ("metric = -1", "line 2: metric: expected a number without quotes, 0 or more"),
            ("vlan = 35", "line 2: vlan: expected text in quotes: vlan = \"…\""),
            ("up-script = true", "line 2: up-script: expected text in quotes: up-script = \"…\""),
            ("dns = 'mysecret'", "line 2: dns: expected true or false, without quotes"),
            ("auth = 'mysecret'", "line 2: auth: expected a list: auth = [\"…\"]"),
            ("auth = ['mysecret']", "line 2: auth: expected one of `pap`"),
            ("mtu = 70000", "line 2: mtu: expected a number without quotes, 128 to 9000"),
        ] {
            let error = read(&format!("user = 'me'\n{line}\n")).expect_err("wrong").to_string();
            assert!(error.contains(expected) && !error.contains("mysecret"), "{line}: {error}");
            assert!(error.contains("wan.toml: "), "{error}");
        }
        assert!(read("tpid = '0x8100'\n").expect("options").tags().is_err());
    }

    #[test]
    fn files_are_beside_the_one_that_names_them() {
        let options = read("password-file = 'wan.password'\nup-script = '/etc/up'\n").expect("options");
        assert!(options.password_file.expect("one").is_absolute());
        assert_eq!(options.up_script, Some("/etc/up".into()));
    }
}
