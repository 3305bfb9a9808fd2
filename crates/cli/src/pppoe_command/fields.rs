//! What happens to a concentrator, in fields of systemd's journal: for who looks for a subscriber there, and for programs.

use concentrator::Event;
use format::Quotable;
use pppoe::concentrator::accounting::Record;
use pppoe::concentrator::{End, Identity, Notice};
use pppoe::discovery::place::Place;
use service::journald::Priority;
use wire::ethernet::MacAddress;

/// Names of fields and their values.
pub type Fields = Vec<(&'static str, String)>;

/// The fields of an event: `RXLANE_EVENT` says what it is, the others of whom.
pub fn fields(event: &Event) -> Fields {
    let (kind, more) = match event {
        Event::Opened(record) => ("session-opened", opened(record)),
        Event::Ended(end) => ("session-ended", ended(end)),
        Event::Machine(notice) => notice_of(notice),
        Event::Disagrees { id, user, .. } => {
            ("session-disagrees", vec![("RXLANE_ID", id.to_string()), user_of(user)])
        }
        Event::Account(_) => ("record", Fields::new()),
        Event::Parent { .. } | Event::Interface { .. } | Event::ShorterBehindTags { .. } => {
            ("line", Fields::new())
        }
        Event::SecretsRead(_) | Event::SecretsUnread(_) => ("secrets", Fields::new()),
        Event::Uncarried(_) => ("uncarried", Fields::new()),
        Event::Takeover(_) => ("takeover", Fields::new()),
        Event::Forgotten(_) | Event::Unkept(_) => ("state", Fields::new()),
        Event::Forwarding(_) => ("forwarding", Fields::new()),
        Event::Radius(_) => ("radius", Fields::new()),
    };
    [("RXLANE_EVENT", kind.to_owned())].into_iter().chain(more).collect()
}

/// How it weighs: what a subscriber does is information.
pub fn priority(event: &Event) -> Priority {
    match event {
        Event::Opened(_) | Event::Ended(_) | Event::Account(_) => Priority::Info,
        Event::Machine(_) | Event::SecretsRead(_) | Event::Parent { .. } => Priority::Notice,
        _ => Priority::Warning,
    }
}

fn opened(record: &Record) -> Fields {
    let mut fields = of(&record.identity);
    fields.extend(record.address.map(|address| ("RXLANE_ADDRESS", address.to_string())));
    fields.extend(record.prefixes.iter().map(|prefix| ("RXLANE_PREFIX", prefix.to_string())));
    fields
}

fn ended(end: &End) -> Fields {
    let mut fields = of(&end.identity);
    fields.push(("RXLANE_CAUSE", end.cause.to_string()));
    fields
}

fn notice_of(notice: &Notice) -> (&'static str, Fields) {
    match notice {
        Notice::Session { identity, .. } => ("session-notice", of(identity)),
        Notice::Full { place, station, full } => {
            ("refused", [at(place, *station), vec![("RXLANE_CAUSE", full.to_string())]].concat())
        }
        Notice::Refused { place, station, user, refusal } => {
            let cause = ("RXLANE_CAUSE", refusal.to_string());
            ("refused", [at(place, *station), vec![user_of(user), cause]].concat())
        }
        Notice::HeldOff { place, station, user, .. } => {
            ("held-off", at(place, *station).into_iter().chain(user.as_deref().map(user_of)).collect())
        }
        Notice::NoPrefix { user, .. } => ("no-prefix", vec![user_of(user)]),
        _ => ("notice", Fields::new()),
    }
}

fn at(place: &Place, station: MacAddress) -> Fields {
    vec![("RXLANE_MAC", station.to_string()), ("RXLANE_VLANS", place.vlans.to_string())]
}

fn user_of(user: &[u8]) -> (&'static str, String) {
    ("RXLANE_USER", Quotable(user).to_string())
}

fn of(identity: &Identity) -> Fields {
    let mut fields = at(&identity.place, identity.station);
    fields.push(("RXLANE_ID", identity.id.to_string()));
    fields.push(("RXLANE_SESSION", identity.number.to_string()));
    fields.extend(identity.user.as_deref().map(user_of));
    if let Some(line) = &identity.line {
        let texts = [("RXLANE_CIRCUIT", &line.circuit), ("RXLANE_REMOTE", &line.remote)];
        fields.extend(texts.map(|(name, text)| (name, Quotable(text).to_string())));
    }
    fields
}
