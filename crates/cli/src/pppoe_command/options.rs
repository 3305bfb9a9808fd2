//! Options of `rxlane pppoe connect`: those of the command line, which a file of configuration (TOML) has by the same names. They
//! are stated once: what stands in a file becomes arguments.

use super::password::PasswordSource;
use super::read_file;
use crate::arguments::StackArguments;
use crate::link_command::MeansArguments;
use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, Command};
use pppoe::client::{Config, Reconnect};
use pppoe::discovery::PLAIN_PAYLOAD;
use pppoe::discovery::host as discovery;
use pppoe::discovery::offer::Pin;
use pppoe::session::{self, Host, Method, Role, Timers};
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The usual name of the interface.
const IFNAME: &str = "ppp0";
/// What is agreed to if nobody says: the password does not go over the line where there is a choice.
const AUTH: [Auth; 3] = [Auth::Chap, Auth::MsChapV2, Auth::Pap];

/// The options. Each stands in a file by the same name, without the dashes; what is on the command line comes first.
#[derive(Args, Clone, Debug, Default, PartialEq)]
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
    /// Methods of authentication to agree to, in order of preference [default: chap,ms-chap-v2,pap].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub auth: Option<Vec<Auth>>,
    #[command(flatten)]
    pub stack: StackArguments,
    /// Service to ask for [default: any].
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Only this concentrator, by its name or MAC address.
    #[arg(long, value_name = "NAME|MAC")]
    pub ac: Option<String>,
    /// Longest IP packets, bytes [default: 1492]; more than 1492 where both ends can (RFC 4638), else 1492.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(128..=9000))]
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
    /// Seconds of silence after which the other end is sent an echo request [default: 20].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub echo_interval: Option<u16>,
    /// Unanswered echo requests after which the session ends [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub echo_failures: Option<u16>,
    #[command(flatten)]
    pub means: MeansArguments,
}

/// Methods of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Auth {
    /// PAP: the password goes over the line as it is.
    Pap,
    /// CHAP with MD5.
    Chap,
    /// MS-CHAPv2.
    MsChapV2,
}

impl Auth {
    pub fn method(self) -> Method {
        match self {
            Auth::Pap => Method::Pap,
            Auth::Chap => Method::ChapMd5,
            Auth::MsChapV2 => Method::MsChapV2,
        }
    }
}

/// Whether an option stands among arguments, or the other notation of what it says.
pub fn is_given(option: &Arg, arguments: &[OsString]) -> bool {
    let Some(name) = option.get_long() else { return false };
    let other = match name {
        "encap" => "vlan",
        "vlan" | "tpid" => "encap",
        _ => name,
    };
    let given = |text: &str| {
        let rest = [name, other].iter().find_map(|name| text.strip_prefix("--")?.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    arguments.iter().filter_map(|argument| argument.to_str()).any(given)
}

/// What stands in a file as arguments of a command, but for options that are `given` already. Errors name the line and no value
/// but numbers: who takes the file for the place of the password has it there.
pub fn arguments_of(path: &Path, given: impl Fn(&Arg) -> bool) -> anyhow::Result<Vec<OsString>> {
    let command = Options::augment_args(Command::new("connect"));
    let text = String::from_utf8(read_file(path)?)
        .map_err(|_| anyhow!("{}: this is no UTF-8, which TOML has to be", path.display()))?;
    let at = |line: usize, why: String| anyhow!("{}: line {line}: {why}", path.display());
    let table: toml::Table =
        toml::from_str(&text).map_err(|error| at(line_of(&text, &error), unread(error.message())))?;
    let mut arguments = Vec::new();
    for (key, value) in &table {
        let is_it = |line: &str| line.split_once('=').map_or(line, |(name, _)| name).contains(key.as_str());
        let failed = |why| at(text.lines().position(is_it).unwrap_or_default() + 1, why);
        let argument = argument(key, &command).map_err(failed)?;
        let value = text_of(value, argument).map_err(|why| failed(format!("{key}: expected {why}")))?;
        checked(&value, argument, &command).map_err(|why| failed(format!("{key}: {why}")))?;
        // A file is in the folder of the one that names it, unless it says where.
        let is_file = ["password_file", "up_script", "down_script"].contains(&argument.get_id().as_str());
        let folder = path.parent().filter(|_| is_file).unwrap_or(Path::new(""));
        if !given(argument) {
            let name = argument.get_long().map_or(String::new(), |name| format!("--{name}="));
            let mut whole = OsString::from(name);
            whole.push(folder.join(value));
            arguments.push(whole);
        }
    }
    Ok(arguments)
}

/// The line, from 1, of which TOML says that.
pub fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// What TOML says of a text that is none.
fn unread(message: &str) -> String {
    match message.starts_with("string values must be quoted") {
        true => "expected text in quotes, a number without quotes, true or false".to_owned(),
        false => message.to_owned(),
    }
}

/// The argument that a key is the name of.
fn argument<'c>(key: &str, command: &'c Command) -> Result<&'c Arg, String> {
    let name = |argument: &Arg| argument.get_long().unwrap_or("interface").to_owned();
    let known = |key: &str| command.get_arguments().find(|argument| name(argument) == key);
    match (key, known(key)) {
        ("daemon" | "log" | "config" | "dry-run", _) => Err(format!("`{key}` is for the command line alone")),
        (_, Some(argument)) => Ok(argument),
        ("password", _) => Err(
            "a password does not stand in this file: `password-file` names the one whose first line it is"
                .to_owned(),
        ),
        _ => {
            let usual = key.to_ascii_lowercase().replace('_', "-");
            let most = command.get_arguments().map(name).max_by(|one, other| {
                strsim::jaro_winkler(&usual, one).total_cmp(&strsim::jaro_winkler(&usual, other))
            });
            let close = most.filter(|close| strsim::jaro_winkler(&usual, close) > 0.8);
            Err(match close {
                Some(close) => format!("there is no key `{key}`: is `{close}` meant?"),
                None => format!(
                    "there is no key `{key}`: keys are the options of `rxlane pppoe connect --help` without the dashes, and there are \
                     no tables"
                ),
            })
        }
    }
}

/// A value as it stands on the command line; else what is expected.
fn text_of(value: &toml::Value, argument: &Arg) -> Result<String, &'static str> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(is_so) => Ok(is_so.to_string()),
        toml::Value::Array(list) if argument.get_value_delimiter().is_some() => {
            let texts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join(",")).ok_or("a list of names")
        }
        _ => Err("text in quotes, a number without quotes, true or false"),
    }
}

/// Sees that the argument takes a value.
fn checked(value: &str, argument: &Arg, command: &Command) -> Result<(), String> {
    if ["interface", "ifname"].contains(&argument.get_id().as_str()) && !super::may_be_an_interface(value) {
        return Err(super::NO_NAME.to_owned());
    }
    let name = argument.get_long().map_or(String::new(), |name| format!("--{name}="));
    let parsed = command.clone().no_binary_name(true).try_get_matches_from([name + value]);
    match parsed.err().filter(|error| error.kind() != ErrorKind::MissingRequiredArgument) {
        None => Ok(()),
        Some(error) => Err(match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(valid)) if !valid.is_empty() => {
                format!("expected one of {}", valid.join(", "))
            }
            _ => std::error::Error::source(&error)
                .map_or_else(|| "no value for it".to_owned(), |source| source.to_string()),
        }),
    }
}

impl Options {
    pub fn interface(&self) -> anyhow::Result<&str> {
        let interface = self.interface.as_deref();
        let interface =
            interface.ok_or_else(|| anyhow!("which interface has the line? `rxlane pppoe connect eth0`"))?;
        super::expect_interface(interface)?;
        Ok(interface)
    }

    pub fn ifname(&self) -> &str {
        self.ifname.as_deref().unwrap_or(IFNAME)
    }

    pub fn password(&self) -> PasswordSource<'_> {
        PasswordSource::of(self.user.as_deref(), self.password_file.as_deref())
    }

    /// What is requested of the concentrator.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;
    use std::fs;

    /// Options of a file, and of a command line that has more.
    fn read_with(text: &str, given: &[&str]) -> anyhow::Result<Options> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("wan.toml");
        fs::write(&path, text)?;
        let command = Options::augment_args(Command::new("connect").no_binary_name(true));
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        let mut arguments = arguments_of(&path, |option| is_given(option, &given))?;
        arguments.extend(given);
        Ok(Options::from_arg_matches(&command.try_get_matches_from(arguments)?)?)
    }

    fn read(text: &str) -> anyhow::Result<Options> {
        read_with(text, &[])
    }

    #[test]
    fn a_file_has_the_names_of_the_options() {
        let text = "interface = 'eth0'\nuser = 'me'\nvlan = '100.200'\nmtu = 1500\nauth = ['ms-chap-v2', 'chap']\ndns = true\n";
        let options = read(text).expect("options");
        assert_eq!(options.interface().expect("one"), "eth0");
        let config = options.client(b"secret".to_vec()).expect("a configuration");
        assert_eq!(config.discovery.max_payload, 1500);
        assert_eq!(config.reconnect.most, None);
        let Role::Host(host) = &config.session.role else { panic!("the other end") };
        assert_eq!(host.methods, [Method::MsChapV2, Method::ChapMd5]);
        assert_eq!(options.stack.tags().expect("tags").to_string(), "ad:100,q:200");
        let both = read_with(text, &["--user", "you", "--dns=false"]).expect("options");
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
            ("mtu = 'mysecret, expected x'", "line 2: mtu: invalid digit"),
            ("metric = 'mysecret'", "line 2: metric: invalid digit"),
            (
                "Password_File = 'mysecret'",
                "line 2: there is no key `Password_File`: is `password-file` meant?",
            ),
            ("daemon = true", "line 2: `daemon` is for the command line alone"),
            ("[wan]", "line 2: there is no key `wan`: keys are"),
            ("dns = yes", "line 2: expected text in quotes, a number without quotes, true or false"),
            ("vlan = '35.4095'", "line 2: vlan: "),
            ("auth = []", "line 2: auth: expected a list of names"),
            ("metric = -1", "line 2: metric: -1 is not in 0"),
            ("dns = 'mysecret'", "line 2: dns: expected one of true, false"),
            ("vlan = 3.5", "line 2: vlan: expected text in quotes, a number"),
            ("auth = ['mysecret']", "line 2: auth: expected one of pap, chap"),
            ("mtu = 70000", "line 2: mtu: 70000 is not in 128..=9000"),
        ] {
            let error = read(&format!("user = 'me'\n{line}\n")).expect_err("wrong").to_string();
            assert!(error.contains(expected) && !error.contains("mysecret"), "{line}: {error}");
            assert!(error.contains("wan.toml: "), "{error}");
        }
        assert!(read("tpid = '0x8100'\n").expect_err("no VLAN").to_string().contains("--vlan"));
        assert_eq!(read("vlan = 35\n").expect("options").stack.vlan.as_deref(), Some("35"));
        // Another notation of the tags on the command line replaces that of the file.
        let both = read_with("vlan = '35'\ntpid = '0x88a8'\n", &["--encap", "q:7"]).expect("options");
        assert_eq!(both.stack.tags().expect("tags").to_string(), "q:7");
        let error = read("encap = 'q:7,pppoe'\n").expect("options").stack.tags().expect_err("a session");
        assert!(error.to_string().contains("VLAN tags alone, such as --encap q:7"), "{error}");
    }

    #[test]
    fn files_are_next_to_the_one_that_names_them() {
        let options = read("password-file = 'wan.password'\nup-script = '/etc/up'\n").expect("options");
        assert!(options.password_file.expect("one").is_absolute());
        assert_eq!(options.up_script, Some("/etc/up".into()));
    }
}
