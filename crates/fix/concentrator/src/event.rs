//! What happens while a concentrator begins and serves: facts, which whoever runs it words.

use crate::error::Error;
use crate::radius::RadiusEvent;
use crate::serving::Withheld;
use crate::subscribers::{Forwarding, Refusal};
use kernel::netlink;
use pppoe::concentrator::accounting::Record;
use pppoe::concentrator::network::Network;
use pppoe::concentrator::secrets::Difference;
use pppoe::concentrator::{End, Id, Notice, Why};
use service::control::ControlError;
use std::io;
use wire::ethernet::MacAddress;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    Opened(Box<Record>),
    Ended(Box<End>),
    /// What the machine of discovery and negotiation has to say.
    Machine(Box<Notice>),
    /// A record of accounting, as JSON.
    Account(String),
    Parent {
        name: String,
        change: link::running::Event,
    },
    /// The interface of the subscribers was set down, or up again, with its addresses and routes.
    Interface {
        name: String,
        is_up: bool,
    },
    /// Lines have any number of tags, and those with two have room for less than is requested.
    ShorterBehindTags {
        parent: String,
        parent_mtu: u32,
        most: u16,
        requested: u16,
        needed: u32,
    },
    SecretsRead(Difference),
    /// Why they were not; they are as before.
    SecretsUnread(String),
    /// A session goes on that does not agree with the secrets.
    Disagrees {
        parent: String,
        id: Id,
        user: Vec<u8>,
        why: Why,
    },
    Uncarried(Uncarried),
    Takeover(Takeover),
    /// Why the next process cannot go on with the sessions of one that was killed: what those were cannot be read.
    Forgotten(io::Error),
    /// Why the next process could not, if this one were killed: its sessions cannot be written.
    Unkept(io::Error),
    Radius(RadiusEvent),
    /// Of programs in XDP.
    Forwarding(Forwarding),
}

/// What the data path or the kernel does not take.
#[derive(Debug)]
pub enum Uncarried {
    Session { station: MacAddress, why: Refusal },
    Change(Refusal),
    Prefix { prefix: Network, station: MacAddress, why: Refusal },
    Route { network: Network, why: netlink::Refusal },
}

/// What came of taking sessions over, other than that it was done. `successor`: number of the other process.
#[derive(Debug)]
pub enum Takeover {
    /// It got none of them, and nothing was changed.
    Withheld { successor: Option<u32>, why: Withheld },
    /// It had them and has ended; this process goes on with them.
    Resumed { successor: Option<u32>, why: Withheld },
    /// It had them and has ended, and this process cannot go on.
    Lost { successor: Option<u32>, why: Withheld, error: Box<Error> },
    /// Another process has the frames, too.
    Unclaimed(link::Error),
    /// The interface could not get the name of the former one.
    Unnamed { own: String, requested: String, why: link::Error },
    /// Nobody can ask this process.
    Unreachable(ControlError),
}
