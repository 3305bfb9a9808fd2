//! The options of IPCP: IP-Address (RFC 1332 section 3.3) and name servers (RFC 1877). IP-Compression-Protocol, the old
//! IP-Addresses and NetBIOS name servers are rejected.

use crate::control::{ConfigurationOption, has_option, put_option};
use crate::negotiation::{Failure, Judgement, Layer};
use crate::session::{Grant, Ipv4, Notice};
use crate::step::Step;
use std::net::Ipv4Addr;
use wire::ppp::PppProtocol;

const ADDRESS: u8 = 3;
/// Primary and secondary DNS server address.
const DNS: [u8; 2] = [129, 131];
/// Naks of one option after which it is not requested any more.
const NAKS: u8 = 3;

/// Whether a host can have this address: not 0.0.0.0/8, loopback, multicast, reserved or broadcast.
pub(crate) fn is_usable(address: Ipv4Addr) -> bool {
    !matches!(address.octets(), [0 | 127 | 224..=255, ..])
}

#[derive(Clone, Debug)]
pub(crate) struct Ipcp {
    first: Options4,
    requested: Options4,
    address_naks: u8,
    dns_naks: [u8; 2],
    /// What a concentrator gives; `None`: this is a host.
    given: Option<Given>,
    /// Address that the peer's last good request named, and the one that is being judged names.
    peer: Option<Ipv4Addr>,
    candidate: Option<Ipv4Addr>,
}

/// Options of this end's request; `None`: not requested.
#[derive(Clone, Copy, Debug)]
struct Options4 {
    address: Option<Ipv4Addr>,
    dns: [Option<Ipv4Addr>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Given {
    peer: Ipv4Addr,
    dns: [Option<Ipv4Addr>; 2],
}

impl Ipcp {
    /// A host's: `address` is requested first.
    pub(crate) fn host(address: Ipv4Addr, dns: bool) -> Ipcp {
        let dns = [dns.then_some(Ipv4Addr::UNSPECIFIED); 2];
        Ipcp::new(Options4 { address: Some(address), dns }, None)
    }

    /// A concentrator's; `None`: no IPv4 was granted.
    pub(crate) fn concentrator(grant: &Grant) -> Option<Ipcp> {
        let (local, peer) = grant.ipv4?;
        let requested = Options4 { address: Some(local), dns: [None; 2] };
        Some(Ipcp::new(requested, Some(Given { peer, dns: grant.dns })))
    }

    /// A concentrator's that was up in another process.
    pub(crate) fn resumed(grant: &Grant) -> Option<Ipcp> {
        let mut ipcp = Ipcp::concentrator(grant)?;
        ipcp.peer = ipcp.given.map(|given| given.peer);
        Some(ipcp)
    }

    fn new(first: Options4, given: Option<Given>) -> Ipcp {
        Ipcp {
            first,
            requested: first,
            address_naks: 0,
            dns_naks: [0; 2],
            given,
            peer: None,
            candidate: None,
        }
    }

    /// What came of it, once it is up.
    pub(crate) fn result(&self) -> Ipv4 {
        let local = self.requested.address.or(self.first.address).unwrap_or(Ipv4Addr::UNSPECIFIED);
        Ipv4 { local, peer: self.peer, dns: self.requested.dns.map(|dns| dns.filter(|dns| is_usable(*dns))) }
    }

    fn judge_address(&mut self, address: Ipv4Addr, step: &mut Step<'_>) -> Judgement {
        match self.given {
            Some(given) if address == given.peer => {}
            Some(given) => return Judgement::Nak(given.peer.octets().to_vec()),
            // The peer of a host asks for an address: there is none to give.
            None if address.is_unspecified() => return Judgement::Reject,
            None if !is_usable(address) => {
                step.notice(Notice::BadAddress { address });
                return Judgement::Reject;
            }
            None => {}
        }
        self.candidate = Some(address);
        Judgement::Ack
    }

    fn judge_dns(&self, place: usize, address: Ipv4Addr) -> Judgement {
        match self.given.and_then(|given| given.dns.get(place).copied().flatten()) {
            Some(dns) if dns == address => Judgement::Ack,
            Some(dns) => Judgement::Nak(dns.octets().to_vec()),
            None => Judgement::Reject,
        }
    }

    /// Sees that a host was not given the address that the peer has itself. RFC 1332 does not forbid it and pppd takes it, but
    /// an address is one end's (RFC 1122 section 3.2.1.3): what is for this end would stay at the other.
    fn expect_two(&self) -> Result<(), Failure> {
        let is_one = self.given.is_none() && self.peer.is_some() && self.peer == self.requested.address;
        if is_one { Err(Failure::PeersAddress) } else { Ok(()) }
    }

    fn naked_dns(&mut self, place: usize, address: Option<Ipv4Addr>) {
        let (Some(server), Some(naks)) = (self.requested.dns.get_mut(place), self.dns_naks.get_mut(place))
        else {
            return;
        };
        *naks = naks.saturating_add(1);
        // Some say by a Nak of 0.0.0.0 that they have none, and some say it for ever.
        *server = server.and(address).filter(|address| is_usable(*address) && *naks < NAKS);
    }
}

fn address(data: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(data).ok().map(Ipv4Addr::from)
}

fn dns_place(kind: u8) -> Option<usize> {
    DNS.iter().position(|dns| *dns == kind)
}

impl Layer for Ipcp {
    fn protocol(&self) -> PppProtocol {
        PppProtocol::IPCP
    }

    fn request(&self, options: &mut Vec<u8>) {
        if let Some(address) = self.requested.address {
            put_option(ADDRESS, &address.octets(), options);
        }
        for (kind, address) in DNS.into_iter().zip(self.requested.dns) {
            if let Some(address) = address {
                put_option(kind, &address.octets(), options);
            }
        }
    }

    fn reset(&mut self, _step: &mut Step<'_>) {
        self.requested = self.first;
        (self.address_naks, self.dns_naks) = (0, [0; 2]);
    }

    fn begin(&mut self) {
        self.candidate = None;
    }

    fn judge(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<Judgement, Failure> {
        Ok(match (option.kind, address(option.data), dns_place(option.kind)) {
            (ADDRESS, Some(address), _) => self.judge_address(address, step),
            (_, Some(address), Some(place)) => self.judge_dns(place, address),
            _ => Judgement::Reject,
        })
    }

    fn missing(&mut self, _step: &mut Step<'_>, naks: &mut Vec<u8>) {
        if let Some(given) = self.given
            && self.candidate.is_none()
            && !has_option(ADDRESS, naks)
        {
            put_option(ADDRESS, &given.peer.octets(), naks);
        }
    }

    fn agreed(&mut self) -> Result<(), Failure> {
        self.peer = self.candidate;
        if self.given.is_some() && self.peer.is_none() {
            Err(Failure::NoAgreement)
        } else {
            self.expect_two()
        }
    }

    fn acked(&mut self) -> Result<(), Failure> {
        let none = self.given.is_none() && !self.requested.address.is_some_and(is_usable);
        if none { Err(Failure::NoAddress) } else { self.expect_two() }
    }

    fn naked(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<(), Failure> {
        let address = address(option.data);
        if let Some(place) = dns_place(option.kind) {
            self.naked_dns(place, address);
            return Ok(());
        }
        if option.kind != ADDRESS {
            return Ok(());
        }
        if self.given.is_some() {
            // The subscriber wants this end elsewhere: it is where it is, and stops saying so.
            self.address_naks = self.address_naks.saturating_add(1);
            self.requested.address = self.requested.address.filter(|_| self.address_naks < NAKS);
            return Ok(());
        }
        match address {
            Some(address) if is_usable(address) => {
                self.requested.address = Some(address);
                Ok(())
            }
            _ => {
                if let Some(address) = address.filter(|address| !address.is_unspecified()) {
                    step.notice(Notice::BadAddress { address });
                }
                Err(Failure::NoAddress)
            }
        }
    }

    fn rejected(&mut self, kind: u8) -> Result<(), Failure> {
        if let Some(server) = dns_place(kind).and_then(|place| self.requested.dns.get_mut(place)) {
            *server = None;
            return Ok(());
        }
        if self.given.is_none() {
            return Err(Failure::NoAddress);
        }
        self.requested.address = None;
        Ok(())
    }
}
