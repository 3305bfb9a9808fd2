//! A subscriber's end of a PPPoE session: LCP, authentication, IPCP, IPV6CP, echoes. What the concentrator says is held against
//! the specifications; what breaks them is an error, and so is what nobody asked for.

use super::plan::Plan;
use crate::pppoe_peers::by_hand::frame::Place;
use crate::pppoe_peers::by_hand::negotiation::Negotiation;
use crate::pppoe_peers::by_hand::ppp::{self, Control, Options};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The concentrator's end.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
pub const DNS: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 53);
const GATEWAY_IDENTIFIER: u64 = 1;
/// Between two PAP requests, and two of these echoes.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It answers.
    Alive,
    /// It says nothing any more.
    Dead,
    /// The concentrator knows that it is over.
    Over,
}

/// Packets and octets of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub packets: u64,
    pub octets: u64,
}

#[derive(Debug)]
pub struct Session {
    pub subscriber: usize,
    pub place: Place,
    pub priority: u8,
    pub number: u16,
    pub user: String,
    password: String,
    plan: Plan,
    /// It wants none of the methods.
    refuses_methods: bool,
    pub standing: Standing,
    pub lcp: Negotiation,
    pub ipcp: Negotiation,
    pub ipv6cp: Negotiation,
    magic: u32,
    peer_magic: u32,
    is_authenticated: bool,
    pap: Option<(u8, Instant)>,
    /// What the concentrator said to name and password.
    pub refusal: Option<String>,
    pub address: Ipv4Addr,
    pub identifier: u64,
    /// Any network protocol was up.
    pub was_open: bool,
    /// The other end's LCP ended.
    pub is_terminated: bool,
    pub terminate_acked: bool,
    /// Data of the last Echo-Reply.
    pub echoed: Option<Vec<u8>>,
    /// Of an Echo-Request behind the last Configure-Ack, until it is answered: before, the concentrator may not know that a
    /// network protocol is up, and drops its packets with good reason.
    settling: Option<([u8; 8], Instant)>,
    settled: u64,
    pub protocols_rejected: u32,
    /// What the accounts may say of its end; empty: it is not to end.
    pub causes: &'static [&'static str],
    /// What the PADT said.
    pub last_words: Option<String>,
    pub from_it: Counted,
    pub to_it: Counted,
}

pub struct Opening<'p> {
    pub subscriber: usize,
    pub plan: &'p Plan,
    pub place: Place,
    pub number: u16,
    pub user: String,
    pub password: String,
    pub refuses_methods: bool,
    pub magic: u32,
}

impl Session {
    pub fn new(opening: Opening<'_>) -> Session {
        let Opening { subscriber, plan, place, number, user, password, refuses_methods, magic } = opening;
        Session {
            subscriber,
            place,
            priority: plan.priority,
            number,
            user,
            password,
            plan: plan.clone(),
            refuses_methods,
            standing: Standing::Alive,
            lcp: Negotiation::new(ppp::LCP),
            ipcp: Negotiation::new(ppp::IPCP),
            ipv6cp: Negotiation::new(ppp::IPV6CP),
            magic: if plan.has_magic { magic.max(1) } else { 0 },
            peer_magic: 0,
            is_authenticated: false,
            pap: None,
            refusal: None,
            address: Ipv4Addr::UNSPECIFIED,
            identifier: 0,
            was_open: false,
            is_terminated: false,
            terminate_acked: false,
            echoed: None,
            settling: None,
            settled: 0,
            protocols_rejected: 0,
            causes: &[],
            last_words: None,
            from_it: Counted::default(),
            to_it: Counted::default(),
        }
    }

    /// Octets of the longest packet that it receives.
    pub fn mtu(&self) -> usize {
        usize::from(self.plan.mru.unwrap_or(1492))
    }

    /// The concentrator knows what is up.
    pub const fn is_settled(&self) -> bool {
        self.settling.is_none()
    }

    /// Both network protocols that it wants are up.
    pub fn is_up(&self) -> bool {
        let is_as_wanted = |wanted: bool, negotiation: &Negotiation| !wanted || negotiation.is_up();
        self.is_settled()
            && self.is_authenticated
            && is_as_wanted(self.plan.has_ipv4, &self.ipcp)
            && is_as_wanted(self.plan.has_ipv6, &self.ipv6cp)
    }

    /// Begins LCP, or all of it anew, under this password.
    pub fn start(&mut self, password: Option<String>, now: Instant) -> Vec<Vec<u8>> {
        if let Some(password) = password {
            self.password = password;
        }
        self.down();
        self.refusal = None;
        let mut options = Options::new();
        options.extend(self.plan.mru.map(|mru| (ppp::MRU, mru.to_be_bytes().to_vec())));
        if self.plan.asks_odd_options {
            options.extend([(ppp::ACCM, vec![0; 4]), (ppp::PFC, vec![]), (ppp::ACFC, vec![])]);
        }
        if self.magic != 0 {
            options.push((ppp::MAGIC, self.magic.to_be_bytes().to_vec()));
        }
        vec![self.lcp.begin(options, now)]
    }

    fn down(&mut self) {
        self.is_authenticated = false;
        (self.pap, self.settling) = (None, None);
        self.ipcp.forget();
        self.ipv6cp.forget();
    }

    /// Ends LCP and everything above it.
    pub fn terminate(&mut self, now: Instant) -> Vec<u8> {
        self.down();
        self.lcp.terminate(now)
    }

    pub fn echo_request(&self, data: &[u8]) -> Vec<u8> {
        let data = [&self.magic.to_be_bytes()[..], data].concat();
        ppp::control(ppp::LCP, ppp::ECHO_REQUEST, 77, &data)
    }

    pub fn ipcp_options(&self) -> Options {
        let mut options = Options::new();
        if self.plan.asks_vj {
            options.push((ppp::IP_COMPRESSION, ppp::VJ.to_vec()));
        }
        options.push((ppp::IP_ADDRESS, self.plan.guess.octets().to_vec()));
        if self.plan.asks_dns {
            options.extend([ppp::PRIMARY_DNS, ppp::SECONDARY_DNS].map(|kind| (kind, vec![0; 4])));
        }
        options
    }

    pub fn deadline(&self) -> Option<Instant> {
        let negotiations = [&self.lcp, &self.ipcp, &self.ipv6cp].map(Negotiation::deadline);
        let others = [self.pap.map(|(_, next)| next), self.settling.map(|(_, next)| next)];
        negotiations.into_iter().chain(others).flatten().min()
    }

    pub fn tick(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for negotiation in [&mut self.lcp, &mut self.ipcp, &mut self.ipv6cp] {
            out.extend(negotiation.tick(now));
        }
        if let Some((identifier, next)) = self.pap
            && next <= now
        {
            out.push(self.send_pap(identifier, now));
        }
        if self.settling.is_some_and(|(_, next)| next <= now) {
            out.push(self.settle(now));
        }
        out
    }

    /// Asks for the echo behind which the concentrator knows what is up.
    fn settle(&mut self, now: Instant) -> Vec<u8> {
        let data = self.settled.to_be_bytes();
        self.settling = Some((data, now + PATIENCE));
        self.echo_request(&data)
    }

    fn send_pap(&mut self, identifier: u8, now: Instant) -> Vec<u8> {
        self.pap = Some((identifier, now + PATIENCE));
        ppp::control(ppp::PAP, 1, identifier, &ppp::pap(&self.user, &self.password))
    }

    /// Takes a PPP packet that is no data; what is to be sent.
    pub fn receive(&mut self, protocol: u16, rest: &[u8], now: Instant) -> Result<Vec<Vec<u8>>, String> {
        if self.standing != Standing::Alive {
            return Ok(Vec::new());
        }
        let packet = Control::read(rest).ok_or("a control packet that does not fit")?;
        match protocol {
            ppp::LCP => self.lcp_packet(&packet, now),
            // Late packets of what has been begun anew (RFC 1661 section 3.4).
            _ if !self.lcp.is_up() => Ok(Vec::new()),
            ppp::PAP => self.pap_packet(&packet, now),
            ppp::CHAP => self.chap_packet(&packet, now),
            _ if !self.is_authenticated => Ok(Vec::new()),
            ppp::IPCP if self.plan.has_ipv4 => self.network_packet(true, &packet, now),
            ppp::IPV6CP if self.plan.has_ipv6 => self.network_packet(false, &packet, now),
            ppp::IPCP | ppp::IPV6CP => {
                let rejected = [&protocol.to_be_bytes()[..], rest].concat();
                Ok(vec![ppp::control(ppp::LCP, ppp::PROTOCOL_REJECT, packet.identifier, &rejected)])
            }
            other => Err(format!("protocol {other:#06x}, which nobody asked for")),
        }
    }

    fn lcp_packet(&mut self, packet: &Control<'_>, now: Instant) -> Result<Vec<Vec<u8>>, String> {
        let mut out = Vec::new();
        match packet.code {
            ppp::CONFIGURE_REQUEST if self.lcp.is_ending || self.is_terminated => {}
            ppp::CONFIGURE_REQUEST => {
                // RFC 1661 section 4.3: who hears one while LCP is open begins anew.
                if self.lcp.is_up() && !self.lcp.is_late(packet.identifier) {
                    out.extend(self.start(None, now));
                }
                out.push(self.judge_lcp(packet)?);
            }
            ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK | ppp::CONFIGURE_REJECT => {
                if let Some(options) = self.lcp.answered(packet)? {
                    let odd = [ppp::ACCM, ppp::PFC, ppp::ACFC];
                    let are_odd = options.iter().all(|(kind, _)| odd.contains(kind));
                    if packet.code != ppp::CONFIGURE_REJECT || !are_odd {
                        return Err(format!("code {} for {options:02x?}", packet.code));
                    }
                    self.lcp.options.retain(|(kind, _)| options.iter().all(|(other, _)| kind != other));
                    out.push(self.lcp.ask(now));
                }
            }
            ppp::TERMINATE_REQUEST => {
                self.is_terminated = true;
                self.down();
                self.lcp.forget();
                out.push(ppp::control(ppp::LCP, ppp::TERMINATE_ACK, packet.identifier, &[]));
            }
            ppp::TERMINATE_ACK if self.lcp.is_ending => {
                self.lcp.forget();
                self.terminate_acked = true;
            }
            ppp::PROTOCOL_REJECT => self.protocols_rejected += 1,
            ppp::ECHO_REQUEST | ppp::ECHO_REPLY if !self.lcp.is_up() => {}
            ppp::ECHO_REQUEST => {
                let (magic, data) = packet.data.split_first_chunk::<4>().ok_or("a short echo")?;
                if u32::from_be_bytes(*magic) != self.peer_magic {
                    return Err(format!("an echo request with magic number {magic:02x?}"));
                }
                let answer = [&self.magic.to_be_bytes()[..], data].concat();
                out.push(ppp::control(ppp::LCP, ppp::ECHO_REPLY, packet.identifier, &answer));
            }
            ppp::ECHO_REPLY => {
                let (magic, data) = packet.data.split_first_chunk::<4>().ok_or("a short echo")?;
                if u32::from_be_bytes(*magic) != self.peer_magic {
                    return Err(format!("an echo reply with magic number {magic:02x?}"));
                }
                if self.settling.is_some_and(|(settling, _)| settling == *data) {
                    self.settling = None;
                } else {
                    self.echoed = Some(data.to_vec());
                }
            }
            other => return Err(format!("LCP code {other}")),
        }
        let is_due = self.lcp.is_up() && self.plan.is_pap && !self.is_authenticated;
        if is_due && self.pap.is_none() && self.refusal.is_none() {
            out.push(self.send_pap(packet.identifier.wrapping_add(7), now));
        }
        Ok(out)
    }

    /// The concentrator's LCP request: it has to demand a method.
    fn judge_lcp(&mut self, packet: &Control<'_>) -> Result<Vec<u8>, String> {
        let options = ppp::options(packet.data).ok_or("options that do not fit")?;
        let wanted: &[u8] = if self.plan.is_pap { &ppp::BY_PAP } else { &ppp::BY_CHAP_MD5 };
        let mut method = None;
        for (kind, data) in &options {
            match (*kind, &data[..]) {
                (ppp::MRU, [high, low]) if u16::from_be_bytes([*high, *low]) == 1492 => {}
                (ppp::AUTHENTICATION, data) => method = Some(data.to_vec()),
                (ppp::MAGIC, [a, b, c, d]) if [a, b, c, d] != [&0; 4] => {
                    self.peer_magic = u32::from_be_bytes([*a, *b, *c, *d]);
                }
                _ => return Err(format!("LCP option {kind} with {data:02x?}")),
            }
        }
        let method = method.ok_or("no authentication was demanded")?;
        let option = |data: &[u8]| ppp::put(&[(ppp::AUTHENTICATION, data.to_vec())]);
        let (code, data) = if self.refuses_methods {
            (ppp::CONFIGURE_REJECT, option(&method))
        } else if method != wanted {
            (ppp::CONFIGURE_NAK, option(wanted))
        } else {
            self.lcp.agree(packet.identifier);
            (ppp::CONFIGURE_ACK, packet.data.to_vec())
        };
        Ok(ppp::control(ppp::LCP, code, packet.identifier, &data))
    }

    fn pap_packet(&mut self, packet: &Control<'_>, now: Instant) -> Result<Vec<Vec<u8>>, String> {
        let is_answer = self.pap.is_some_and(|(identifier, _)| identifier == packet.identifier);
        if !self.plan.is_pap || !is_answer {
            return Err("PAP, which nobody asked for".to_owned());
        }
        self.pap = None;
        match packet.code {
            2 => Ok(self.authenticated(now)),
            3 => {
                let text = packet.data.get(1..).unwrap_or_default();
                self.refusal = Some(String::from_utf8_lossy(text).into_owned());
                Ok(Vec::new())
            }
            other => Err(format!("PAP code {other}")),
        }
    }

    fn chap_packet(&mut self, packet: &Control<'_>, now: Instant) -> Result<Vec<Vec<u8>>, String> {
        if self.plan.is_pap {
            return Err("CHAP, which nobody agreed to".to_owned());
        }
        match packet.code {
            1 => {
                let data = ppp::chap(packet.identifier, packet.data, &self.user, &self.password);
                let data = data.ok_or("a challenge that does not fit")?;
                Ok(vec![ppp::control(ppp::CHAP, 2, packet.identifier, &data)])
            }
            3 => Ok(self.authenticated(now)),
            4 => {
                self.refusal = Some(String::from_utf8_lossy(packet.data).into_owned());
                Ok(Vec::new())
            }
            other => Err(format!("CHAP code {other}")),
        }
    }

    fn authenticated(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.is_authenticated = true;
        let mut out = Vec::new();
        if self.plan.has_ipv4 {
            let options = self.ipcp_options();
            out.push(self.ipcp.begin(options, now));
        }
        if self.plan.has_ipv6 {
            let options = self.ipv6cp_options();
            out.push(self.ipv6cp.begin(options, now));
        }
        out
    }

    fn ipv6cp_options(&self) -> Options {
        vec![(ppp::INTERFACE_IDENTIFIER, self.plan.identifier.to_be_bytes().to_vec())]
    }

    fn network_packet(
        &mut self,
        is_ipv4: bool,
        packet: &Control<'_>,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, String> {
        let negotiation = if is_ipv4 { &mut self.ipcp } else { &mut self.ipv6cp };
        let protocol = negotiation.protocol;
        let mut out = Vec::new();
        match packet.code {
            ppp::CONFIGURE_REQUEST if negotiation.is_ending => {}
            ppp::CONFIGURE_REQUEST => {
                if negotiation.is_up() && !negotiation.is_late(packet.identifier) {
                    return Err(format!("protocol {protocol:#06x} anew, which nobody asked for"));
                }
                let options = ppp::options(packet.data).ok_or("options that do not fit")?;
                let expected = match is_ipv4 {
                    true => (ppp::IP_ADDRESS, GATEWAY.octets().to_vec()),
                    false => (ppp::INTERFACE_IDENTIFIER, GATEWAY_IDENTIFIER.to_be_bytes().to_vec()),
                };
                if options != [expected] {
                    return Err(format!("a request of {protocol:#06x} for {options:02x?}"));
                }
                negotiation.agree(packet.identifier);
                out.push(ppp::control(protocol, ppp::CONFIGURE_ACK, packet.identifier, packet.data));
            }
            ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK | ppp::CONFIGURE_REJECT => {
                if let Some(options) = negotiation.answered(packet)? {
                    other_options(negotiation, packet.code, &options)?;
                    out.push(negotiation.ask(now));
                }
            }
            ppp::TERMINATE_ACK if negotiation.is_ending => negotiation.forget(),
            // The answer to a request that came while the other end was still ending (RFC 1661 section 4.3).
            ppp::TERMINATE_ACK => {}
            other => return Err(format!("code {other} of {protocol:#06x}")),
        }
        if (if is_ipv4 { &self.ipcp } else { &self.ipv6cp }).is_up() {
            self.network_up(is_ipv4)?;
            self.settled += 1;
            out.push(self.settle(now));
        }
        Ok(out)
    }

    fn network_up(&mut self, is_ipv4: bool) -> Result<(), String> {
        self.was_open = true;
        let option = |negotiation: &Negotiation, wanted: u8| {
            negotiation.options.iter().find(|(kind, _)| *kind == wanted).map(|(_, data)| data.clone())
        };
        if !is_ipv4 {
            let identifier = option(&self.ipv6cp, ppp::INTERFACE_IDENTIFIER).unwrap_or_default();
            self.identifier = identifier.try_into().map_or(0, u64::from_be_bytes);
            let is_own = self.plan.identifier == 0 || self.identifier == self.plan.identifier;
            return if is_own && self.identifier > GATEWAY_IDENTIFIER {
                Ok(())
            } else {
                Err(format!("the interface identifier {:x}", self.identifier))
            };
        }
        let address = option(&self.ipcp, ppp::IP_ADDRESS).unwrap_or_default();
        let address: [u8; 4] = address.try_into().map_err(|_| "no address")?;
        let (address, before) = (Ipv4Addr::from(address), self.address);
        self.address = address;
        if !before.is_unspecified() && before != address {
            return Err(format!("{address} in mid-session, after {before}"));
        }
        let dns = option(&self.ipcp, ppp::PRIMARY_DNS);
        if self.plan.asks_dns && dns != Some(DNS.octets().to_vec()) {
            return Err(format!("the name server {dns:?}"));
        }
        Ok(())
    }
}

/// What the concentrator wants otherwise: an address, name servers, an identifier. Only VJ compression and a second name
/// server, of which there is none, may be rejected.
fn other_options(negotiation: &mut Negotiation, code: u8, options: &Options) -> Result<(), String> {
    let protocol = negotiation.protocol;
    for (kind, data) in options {
        let own = negotiation.options.iter().position(|(own, _)| own == kind);
        let own = own.ok_or_else(|| format!("option {kind} of {protocol:#06x}, which was not asked for"))?;
        match (code, protocol, *kind) {
            (ppp::CONFIGURE_NAK, ppp::IPCP, ppp::IP_ADDRESS | ppp::PRIMARY_DNS)
            | (ppp::CONFIGURE_NAK, ppp::IPV6CP, ppp::INTERFACE_IDENTIFIER) => {
                negotiation.options[own].1 = data.clone();
            }
            (ppp::CONFIGURE_REJECT, ppp::IPCP, ppp::IP_COMPRESSION | ppp::SECONDARY_DNS) => {
                negotiation.options.remove(own);
            }
            _ => return Err(format!("code {code} of {protocol:#06x} for option {kind} with {data:02x?}")),
        }
    }
    Ok(())
}
