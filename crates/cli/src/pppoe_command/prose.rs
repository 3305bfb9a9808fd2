//! What happens to a concentrator, in sentences.

use concentrator::subscribers::Forwarding;
use concentrator::{Event, RadiusEvent, Takeover, Uncarried};
use format::{Quotable, plural, quoted};
use link::running::Event as ParentEvent;
use pppoe::concentrator::accounting::Record;

/// An event in a sentence; `None`: a record of accounting, which is none.
pub fn sentence(event: &Event) -> Option<String> {
    Some(match event {
        Event::Account(_) => return None,
        Event::Opened(record) => opened(record),
        Event::Ended(end) => {
            let user = behind_space(end.identity.user());
            format!(
                "{} {} session {:#06x}{user}: {}",
                end.identity.station, end.identity.place, end.identity.number, end.cause
            )
        }
        Event::Machine(notice) => notice.to_string(),
        Event::Parent { name, change } => parent(name, change),
        Event::Interface { name, is_up: false } => {
            format!("{name} was set down: no packet of any subscriber gets through until it is up again")
        }
        Event::Interface { name, is_up: true } => {
            format!("{name} is up again, with its addresses and routes")
        }
        Event::ShorterBehindTags { parent, parent_mtu, most, requested, needed } => format!(
            "{parent} has an MTU of {parent_mtu}: packets of subscribers behind two tags are {most} bytes at most, and shorter behind \
             more; `ip link set {quoted_parent} mtu {needed}` makes room for {requested}",
            quoted_parent = quoted(parent)
        ),
        Event::SecretsRead(difference) => format!("the secrets were read again: {difference}"),
        Event::SecretsUnread(why) => why.clone(),
        Event::Disagrees { parent, id, user, why } => format!(
            "the session {id} of {} goes on, but {why}: `rxlane pppoe disconnect --concentrator {quoted_parent} --id {id}` ends it",
            Quotable(user),
            quoted_parent = quoted(parent)
        ),
        Event::Uncarried(what) => uncarried(what),
        Event::Takeover(what) => takeover(what),
        Event::Forgotten(why) => {
            format!(
                "the sessions of the process that was killed do not go on: {why}; subscribers connect again"
            )
        }
        Event::Unkept(why) => {
            format!("if this process is killed, its sessions end with it: they cannot be written ({why})")
        }
        Event::Radius(what) => radius(what),
        Event::Forwarding(what) => return forwarding(what),
    })
}

fn behind_space(user: &[u8]) -> String {
    if user.is_empty() { String::new() } else { format!(" {}", Quotable(user)) }
}

/// That a session is open, in the words of its end.
fn opened(record: &Record) -> String {
    let address = record.address.map(|address| format!(", {address}")).unwrap_or_default();
    let prefix: String = record.prefixes.iter().map(|prefix| format!(", {prefix}")).collect();
    let user = behind_space(record.identity.user());
    format!(
        "{} {} session {:#06x}{user}: open{address}{prefix}",
        record.identity.station, record.identity.place, record.identity.number
    )
}

fn parent(name: &str, change: &ParentEvent) -> String {
    match change {
        ParentEvent::ParentDown => format!("{name} is down"),
        ParentEvent::ParentUp => format!("{name} is up again"),
        ParentEvent::ParentMtu { now, needed } => {
            format!("the MTU of {name} is {now} now; the longest packets need {needed}")
        }
        ParentEvent::ParentMac => format!(
            "the MAC address of {name} changed: subscribers find out by their echoes, and connect again"
        ),
    }
}

/// What programs in XDP do; `None`: what was requested, and nothing is to be said about it.
fn forwarding(what: &Forwarding) -> Option<String> {
    match what {
        Forwarding::Started(started) => {
            let generic = started
                .generic
                .as_ref()
                .map(|why| format!("XDP runs in generic mode, which saves next to nothing, since {why}"));
            let shapers = started.shapers.iter().map(|(interface, qdisc)| {
                format!(
                    "{interface} shapes what it sends ({qdisc}), and packets that XDP forwards go past that"
                )
            });
            let all: Vec<String> = generic.into_iter().chain(shapers).collect();
            (!all.is_empty()).then(|| all.join("; "))
        }
        Forwarding::Paused(why) => {
            Some(format!("XDP forwards nothing for now, and packets take the default data path: {why}"))
        }
        Forwarding::Resumed => Some("XDP forwards packets again".to_owned()),
    }
}

fn uncarried(what: &Uncarried) -> String {
    match what {
        Uncarried::Session { station, why } => format!("packets of {station} are not carried: {why}"),
        Uncarried::Change(why) => why.to_string(),
        Uncarried::Prefix { prefix, station, why } => format!("{prefix} does not lead to {station}: {why}"),
        Uncarried::Route { network, why } => format!("no route to {network}: {why}"),
    }
}

fn radius(what: &RadiusEvent) -> String {
    match what {
        RadiusEvent::Unusable { server, why } => {
            format!("an answer of the RADIUS server {server} counts for nothing: {why}")
        }
        RadiusEvent::Unread { user, attributes } => {
            let numbers: Vec<String> = attributes.iter().map(u8::to_string).collect();
            format!(
                "what RADIUS grants {} has values that cannot be read, of attribute {}: the others hold",
                Quotable(user),
                numbers.join(", ")
            )
        }
        RadiusEvent::NoRates { user, names } => {
            let names: Vec<String> = names.iter().map(|name| format!("\"{}\"", Quotable(name))).collect();
            format!(
                "RADIUS says the rate {} for {}, and no [[rate]] of the file has this name: no such limit holds",
                names.join(" and "),
                Quotable(user)
            )
        }
        RadiusEvent::Waiting { in_file } => {
            let place = if *in_file { "the file of records" } else { "memory" };
            format!("no RADIUS server takes records of accounting: they wait in {place}")
        }
        RadiusEvent::Taken => "a RADIUS server takes records of accounting again".to_owned(),
        RadiusEvent::Unwritten { why } => {
            format!("records of accounting for RADIUS wait in memory alone: {why}")
        }
        RadiusEvent::WithoutClass { user } => format!(
            "the Class of{} does not fit in a record of accounting: its records are sent without",
            behind_space(user)
        ),
        RadiusEvent::Lost { records } => {
            format!("{} of accounting for RADIUS lost", plural(*records, "record"))
        }
        RadiusEvent::Requested { server, request, sessions } => {
            let what = if request.change.is_some() { "changes" } else { "ends" };
            let user = behind_space(request.sessions.user.as_deref().unwrap_or_default());
            format!("the RADIUS server {server} {what} {}{user}", plural(*sessions as u64, "session"))
        }
        RadiusEvent::Refused { server, why } => {
            format!("a request of the RADIUS server {server} is refused: {why}")
        }
        RadiusEvent::Ignored { from, why } => {
            format!("a request of {from} for RADIUS gets no answer: {why}")
        }
    }
}

fn takeover(what: &Takeover) -> String {
    let name = |successor: &Option<u32>| {
        successor.map_or_else(|| "another process".to_owned(), |pid| format!("the process {pid}"))
    };
    match what {
        Takeover::Withheld { successor, why } => {
            format!("{} began to take the sessions over, and {why}: nothing was changed", name(successor))
        }
        Takeover::Resumed { successor, why } => format!(
            "{} had taken the sessions over, and {}: this process goes on with them",
            name(successor),
            why.at_the_end()
        ),
        Takeover::Lost { successor, why, error } => format!(
            "{} had taken the sessions over, and {}; this process cannot go on: {error}",
            name(successor),
            why.at_the_end()
        ),
        Takeover::Unclaimed(why) => why.to_string(),
        Takeover::Unnamed { own, requested, why } => {
            format!("the interface of the subscribers is named {own} and not {requested}: {why}")
        }
        Takeover::Unreachable(why) => format!("nobody can ask this process: {why}"),
    }
}
