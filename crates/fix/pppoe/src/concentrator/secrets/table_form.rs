//! The TOML form: tables `[[subscriber]]` and `[[vlan]]`.
//!
//! Every value is looked at here, never by a deserialiser: its messages quote what they found, and that may be a password.

use super::{
    Address, Error, NO_USER, Password, Profile, Secrets, Subscriber, Table, VlanProfile, no_password,
    not_own, station,
};
use crate::concentrator::network::Network;
use crate::concentrator::rates::BitRates;
use format::Quotable;
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::VlanPattern;
use wire::ethernet::MacAddress;

const KEYS: &str = "user, password, address, pool, routes, prefix, delegated, download, upload or sessions";
const VLAN_KEYS: &str = "vlans, pool, download, upload, sessions or blocked";

/// Reads the tables. `own` is the concentrator's address.
pub(super) fn read(text: &[u8], own: Option<Ipv4Addr>) -> Result<Secrets, Error> {
    let ends: Vec<usize> =
        text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let line_of = |offset: usize| ends.partition_point(|end| *end < offset) + 1;
    let text = std::str::from_utf8(text).map_err(|error| {
        Error::new(line_of(error.valid_up_to()), "this is no UTF-8, which TOML has to be")
    })?;
    let document = DeTable::parse(text).map_err(|error| {
        let mistake = format!("this is no TOML: {}", error.message().lines().next().unwrap_or_default());
        Error::new(line_of(error.span().map_or(0, |span| span.start)), mistake)
    })?;
    let mut reader = Reader { line_of: &line_of, own, secrets: Secrets::default(), taken: HashMap::new() };
    for (key, value) in document.get_ref() {
        let at = |mistake: String| Error::new(line_of(key.span().start), mistake);
        match &**key.get_ref() {
            "subscriber" => {}
            "vlan" => {
                for (line, table) in tables("vlan", value).map_err(at)? {
                    reader.vlan(line_of(line), table)?;
                }
                continue;
            }
            "blocked" => {
                reader.secrets.blocked.stations = blocked(value).map_err(at)?;
                continue;
            }
            other => {
                let expected = "tables [[subscriber]] and [[vlan]], and blocked before them";
                return Err(at(unknown_key(other, expected)));
            }
        }
        for (start, table) in tables("subscriber", value).map_err(at)? {
            let line = line_of(start);
            reader.subscriber(line, table).map_err(|error| {
                let user = table.get("user").and_then(|user| user.get_ref().as_str()).map(quoted);
                Error { subscriber: Some(Table { line, user }), ..error }
            })?;
        }
    }
    Ok(reader.secrets)
}

struct Reader<'a> {
    line_of: &'a dyn Fn(usize) -> usize,
    own: Option<Ipv4Addr>,
    secrets: Secrets,
    /// Addresses, routes and prefixes, with the line of the subscriber.
    taken: HashMap<Network, usize>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    fn subscriber(&mut self, line: usize, table: &DeTable<'_>) -> Result<(), Error> {
        let (mut user, mut password) = (None, None);
        let mut subscriber = Subscriber { password: Password::new(b""), profile: Profile::default(), line };
        let profile = &mut subscriber.profile;
        for (key, value) in table {
            let at = (self.line_of)(key.span().start);
            let result = match &**key.get_ref() {
                "user" => text("user", value).map(|text| user = Some((text, at))),
                "password" => text("password", value).map(|text| password = Some((text, at))),
                "address" => address(value, self.own).map(|address| profile.address = address),
                "pool" => text("pool", value).map(|name| profile.pool = Some(name.into())),
                "routes" => routes(value, self.own).map(|routes| profile.routes = routes),
                "prefix" => prefix(value).map(|prefix| profile.prefixes.link = Some(prefix)),
                "delegated" => delegated(value).map(|prefix| profile.prefixes.delegated = Some(prefix)),
                "download" => rate("download", value).map(|rate| profile.rates.download = Some(rate)),
                "upload" => rate("upload", value).map(|rate| profile.rates.upload = Some(rate)),
                "sessions" => sessions(value).map(|sessions| profile.sessions = Some(sessions)),
                "blocked" => Err("blocked belongs before the first [[subscriber]] or [[vlan]]".to_owned()),
                other => Err(unknown_key(other, KEYS)),
            };
            result.map_err(|mistake| Error::new(at, mistake))?;
        }
        let missing = |key: &'static str| move || Error::new(line, format!("this subscriber has no {key}"));
        let (user, user_line) = user.ok_or_else(missing("user"))?;
        let (password, password_line) = password.ok_or_else(missing("password"))?;
        if user.is_empty() {
            return Err(Error::new(user_line, NO_USER));
        }
        if password.is_empty() {
            return Err(Error::new(password_line, no_password(user.as_bytes())));
        }
        if profile.serves_one() && profile.sessions.is_some_and(|most| most > 1) {
            let mistake =
                wrong("sessions", "1, because address, routes and prefixes serve one session at a time");
            return Err(Error::new(line, mistake));
        }
        subscriber.password = Password::new(password.as_bytes());
        self.claim(&subscriber)?;
        self.put(user, user_line, subscriber)
    }

    fn vlan(&mut self, line: usize, table: &DeTable<'_>) -> Result<(), Error> {
        let mut vlans = None;
        let (mut pool, mut rates, mut most, mut is_blocked) = (None, BitRates::default(), None, false);
        for (key, value) in table {
            let result = match &**key.get_ref() {
                "vlans" => pattern(value).map(|pattern| vlans = Some(pattern)),
                "pool" => text("pool", value).map(|name| pool = Some(name.into())),
                "download" => rate("download", value).map(|rate| rates.download = Some(rate)),
                "upload" => rate("upload", value).map(|rate| rates.upload = Some(rate)),
                "sessions" => sessions(value).map(|sessions| most = Some(sessions)),
                "blocked" => {
                    let expected = || wrong("blocked", "true or false");
                    value.get_ref().as_bool().ok_or_else(expected).map(|value| is_blocked = value)
                }
                other => Err(unknown_key(other, VLAN_KEYS)),
            };
            result.map_err(|mistake| Error::new((self.line_of)(key.span().start), mistake))?;
        }
        let vlans =
            vlans.ok_or_else(|| Error::new(line, "this [[vlan]] does not say which: vlans = \"100.*\""))?;
        if let Some(first) = self.secrets.vlans.iter().position(|earlier| earlier.vlans == vlans) {
            let mistake = format!("the VLANs {vlans} have a [[vlan]] already, number {}", first + 1);
            return Err(Error::new(line, mistake));
        }
        self.secrets.blocked.vlans.push((vlans, is_blocked));
        self.secrets.vlans.push(VlanProfile { vlans, pool, rates, sessions: most, is_blocked });
        Ok(())
    }

    /// Sees that no two subscribers have the same address, route or prefix.
    fn claim(&mut self, subscriber: &Subscriber) -> Result<(), Error> {
        for network in subscriber.profile.routes.iter().copied().chain(subscriber.profile.fixed_networks()) {
            if let Some(first) = self.taken.insert(network, subscriber.line) {
                let mistake = format!("{network} belongs to the subscriber of line {first} already");
                return Err(Error::new(subscriber.line, mistake));
            }
        }
        Ok(())
    }

    fn put(&mut self, user: &str, line: usize, subscriber: Subscriber) -> Result<(), Error> {
        if let Some(first) = self.secrets.named.get(user.as_bytes()) {
            let (user, first) = (quoted(user), first.line);
            return Err(Error::new(
                line,
                format!("the user \"{user}\" has an entry in line {first} already"),
            ));
        }
        self.secrets.named.insert(user.as_bytes().into(), subscriber);
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    Quotable(text.as_bytes()).to_string()
}

fn wrong(key: &str, expected: impl std::fmt::Display) -> String {
    format!("{key}: expected {expected}")
}

fn unknown_key(found: &str, expected: &str) -> String {
    format!("unknown key \"{}\": expected {expected}", quoted(found))
}

fn text<'v>(key: &'static str, value: &'v Value<'_>) -> Result<&'v str, String> {
    value.get_ref().as_str().ok_or_else(|| wrong(key, "a text in quotes"))
}

/// The tables under a name, each with the place in the text where it begins.
fn tables<'v, 'i>(name: &str, value: &'v Value<'i>) -> Result<Vec<(usize, &'v DeTable<'i>)>, String> {
    let expected = || wrong(name, format!("tables, each under a line [[{name}]]"));
    let entries = value.get_ref().as_array().ok_or_else(expected)?;
    let table = |entry: &'v Value<'i>| match entry.get_ref() {
        DeValue::Table(table) => Ok((entry.span().start, table)),
        _ => Err(expected()),
    };
    entries.iter().map(table).collect()
}

fn pattern(value: &Value<'_>) -> Result<VlanPattern, String> {
    let text = text("vlans", value)?;
    text.parse().map_err(|error| {
        wrong("vlans", format!("a pattern as of --vlan, and in \"{}\" {error}", quoted(text)))
    })
}

fn blocked(value: &Value<'_>) -> Result<HashSet<MacAddress>, String> {
    let expected = || wrong("blocked", "a list of MAC addresses such as [\"02:00:5e:00:00:01\"]");
    let list = value.get_ref().as_array().ok_or_else(expected)?;
    list.iter()
        .map(|one| one.get_ref().as_str().and_then(|text| text.parse().ok()).ok_or_else(expected))
        .collect()
}

fn address(value: &Value<'_>, own: Option<Ipv4Addr>) -> Result<Address, String> {
    let expected = || wrong("address", "an IPv4 address in quotes, \"pool\" or \"none\"");
    match value.get_ref().as_str().ok_or_else(expected)? {
        "pool" => Ok(Address::Pool),
        "none" => Ok(Address::None),
        text => Ok(Address::Fixed(station(text.parse().map_err(|_| expected())?, own)?)),
    }
}

fn routes(value: &Value<'_>, own: Option<Ipv4Addr>) -> Result<Box<[Network]>, String> {
    let expected =
        || wrong("routes", "a list of networks such as [\"198.51.100.16/28\", \"2001:db8:b0b::/48\"]");
    let list = value.get_ref().as_array().ok_or_else(expected)?;
    let route = |value: &Value<'_>| {
        let text = value.get_ref().as_str().ok_or_else(expected)?;
        let network: Network = text
            .parse()
            .map_err(|error| wrong("routes", format!("networks, and of \"{}\" {error}", quoted(text))))?;
        match own {
            _ if network.length() == 0 => Err(format!(
                "{network} is a default route, by which all that leaves this machine would go to one subscriber: expected the networks \
                 behind it"
            )),
            Some(own) if network == Network::host(own.into()) => Err(not_own(own)),
            _ => usable(network),
        }
    };
    list.iter().map(route).collect()
}

/// Sees that hosts of a subscriber can have the addresses of a network.
fn usable(network: Network) -> Result<Network, String> {
    match network.reserved() {
        Some(reserved) => Err(format!("{network} cannot be a subscriber's: it has addresses of {reserved}")),
        None => Ok(network),
    }
}

fn prefix(value: &Value<'_>) -> Result<Network, String> {
    // Hosts make addresses of their own in prefixes of 64 bits alone (RFC 4291 section 2.5.1).
    let expected = || wrong("prefix", "an IPv6 network of 64 bits such as \"2001:db8:1:7::/64\"");
    let text = value.get_ref().as_str().ok_or_else(expected)?;
    let network: Network = text.parse().map_err(|_| expected())?;
    if network.ipv6().is_some() && network.length() == 64 { usable(network) } else { Err(expected()) }
}

fn delegated(value: &Value<'_>) -> Result<Network, String> {
    let expected = || wrong("delegated", "an IPv6 network of at most 64 bits such as \"2001:db8:b0c::/56\"");
    let text = value.get_ref().as_str().ok_or_else(expected)?;
    let network: Network = text.parse().map_err(|_| expected())?;
    if network.ipv6().is_some() && (1..=64).contains(&network.length()) {
        usable(network)
    } else {
        Err(expected())
    }
}

fn rate(key: &'static str, value: &Value<'_>) -> Result<u64, String> {
    let expected = || wrong(key, "bits a second in quotes, 8k to 1000G, such as \"50M\"");
    value.get_ref().as_str().and_then(format::bit_rate_of).ok_or_else(expected)
}

fn sessions(value: &Value<'_>) -> Result<u32, String> {
    let expected = || wrong("sessions", "a number from 1");
    let number = value.get_ref().as_integer().ok_or_else(expected)?;
    let number = u32::from_str_radix(number.as_str(), number.radix()).map_err(|_| expected())?;
    if number == 0 { Err(expected()) } else { Ok(number) }
}
