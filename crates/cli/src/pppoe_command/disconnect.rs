//! `rxlane pppoe disconnect`.

use super::serve::all_written;
use super::{StateArguments, expect_interface, status};
use crate::arguments::address;
use crate::output::{CommandResult, Outcome, Output, complain};
use anyhow::anyhow;
use client::status::SessionStatus;
use concentrator::{ConcentratorStatus, Disconnected, Unwritten, clear_leftover};
use format::plural;
use format::quoted;
use serde_json::json;
use service::Kind;
use service::control::ControlError;
use std::io::Write;
use std::net::IpAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Schema of what ended: fields are added, never renamed.
const SCHEMA: &str = "rxlane.pppoe-disconnect/1";

/// The longest name of a user, bytes (RFC 1334 section 2.2.1).
const LONGEST: usize = 255;

/// How long people wait without a word on what for.
const SILENCE: Duration = Duration::from_secs(2);

const USAGE: &str = "\
rxlane pppoe disconnect IFNAME
       rxlane pppoe disconnect [--concentrator IFACE] --id ID|--user NAME|--address ADDRESS|--mac MAC|--vlan VLANS|--line ID|--all
       rxlane pppoe disconnect --concentrator IFACE";

#[derive(clap::Args)]
#[command(override_usage = USAGE, after_help = "\
A client's session: the concentrator gets a Terminate-Request and a PADT, and the command waits until interface, routes and name servers are as \
before.\n\n\
Subscribers of a concentrator get the same, and connect again if they want to: those that one of --id, --user, --address, \
--mac, --vlan, --line and --all names. Without any of these the concentrator itself ends.\n\n\
Exit codes: 0 done, 1 there was no such session or concentrator, or its process was killed before (what it left is put back), or does \
not answer, 2 wrong usage, or several interfaces are served and none is named, 3 it requires root, or accounts or the log lack \
something that a full disk did not take.\n\n\
Examples:\n  \
rxlane pppoe disconnect ppp0\n  \
rxlane pppoe disconnect --concentrator eth1 --user alice\n  \
rxlane pppoe disconnect --concentrator eth1")]
pub struct DisconnectArguments {
    /// Interface of a client's session, as `rxlane pppoe connect --ifname` named it.
    #[arg(value_name = "IFNAME", conflicts_with_all = ["concentrator", "id", "user", "address", "mac", "vlan", "line", "all"])]
    name: Option<String>,
    /// Interface that is served: its concentrator, or some of its sessions [default for these: the only one].
    #[arg(long, value_name = "IFACE")]
    concentrator: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Print JSON (schema rxlane.pppoe-disconnect/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// Which sessions of a concentrator.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Which {
    /// The session of this id (`rxlane pppoe sessions`).
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// All sessions of a user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The session that has an address, or to which it is routed.
    #[arg(long, value_name = "ADDRESS", value_parser = address::<IpAddr>("10.0.0.2 or 2001:db8::2"))]
    address: Option<IpAddr>,
    /// All sessions of a MAC address.
    #[arg(long, value_name = "MAC")]
    mac: Option<String>,
    /// All sessions of VLANs, as `rxlane pppoe serve --vlan` has them: 100.200, 100.*.
    #[arg(long, value_name = "VLANS")]
    vlan: Option<String>,
    /// All sessions of a line, by its Agent-Circuit-Id or Agent-Remote-Id (TR-101).
    #[arg(long, value_name = "ID")]
    line: Option<String>,
    /// All sessions.
    #[arg(long)]
    all: bool,
}

impl Which {
    /// Sees that the question is one line, which is what it is cut to.
    fn check(&self) -> anyhow::Result<()> {
        for (option, _, text) in self.texts() {
            let Some(text) = text else { continue };
            if text.contains(char::is_control) {
                return Err(anyhow!("{option} {}: no name has control characters", text.escape_debug()));
            }
            if text.len() > LONGEST {
                return Err(anyhow!("{option}: {} bytes, and PPP has room for {LONGEST}", text.len()));
            }
        }
        Ok(())
    }

    /// Option, word of the question, what was given.
    const fn texts(&self) -> [(&'static str, &'static str, &Option<String>); 5] {
        [
            ("--id", "id", &self.id),
            ("--user", "user", &self.user),
            ("--mac", "mac", &self.mac),
            ("--vlan", "vlan", &self.vlan),
            ("--line", "line", &self.line),
        ]
    }

    fn question(&self) -> Option<String> {
        let text =
            self.texts().into_iter().find_map(|(_, kind, text)| Some(format!("{kind} {}", text.as_ref()?)));
        let one = text.or(self.address.map(|address| format!("address {address}")));
        let one = one.or(self.all.then(|| "all".to_owned()));
        one.map(|which| format!("disconnect {which}"))
    }
}

impl DisconnectArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        self.which.check()?;
        for name in self.name.iter().chain(&self.concentrator) {
            expect_interface(name)?;
        }
        match (&self.name, &self.concentrator, self.which.question()) {
            (Some(name), ..) => self.client(out, name),
            (None, Some(interface), None) => self.concentrator(out, interface),
            (None, named, Some(question)) => match self.state.served(named.clone(), "--concentrator")? {
                Some(interface) => self.sessions(out, &interface, &question),
                None => Ok(Outcome::Negative),
            },
            (None, None, None) => Err(anyhow!(
                "what is to end? IFNAME names a client's session, `--concentrator IFACE` a concentrator, and one of --id, --user, \
                 --address, --mac, --vlan, --line and --all sessions of one (`rxlane pppoe status` lists what there is)"
            )),
        }
    }

    fn concentrator(&self, out: &mut Output, interface: &str) -> CommandResult {
        let sockets = self.state.instances(Kind::Concentrator)?;
        let what = format!("subscribers of {interface} get a PADT, and its accounts are written");
        let end = || sockets.end_with_result::<ConcentratorStatus, Unwritten>(interface);
        let (last, unwritten) = match with_notice(&what, end) {
            Ok(ended) => ended,
            Err(error @ (ControlError::Killed { .. } | ControlError::None { .. }))
                if clear_leftover(interface) =>
            {
                complain(&format!(
                    "the programs in XDP of a killed process were removed from {interface} and its uplinks, and the interface of its \
                     subscribers"
                ));
                // Another command has removed the socket of the killed process: this is what there was to do.
                let is_all = matches!(error, ControlError::None { .. });
                return if is_all { Ok(Outcome::Success) } else { Err(error.into()) };
            }
            Err(error) => return Err(error.into()),
        };
        let unwritten = unwritten.unwrap_or_default();
        let value = json!({
            "schema": SCHEMA,
            "concentrator": last.parent,
            "sessions": last.count,
            "records_lost": unwritten.records_lost,
            "log_failure": unwritten.log_failure,
        });
        out.show(self.json, &value, |out, _| {
            let sessions = plural(last.count as u64, "session");
            writeln!(out, "{} is served no more; {sessions} ended.", last.parent)
        })?;
        all_written(&unwritten)?;
        Ok(Outcome::Success)
    }

    fn sessions(&self, out: &mut Output, interface: &str, question: &str) -> CommandResult {
        let sockets = self.state.instances(Kind::Concentrator)?;
        let Disconnected { sessions } = sockets.ask(interface, question)?;
        let which = question.trim_start_matches("disconnect ");
        match sessions {
            Some(0) => {
                complain(&match which {
                    "all" => format!("there is no session on {interface}"),
                    which => format!(
                        "there is no session of {which} on {interface} (`rxlane pppoe sessions {quoted_interface}`)",
                        quoted_interface = quoted(interface)
                    ),
                });
                Ok(Outcome::Negative)
            }
            Some(sessions) => {
                let value = json!({"schema": SCHEMA, "concentrator": interface, "sessions": sessions});
                out.show(self.json, &value, |out, _| {
                    writeln!(out, "{}: end requested.", plural(sessions as u64, "session"))
                })?;
                Ok(Outcome::Success)
            }
            None => {
                let (kind, value) = which.split_once(' ').unwrap_or((which, ""));
                let kind = match kind {
                    "mac" => "MAC address",
                    "vlan" => "VLAN (a number, or `100.200`, `100.*`)",
                    _ => "session id",
                };
                Err(anyhow!(
                    "`{value}` is no {kind}: `rxlane pppoe sessions {quoted_interface}` shows what is",
                    quoted_interface = quoted(interface)
                ))
            }
        }
    }

    fn client(&self, out: &mut Output, name: &str) -> CommandResult {
        let sockets = self.state.instances(Kind::Session)?;
        let what = format!(
            "the concentrator gets a PADT, name servers are put back, and each script of {name} has half a minute"
        );
        match with_notice(&what, || sockets.end::<SessionStatus>(name)) {
            Ok(last) => {
                let value =
                    json!({"schema": SCHEMA, "interface": last.interface, "sessions": 1, "last": last});
                out.show(self.json, &value, |out, _| {
                    writeln!(out, "{} is disconnected.", last.interface)?;
                    status::traffic(out, &last)
                })?;
                Ok(Outcome::Success)
            }
            Err(error) => {
                // Also where another command has removed the socket of a killed process.
                if matches!(error, ControlError::Killed { .. } | ControlError::None { .. }) {
                    self.state.put_back();
                }
                if let Some(served) = self.state.served_by(&error, name) {
                    complain(&format!(
                        "{name} is no client's session: {served} is served here, and `rxlane pppoe disconnect --concentrator \
                         {quoted_served}` ends that, with `--all` its sessions",
                        quoted_served = quoted(&served)
                    ));
                    return Ok(Outcome::Negative);
                }
                Err(error.into())
            }
        }
    }
}

/// Does it; where that takes longer than people wait for nothing, says what is going on.
fn with_notice<T>(what: &str, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (done, waits) = channel::<()>();
        scope.spawn(move || {
            if waits.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                complain(&format!("waiting: {what}"));
            }
        });
        let result = work();
        drop(done);
        result
    })
}
