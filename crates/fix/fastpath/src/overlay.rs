//! What is below the interfaces of rxlane's own links and sessions, from the status of their processes.

use crate::topology::Overlay;
use serde_json::Value;
use service::{Instances, Kind, StateDir};
use wire::emit::Encapsulation;
use xdp::forward::{Session, Tag};

/// An interface as the process behind it reports it: `rxlane link` or `rxlane pppoe connect`.
pub fn overlays(state: StateDir) -> impl Fn(&str) -> Option<Overlay> + Send {
    move |interface| link(interface, &state).or_else(|| session(interface, &state))
}

fn link(interface: &str, state: &StateDir) -> Option<Overlay> {
    let status = status_of(Kind::Link, state, |status| {
        ["present_name", "name"].iter().any(|key| status[key] == *interface)
    })?;
    let encapsulation: Encapsulation = status["encapsulation"].as_str()?.parse().ok()?;
    let session = match encapsulation.pppoe() {
        Some(pppoe) => Some(Session { id: pppoe.session?, peer: pppoe.peer? }),
        None => None,
    };
    Some(Overlay { parent: status["parent"].as_str()?.to_owned(), tags: tags(&encapsulation), session })
}

fn session(interface: &str, state: &StateDir) -> Option<Overlay> {
    let status = status_of(Kind::Session, state, |status| status["interface"] == *interface)?;
    let vlans: Encapsulation = status["vlans"].as_str()?.parse().ok()?;
    let id = u16::try_from(status["session_id"].as_u64()?).ok()?;
    let peer = status["ac_mac"].as_str()?.parse().ok()?;
    let parent = status["parent"].as_str()?.to_owned();
    Some(Overlay { parent, tags: tags(&vlans), session: Some(Session { id, peer }) })
}

fn tags(encapsulation: &Encapsulation) -> Vec<Tag> {
    encapsulation.tags().iter().map(|tag| Tag { tpid: tag.tpid.0, vid: tag.tci.vid() }).collect()
}

fn status_of(kind: Kind, state: &StateDir, is_its: impl Fn(&Value) -> bool) -> Option<Value> {
    let instances = Instances::new(kind, state.clone()).ok()?;
    let mut statuses = instances.names().ok()?.into_iter();
    statuses.find_map(|name| instances.ask::<Value>(&name, "status").ok().filter(&is_its))
}
