//! DHCPv6 of a server (RFC 8415) whose link has one host: it assigns what the host has anyway, for as long as the link lasts.
//!
//! Nothing is kept of a message: the same one gets the same answer. Reconfiguration, authentication, relays and temporary addresses
//! are not served.

use crate::concentrator::network::Network;
use std::net::Ipv6Addr;
use std::time::Duration;
use wire::ethernet::MacAddress;

/// Ports of servers and of hosts (section 7.2).
pub(crate) const SERVER_PORT: u16 = 547;
pub(crate) const HOST_PORT: u16 = 546;

/// How long an address or a prefix is preferred, and valid, after an answer.
pub(crate) const PREFERRED: Duration = Duration::from_secs(3600);
pub(crate) const VALID: Duration = Duration::from_secs(7200);

/// Associations of a message that are answered, and addresses or prefixes that are not its own in each: so that an answer fits into
/// 1280 bytes.
const MOST_ASSOCIATIONS: usize = 4;
const MOST_STRANGE: usize = 4;
/// Bytes of a DUID (section 11.1).
const MOST_DUID: usize = 130;

/// Types of messages (section 7.3).
mod message {
    pub(super) const SOLICIT: u8 = 1;
    pub(super) const ADVERTISE: u8 = 2;
    pub(super) const REQUEST: u8 = 3;
    pub(super) const CONFIRM: u8 = 4;
    pub(super) const RENEW: u8 = 5;
    pub(super) const REBIND: u8 = 6;
    pub(super) const REPLY: u8 = 7;
    pub(super) const RELEASE: u8 = 8;
    pub(super) const DECLINE: u8 = 9;
    pub(super) const INFORMATION_REQUEST: u8 = 11;
}

/// Options (section 21, RFC 3646 section 3).
mod option {
    pub(super) const CLIENT_IDENTIFIER: u16 = 1;
    pub(super) const SERVER_IDENTIFIER: u16 = 2;
    pub(super) const IA_NA: u16 = 3;
    pub(super) const IA_TA: u16 = 4;
    pub(super) const ADDRESS: u16 = 5;
    pub(super) const STATUS: u16 = 13;
    pub(super) const RAPID_COMMIT: u16 = 14;
    pub(super) const NAME_SERVERS: u16 = 23;
    pub(super) const IA_PD: u16 = 25;
    pub(super) const PREFIX: u16 = 26;
}

/// Status codes (section 21.13).
#[derive(Clone, Copy)]
enum Status {
    Success = 0,
    NoAddresses = 2,
    NotOnLink = 4,
    NoPrefixes = 6,
}

/// What a host is assigned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server<'s> {
    /// Names the server: its DUID is made of it (section 11.4).
    pub(crate) mac: MacAddress,
    pub(crate) address: Option<Ipv6Addr>,
    pub(crate) delegated: Option<Network>,
    pub(crate) name_servers: &'s [Ipv6Addr],
}

/// The options of a message or of an association, each by its code; `None`: one is longer than what is left.
fn options(mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut options = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let [a, b, c, d] = *head;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([c, d])))?;
        options.push((u16::from_be_bytes([a, b]), value));
        bytes = rest;
    }
    Some(options)
}

/// Writes an option around what `write` adds.
fn put(out: &mut Vec<u8>, code: u16, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend(code.to_be_bytes());
    let at = out.len();
    out.extend([0, 0]);
    write(out);
    let length = out.len() - at - 2;
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&(length as u16).to_be_bytes());
    }
}

fn put_status(out: &mut Vec<u8>, status: Status) {
    put(out, option::STATUS, |out| out.extend((status as u16).to_be_bytes()));
}

fn put_seconds(out: &mut Vec<u8>, times: [Duration; 2]) {
    times.iter().for_each(|time| out.extend((time.as_secs() as u32).to_be_bytes()));
}

/// An address, or a prefix: its length in bits, and its address.
fn put_lease(out: &mut Vec<u8>, kind: u16, lease: &[u8], lifetimes: [Duration; 2]) {
    put(out, kind, |out| match kind {
        option::ADDRESS => {
            out.extend(lease);
            put_seconds(out, lifetimes);
        }
        _ => {
            put_seconds(out, lifetimes);
            out.extend(lease);
        }
    });
}

impl Server<'_> {
    /// DUID-LL (section 11.4) of Ethernet.
    fn identifier(&self) -> Vec<u8> {
        [&[0, 3, 0, 1][..], &self.mac.0].concat()
    }

    /// The answer to a message, without headers; `None`: it gets none (section 16).
    pub(crate) fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let [kind, transaction @ ..] = *head;
        let options = options(rest)?;
        let find = |code| options.iter().find(|(found, _)| *found == code).map(|(_, value)| *value);
        let (host, server) = (find(option::CLIENT_IDENTIFIER), find(option::SERVER_IDENTIFIER));
        if host.is_some_and(|host| !(3..=MOST_DUID).contains(&host.len())) {
            return None;
        }
        let is_own = server.is_some_and(|server| server == self.identifier());
        let associations = || {
            options.iter().filter(|(code, _)| matches!(*code, option::IA_NA | option::IA_TA | option::IA_PD))
        };
        let is_meant = match kind {
            message::SOLICIT | message::CONFIRM | message::REBIND => host.is_some() && server.is_none(),
            message::REQUEST | message::RENEW | message::RELEASE | message::DECLINE => {
                host.is_some() && is_own
            }
            message::INFORMATION_REQUEST => (server.is_none() || is_own) && associations().next().is_none(),
            _ => false,
        };
        if !is_meant {
            return None;
        }
        let is_rapid = kind == message::SOLICIT && find(option::RAPID_COMMIT).is_some();
        let answer = if kind == message::SOLICIT && !is_rapid { message::ADVERTISE } else { message::REPLY };
        let mut out = vec![answer];
        out.extend(transaction);
        put(&mut out, option::SERVER_IDENTIFIER, |out| out.extend(self.identifier()));
        if let Some(host) = host {
            put(&mut out, option::CLIENT_IDENTIFIER, |out| out.extend(host));
        }
        match kind {
            message::CONFIRM => put_status(
                &mut out,
                self.is_on_link(associations().filter(|(code, _)| *code == option::IA_NA))?,
            ),
            // What it has is its own for as long as the session lasts.
            message::RELEASE | message::DECLINE => put_status(&mut out, Status::Success),
            message::INFORMATION_REQUEST => {}
            _ => {
                if is_rapid {
                    put(&mut out, option::RAPID_COMMIT, |_| ());
                }
                let mut given = [false; 2];
                for (code, value) in associations().take(MOST_ASSOCIATIONS) {
                    self.associate(&mut out, *code, value, &mut given)?;
                }
            }
        }
        if !self.name_servers.is_empty() {
            put(&mut out, option::NAME_SERVERS, |out| {
                self.name_servers.iter().for_each(|server| out.extend(server.octets()));
            });
        }
        Some(out)
    }

    /// What a host may think of the addresses that it says it has; `None`: it says none, or cannot be read (section 18.3.3).
    fn is_on_link<'o>(&self, associations: impl Iterator<Item = &'o (u16, &'o [u8])>) -> Option<Status> {
        let mut status = None;
        for (_, value) in associations {
            for (_, value) in options(value.get(12..)?)?.iter().filter(|(code, _)| *code == option::ADDRESS) {
                let address: [u8; 16] = *value.first_chunk()?;
                let is_own = self.address.is_some_and(|own| own.octets() == address);
                status = if is_own { status.or(Some(Status::Success)) } else { Some(Status::NotOnLink) };
            }
        }
        status
    }

    /// Answers an association. `given`: whether the address and the prefix are given already, each of which one association gets. `None`:
    /// it cannot be read.
    fn associate(&self, out: &mut Vec<u8>, code: u16, value: &[u8], given: &mut [bool; 2]) -> Option<()> {
        let (identifier, rest) = value.split_first_chunk::<4>()?;
        let mut inside = identifier.to_vec();
        let [of_addresses, of_prefixes] = given;
        let (kind, place, own, is_given, none) = match code {
            option::IA_TA => {
                put_status(&mut inside, Status::NoAddresses);
                put(out, code, |out| out.extend(inside));
                return Some(());
            }
            option::IA_NA => {
                let own = self.address.map(|own| own.octets().to_vec());
                (option::ADDRESS, 0..16, own, of_addresses, Status::NoAddresses)
            }
            _ => {
                let own = self.delegated.and_then(|own| Some((own.length(), own.ipv6()?)));
                let own = own.map(|(bits, address)| [&[bits][..], &address.octets()].concat());
                (option::PREFIX, 8..25, own, of_prefixes, Status::NoPrefixes)
            }
        };
        let options = options(rest.get(8..)?)?;
        let own = own.filter(|_| !std::mem::replace(is_given, true));
        put_seconds(&mut inside, renewal(own.is_some()));
        match &own {
            Some(own) => put_lease(&mut inside, kind, own, [PREFERRED, VALID]),
            None => put_status(&mut inside, none),
        }
        // What it says it has and is not its own is over.
        let values = options.iter().filter(|(code, _)| *code == kind);
        let strange = values.filter_map(|(_, value)| value.get(place.clone()));
        for lease in strange.filter(|found| Some(*found) != own.as_deref()).take(MOST_STRANGE) {
            // A host that only requests a length says the prefix ::.
            if kind == option::ADDRESS || lease.get(1..) != Some(&[0; 16]) {
                put_lease(&mut inside, kind, lease, [Duration::ZERO; 2]);
            }
        }
        put(out, code, |out| out.extend(inside));
        Some(())
    }
}

/// T1 and T2 (section 14.2): half and four fifths of the time for which it is preferred.
const fn renewal(is_given: bool) -> [Duration; 2] {
    let seconds = if is_given { PREFERRED.as_secs() } else { 0 };
    [Duration::from_secs(seconds / 2), Duration::from_secs(seconds / 5 * 4)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);
    const HOST: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 1];

    fn server() -> Server<'static> {
        const SERVERS: &[Ipv6Addr] = &[Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53)];
        Server {
            mac: MAC,
            address: Some("2001:db8:f::1".parse().unwrap()),
            delegated: Some("2001:db8:1:ff00::/56".parse().unwrap()),
            name_servers: SERVERS,
        }
    }

    fn message(kind: u8, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut out = vec![kind, 1, 2, 3];
        options.iter().for_each(|(code, value)| put(&mut out, *code, |out| out.extend(value)));
        out
    }

    /// An association of this number, with such options.
    fn association(number: u8, inner: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut out = vec![0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0];
        inner.iter().for_each(|(code, value)| put(&mut out, *code, |out| out.extend(value)));
        out
    }

    fn address(text: &str) -> Vec<u8> {
        let address: Ipv6Addr = text.parse().unwrap();
        [&address.octets()[..], &[0, 0, 0, 9, 0, 0, 0, 9]].concat()
    }

    fn prefix(text: &str) -> Vec<u8> {
        let network: Network = text.parse().unwrap();
        [&[0, 0, 0, 9, 0, 0, 0, 9, network.length()][..], &network.ipv6().unwrap().octets()].concat()
    }

    /// An answer in words: its type, and each option.
    fn words(answer: &[u8]) -> Vec<String> {
        assert_eq!(answer[1..4], [1, 2, 3]);
        let mut words = vec![format!("message {}", answer[0])];
        words.extend(options(&answer[4..]).unwrap().iter().map(|(code, value)| word(*code, value)));
        words
    }

    fn word(code: u16, value: &[u8]) -> String {
        let seconds = |at: usize| u32::from_be_bytes(value[at..at + 4].try_into().unwrap());
        let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&value[at..at + 16]).unwrap());
        let inner = |at: usize| {
            let words: Vec<String> =
                options(&value[at..]).unwrap().iter().map(|(code, value)| word(*code, value)).collect();
            words.join(", ")
        };
        match code {
            1 => format!("host {}", value.len()),
            2 => format!("server {value:02x?}"),
            3 | 25 => {
                let kind = if code == 3 { "IA_NA" } else { "IA_PD" };
                format!("{kind} {} {} {}: {}", seconds(0), seconds(4), seconds(8), inner(12))
            }
            4 => format!("IA_TA {}: {}", seconds(0), inner(4)),
            5 => format!("{} {} {}", address(0), seconds(16), seconds(20)),
            13 => format!("status {}", u16::from_be_bytes([value[0], value[1]])),
            14 => "rapid".to_owned(),
            23 => format!("servers {}", address(0)),
            26 => format!("{}/{} {} {}", address(9), value[8], seconds(0), seconds(4)),
            other => format!("option {other}"),
        }
    }

    fn own() -> (u16, Vec<u8>) {
        (option::SERVER_IDENTIFIER, server().identifier())
    }

    fn host() -> (u16, Vec<u8>) {
        (option::CLIENT_IDENTIFIER, HOST.to_vec())
    }

    const SERVER: &str = "server [00, 03, 00, 01, 02, 00, 00, 00, 00, ac]";

    #[test]
    fn a_host_is_assigned_what_it_has() {
        let both = [(option::IA_NA, association(1, &[])), (option::IA_PD, association(2, &[]))];
        let assigned = [
            SERVER,
            "host 10",
            "IA_NA 1 1800 2880: 2001:db8:f::1 3600 7200",
            "IA_PD 2 1800 2880: 2001:db8:1:ff00::/56 3600 7200",
            "servers 2001:db8::53",
        ];
        let solicit = message(message::SOLICIT, &[&[host()][..], &both].concat());
        assert_eq!(words(&server().answer(&solicit).unwrap()), [&["message 2"][..], &assigned].concat());
        for kind in [message::REQUEST, message::RENEW] {
            let request = message(kind, &[&[host(), own()][..], &both].concat());
            assert_eq!(words(&server().answer(&request).unwrap()), [&["message 7"][..], &assigned].concat());
        }
        let rebind = message(message::REBIND, &[&[host()][..], &both].concat());
        assert_eq!(words(&server().answer(&rebind).unwrap()), [&["message 7"][..], &assigned].concat());
        let rapid = message(message::SOLICIT, &[host(), (option::RAPID_COMMIT, vec![]), both[1].clone()]);
        assert_eq!(words(&server().answer(&rapid).unwrap())[..4], ["message 7", SERVER, "host 10", "rapid"]);
        let information = message(message::INFORMATION_REQUEST, &[]);
        let answer = server().answer(&information).unwrap();
        assert_eq!(words(&answer), ["message 7", SERVER, "servers 2001:db8::53"]);
        for kind in [message::RELEASE, message::DECLINE] {
            let answer = server().answer(&message(kind, &[host(), own(), both[0].clone()])).unwrap();
            assert_eq!(words(&answer)[..4], ["message 7", SERVER, "host 10", "status 0"]);
        }
    }

    #[test]
    fn what_is_not_its_own_is_over_and_what_there_is_not_is_said() {
        let had = [(option::ADDRESS, address("2001:db8:a::1")), (option::ADDRESS, address("2001:db8:f::1"))];
        let networks = [(option::PREFIX, prefix("2001:db8:9::/56")), (option::PREFIX, prefix("::/60"))];
        let rebind = message(
            message::REBIND,
            &[host(), (option::IA_NA, association(1, &had)), (option::IA_PD, association(2, &networks))],
        );
        let answer = words(&server().answer(&rebind).unwrap());
        assert_eq!(
            answer[3..5],
            [
                "IA_NA 1 1800 2880: 2001:db8:f::1 3600 7200, 2001:db8:a::1 0 0",
                "IA_PD 2 1800 2880: 2001:db8:1:ff00::/56 3600 7200, 2001:db8:9::/56 0 0"
            ]
        );
        let nothing = Server { address: None, delegated: None, ..server() };
        let answer = words(&nothing.answer(&rebind).unwrap());
        assert_eq!(answer[3], "IA_NA 1 0 0: status 2, 2001:db8:a::1 0 0, 2001:db8:f::1 0 0");
        assert_eq!(answer[4], "IA_PD 2 0 0: status 6, 2001:db8:9::/56 0 0");
        // Of several of a kind one gets it.
        let twice = [host(), (option::IA_PD, association(1, &[])), (option::IA_PD, association(2, &[]))];
        let answer = words(&server().answer(&message(message::SOLICIT, &twice)).unwrap());
        assert_eq!(answer[4], "IA_PD 2 0 0: status 6");
        let temporary = [host(), (option::IA_TA, vec![0, 0, 0, 1])];
        let answer = words(&server().answer(&message(message::SOLICIT, &temporary)).unwrap());
        assert_eq!(answer[3], "IA_TA 1: status 2");
        for (addresses, status) in [(&had[1..], "status 0"), (&had[..], "status 4")] {
            let confirm = message(message::CONFIRM, &[host(), (option::IA_NA, association(1, addresses))]);
            assert_eq!(words(&server().answer(&confirm).unwrap())[3], status);
        }
    }

    #[test]
    fn what_the_specification_discards_gets_no_answer() {
        let na = || (option::IA_NA, association(1, &[]));
        let other = (option::SERVER_IDENTIFIER, vec![0, 3, 0, 1, 9, 9, 9, 9, 9, 9]);
        for (kind, options) in [
            (message::SOLICIT, vec![na()]),
            (message::SOLICIT, vec![host(), own()]),
            (message::SOLICIT, vec![(option::CLIENT_IDENTIFIER, vec![0; 131])]),
            (message::SOLICIT, vec![host(), (option::IA_NA, vec![0; 11])]),
            (
                message::SOLICIT,
                vec![host(), (option::IA_PD, association(1, &[]).into_iter().chain([0]).collect())],
            ),
            (message::REQUEST, vec![host()]),
            (message::REQUEST, vec![host(), other.clone()]),
            (message::RENEW, vec![own()]),
            (message::REBIND, vec![host(), own()]),
            (message::CONFIRM, vec![host(), na()]),
            (message::RELEASE, vec![host(), other.clone()]),
            (message::INFORMATION_REQUEST, vec![other]),
            (message::INFORMATION_REQUEST, vec![na()]),
            (message::ADVERTISE, vec![host()]),
            (message::REPLY, vec![host()]),
            (12, vec![host()]),
        ] {
            assert_eq!(server().answer(&message(kind, &options)), None, "{kind} {options:?}");
        }
        let whole = message(message::SOLICIT, &[host(), na()]);
        for length in 0..whole.len() {
            // Options end where a message may end, too.
            let _ = server().answer(&whole[..length]);
        }
        let many = vec![(option::ADDRESS, address("2001:db8:a::1")); 40];
        let options = [vec![host()], vec![(option::IA_NA, association(1, &many)); 20]].concat();
        assert!(server().answer(&message(message::SOLICIT, &options)).unwrap().len() < 1232);
    }
}
