//! `rxlane pppoe sessions`.

use super::{BOLD, POOR, StateArguments};
use crate::output::{CommandResult, Outcome, Output};
use concentrator::{ConcentratorStatus, SubscriberStatus};
use format::{Table, plural, printable, quoted, thousands};
use service::Kind;
use std::io::{self, Write};
use wire::emit::Encapsulation;
use wire::{VlanPattern, Vlans};

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 the interface is served, 1 it is not, or the process was killed, or does not answer, 2 several are served and none is \
named, 3 it requires root.")]
pub struct SessionsArguments {
    /// Interface that is served [default: the only one].
    #[arg(value_name = "IFACE")]
    interface: Option<String>,
    /// Only sessions in whose line this stands (a user, a MAC address, an address), or in the circuit or remote id of whose line, or of VLANs as
    /// --vlan has them: 100.200, 100.*.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Print JSON (schema rxlane.pppoe/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl SessionsArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let Some(interface) = self.state.served(self.interface, "rxlane pppoe sessions")? else {
            return Ok(Outcome::Negative);
        };
        let sockets = self.state.instances(Kind::Concentrator)?;
        let mut status: ConcentratorStatus = sockets.ask(&interface, "sessions")?;
        if let Some(text) = &self.filter {
            status.sessions.retain(|session| is_meant(session, text));
        }
        out.show(self.json, &status, |out, status| print(out, status, self.filter.is_some()))?;
        Ok(Outcome::Success)
    }
}

const HEADINGS: [&str; 9] =
    ["id", "user", "MAC address", "VLANs", "phase", "IPv4", "open", "from it", "to it"];

/// Whether a text stands in the line of a session or in what its access node says of it, or is a pattern of VLANs that has its tags.
pub(super) fn is_meant(session: &SubscriberStatus, text: &str) -> bool {
    let has_tags = || {
        let pattern = text.parse::<VlanPattern>().ok().filter(|pattern| *pattern != VlanPattern::Any)?;
        let tags: Encapsulation = session.tags.parse().ok()?;
        Some(pattern.has(Vlans::of(tags.tags().iter().copied())?))
    };
    let ids = session.circuit.iter().chain(&session.remote);
    row(session).iter().chain(ids).any(|found| found.contains(text)) || has_tags() == Some(true)
}

fn print(out: &mut Output, status: &ConcentratorStatus, is_filtered: bool) -> io::Result<()> {
    let all = plural(status.count as u64, "session");
    let not_open = status.sessions.iter().filter(|session| session.phase != "open").count();
    let (number, half_open) = match is_filtered {
        true => (format!("{} of {all}", status.sessions.len()), not_open as u32),
        false => (all, status.half_open),
    };
    let half = if half_open > 0 { format!(", {half_open} of these not open yet") } else { String::new() };
    let title = out.styled(BOLD, printable(&status.parent));
    writeln!(out, "{title}: {number}{half}")?;
    let parent = &status.parent;
    let down = (status.parent_works == Some(false))
        .then(|| format!("{parent} is down, or its cable has no carrier"));
    let draining = status.draining.then(|| {
        format!("no more sessions are taken; `rxlane pppoe drain {} --undo` takes them again", quoted(parent))
    });
    for text in down.into_iter().chain(super::status::unwritten(status)).chain(draining) {
        let note = out.styled(POOR, "note");
        writeln!(out, "{note}: {}", printable(&text))?;
    }
    if status.sessions.is_empty() {
        return Ok(());
    }
    out.table(&Table::new(7, HEADINGS).rows(status.sessions.iter().map(row)))
}

fn row(session: &SubscriberStatus) -> [String; 9] {
    [
        session.id.clone(),
        session.user.clone(),
        session.mac.clone(),
        session.tags.clone(),
        session.phase.clone(),
        session.peer.map_or(String::new(), |peer| peer.to_string()),
        session.uptime.map_or(String::new(), format::duration),
        thousands(session.received_octets),
        thousands(session.sent_octets),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_text_or_vlans_as_people_write_them() {
        let session = |user: &str, tags: &str| {
            let mut session = SubscriberStatus::default();
            (session.user, session.tags) = (user.to_owned(), tags.to_owned());
            session.peer = Some([10, 64, 0, 2].into());
            session.circuit = (user == "carol").then(|| "dslam7 eth 1/3".to_owned());
            session
        };
        let sessions = [
            session("alice", "none"),
            session("bob", "ad:100,q:200"),
            session("carol", "q:100"),
            session("any", "q:35"),
        ];
        for (text, users) in [
            ("ali", &["alice"][..]),
            ("100.200", &["bob"]),
            ("100.*", &["bob"]),
            ("*.200", &["bob"]),
            ("ad:100,q:200", &["bob"]),
            ("ad:100,", &["bob"]),
            ("100", &["bob", "carol"]),
            ("none", &["alice"]),
            ("any", &["any"]),
            ("dslam7", &["carol"]),
            ("10.64.0.2", &["alice", "bob", "carol", "any"]),
            ("200.100", &[]),
        ] {
            let meant = sessions.iter().filter(|session| is_meant(session, text));
            assert_eq!(meant.map(|session| &*session.user).collect::<Vec<_>>(), users, "{text}");
        }
    }
}
