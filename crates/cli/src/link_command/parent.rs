//! What may stand on a parent, or be the parent, that has an opinion of its own about frames: an envelope, another link.

use super::check::{Answer, Fact};
use format::quoted;
use kernel::netlink::Link;
use link::frame_size::needed_mtu;
use link::running::{find_parent, usual_mtu};
use link::status::Status;
use service::Instances;
use service::control::ControlError;
use steer::record::Records;
use wire::emit::Encapsulation;

/// An envelope, which refuses payloads that the parent's raised MTU would let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Bytes of the longest payload.
    payload: u32,
}

impl Envelope {
    pub fn of(parent: &str, records: &Records) -> (Option<Envelope>, Option<Fact>) {
        let fact = |answer, text| Some(Fact { about: "envelope", answer, text });
        match envelope::status(parent, records) {
            Ok(status) => {
                let envelope = status.mode.and(status.payload).map(|payload| Envelope { payload });
                let problem = status.problems.into_iter().next();
                (envelope, problem.and_then(|problem| fact(Answer::Note, problem)))
            }
            Err(error) => {
                let text = format!(
                    "whether an envelope on {parent} refuses payloads of that length is not known: {error}"
                );
                (None, fact(Answer::Unknown, text))
            }
        }
    }

    /// Whether packets of so many bytes get in.
    pub fn receiving(&self, parent: &str, mtu: u32, needed: u32) -> Fact {
        let payload = self.payload;
        let (answer, text) = if mtu <= payload {
            let text =
                format!("the envelope on {parent} lets payloads of {payload} bytes in, and these have {mtu}");
            (Answer::Yes, text)
        } else {
            let text = format!(
                "the envelope on {parent} refuses payloads of more than {payload} bytes, and these have {mtu}: `--mtu \
                 {payload}` fits; `rxlane envelope down {quoted_parent}` and `ip link set {quoted_parent} mtu {needed}` let them in, and \
                 longer untagged frames with them",
                quoted_parent = quoted(parent)
            );
            (Answer::No, text)
        };
        Fact { about: "envelope", answer, text }
    }

    /// How there can be room for frames that take this MTU of the parent.
    pub fn way_out(&self, parent: &str, needed: u32) -> String {
        let header = needed.saturating_sub(self.payload);
        format!(
            "`rxlane envelope down {quoted_parent}` and `rxlane envelope up {quoted_parent} --header {header}` make room",
            quoted_parent = quoted(parent)
        )
    }
}

/// What it means that the parent is a link itself, if it is one: a link takes and sends frames without further tags alone.
pub fn nested(parent: &Link, encapsulation: &Encapsulation, sockets: &Instances) -> Option<Fact> {
    let name = &parent.name;
    let has_tags = !encapsulation.tags().is_empty();
    let below = match link_named(name, sockets) {
        Ok(below) => below?.identity,
        Err(error) => {
            let text = format!(
                "{name} is a TAP device, and if it is a link itself, it drops frames with further tags: {error}"
            );
            return has_tags.then_some(Fact { about: "parent", answer: Answer::Unknown, text });
        }
    };
    let whole = format!("{},{encapsulation}", below.encapsulation);
    let one = match whole.parse::<Encapsulation>() {
        Ok(_) => format!("`--parent {} --encap {whole}` makes one link of both", below.parent),
        Err(_) => format!("one link over {} would have more tags than any can", below.parent),
    };
    let (answer, text) = if has_tags {
        let text = format!(
            "{name} is itself a link ({} over {}), and drops frames with further tags (more-tags): {one}",
            below.encapsulation, below.parent
        );
        (Answer::No, text)
    } else {
        (Answer::Note, format!("{name} is itself a link; {one}, which moves packets once instead of twice"))
    };
    Some(Fact { about: "parent", answer, text })
}

/// What `up` has to say of a parent; `link check` asks more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    /// Why no packet would pass.
    pub refused: Option<String>,
    /// What is worth knowing: packets that are refused or left no room for, or are moved twice.
    pub notes: Vec<String>,
}

impl Opinion {
    /// That of `parent`. Nothing where it is not there or not known.
    pub fn of(parent: &str, mtu: Option<u32>, encapsulation: &Encapsulation, sockets: &Instances) -> Opinion {
        let Ok(parent) = find_parent(parent) else { return Opinion::default() };
        let mut opinion = Opinion::default();
        let link_mtu = mtu.unwrap_or_else(|| usual_mtu(parent.mtu, encapsulation));
        let usual = usual_mtu(u32::MAX, encapsulation);
        let (envelope, _) = Envelope::of(&parent.name, &Records::new(sockets.state().path()));
        if mtu.is_none() && link_mtu < usual {
            let needed = needed_mtu(usual, encapsulation);
            let way_out = match &envelope {
                Some(envelope) => envelope.way_out(&parent.name, needed),
                None => format!("`ip link set {} mtu {needed}` makes room", quoted(&parent.name)),
            };
            opinion.notes.push(format!(
                "packets have {link_mtu} bytes at most, not {usual}: {way_out} for the next `up`"
            ));
        }
        let needed = needed_mtu(link_mtu, encapsulation);
        let receiving = envelope.map(|envelope| envelope.receiving(&parent.name, link_mtu, needed));
        opinion.notes.extend(receiving.filter(|fact| fact.answer == Answer::No).map(|fact| fact.text));
        if sockets.names().is_ok_and(|names| names.contains(&parent.name)) {
            match nested(&parent, encapsulation, sockets) {
                Some(Fact { answer: Answer::No, text, .. }) => opinion.refused = Some(text),
                Some(Fact { answer: Answer::Note, text, .. }) => opinion.notes.push(text),
                _ => {}
            }
        }
        opinion
    }
}

/// The link whose interface has this name now.
fn link_named(name: &str, sockets: &Instances) -> Result<Option<Status>, ControlError> {
    let is_it = |status: &Status| status.present_name.as_ref().unwrap_or(&status.identity.name) == name;
    let mut names = sockets.names()?;
    // Most have the name that they came up with, and then no other has to be queried.
    names.sort_by_key(|other| other != name);
    for other in names {
        match sockets.ask::<Status>(&other, "status") {
            Ok(status) if is_it(&status) => return Ok(Some(status)),
            Ok(_)
            | Err(ControlError::None { .. } | ControlError::Killed { .. } | ControlError::Leftover { .. }) => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
