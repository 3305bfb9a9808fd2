//! Takes addresses out of lines, so that a person can post what a machine says of itself.
//!
//! The collector's filter ([`SCRIPT`](crate::collector::SCRIPT), function `redact`) follows the same rules in awk;
//! a test holds the two together.
//!
//! # What goes
//!
//! | what | example | becomes |
//! | --- | --- | --- |
//! | MAC address, with colons, dashes or dots, leading zeros or none | `00:00:5e:00:53:01`, `0:0:5e:0:53:1`, `0000.5e00.5301` | `(mac)` |
//! | six or more groups of two digits: RSS hash key, InfiniBand address | `6d:5a:56:da:25:5b:0e:…` | `(hidden)` |
//! | IPv6 address: eight groups, or fewer with `::` (but not `::` alone) | `2001:db8::1` | `(ip6)` |
//! | IPv4 address, with a port behind a dot too | `192.0.2.1`, `192.0.2.1.443` | `(ip4)` |
//! | interface named by its address: the last three digits stay, to distinguish two | `enx00005e005301` | `enxhidden301` |
//! | identity of a switch's port or a namespace in `ip link` | `portid 00005e005301` | `portid (hidden)` |
//!
//! # What stays
//!
//! PCI addresses (`0000:03:00.0`), PCI ids (`8086:1533`), times (`12:34:56`), tables (`0: 0 1 2`), counters, and
//! numbers of versions: four numbers with dots are a version, not an address, where `version` or `firmware` stands
//! in the 32 bytes before, or `fw`, `ver`, `rev`, `nvm`, `pkg` or the name of a system right before.
//!
//! # Limits
//!
//! A line is looked at alone. Not recognised: addresses without separators, cut off (`2001:db8:1:2`) or glued to
//! letters (`ip192.0.2.1`); an IPv4 address right behind the word `version`; names of hosts and of people, which
//! look like any word. Taken though no address: six small numbers with colons between (`1:2:3:4:5:6`), a firmware's
//! number that no word announces, hexadecimal words with two colons (`dead::beef`). An RSS hash key that is to stay
//! must not pass here.

use std::borrow::Cow;

/// In the place of a MAC address.
pub const MAC: &str = "(mac)";

/// In the place of a key, or of another identity.
pub const HIDDEN: &str = "(hidden)";

/// Bytes before a number in which a word may announce a version.
const ANNOUNCED: usize = 32;

/// `line` without the addresses in it, by the rules of this [module](self). A line without any comes back as it is.
/// Lengths do change, and columns with them. What was redacted stays as it is when redacted again.
pub fn line(line: &str) -> Cow<'_, str> {
    let mut line = Cow::Borrowed(line);
    for pass in [dashed, named_by_address, identities, words] {
        if let Some(changed) = pass(&line) {
            line = Cow::Owned(changed);
        }
    }
    line
}

/// MAC addresses with dashes. `None` where there is none.
fn dashed(line: &str) -> Option<String> {
    let is_free = |neighbour: Option<char>| !neighbour.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-');
    replace_each(line, '-', 17, |before, text, after| {
        let is_mac = text.bytes().enumerate().all(|(place, byte)| match place % 3 {
            2 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
        (is_mac && is_free(before) && is_free(after)).then(|| MAC.to_owned())
    })
}

/// Interface names that systemd makes of an address (`enx00005e005301`). `None` where there is none.
fn named_by_address(line: &str) -> Option<String> {
    replace_each(line, 'x', 15, |_, name, _| {
        let (kind, address) = name.split_at_checked(3)?;
        let is_name =
            matches!(kind, "enx" | "wlx" | "wwx") && address.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_name.then(|| format!("{kind}hidden{}", address.get(9..).unwrap_or_default()))
    })
}

/// `line` with each text of `length` bytes replaced by what `instead` makes of it and of the characters around it.
/// Such a text contains `mark`. `None` where there is none.
fn replace_each(
    line: &str,
    mark: char,
    length: usize,
    instead: impl Fn(Option<char>, &str, Option<char>) -> Option<String>,
) -> Option<String> {
    line.find(mark)?;
    let (mut out, mut rest, mut is_changed) = (String::with_capacity(line.len()), line, false);
    while let Some(first) = rest.chars().next() {
        let before = out.chars().next_back();
        let replaced = rest
            .split_at_checked(length)
            .and_then(|(text, after)| Some((instead(before, text, after.chars().next())?, after)));
        if let Some((text, after)) = replaced {
            out.push_str(&text);
            (rest, is_changed) = (after, true);
        } else {
            out.push(first);
            rest = rest.get(first.len_utf8()..)?;
        }
    }
    is_changed.then_some(out)
}

/// What `ip -d link` says of a switch's port, often an address, and of a namespace. `None` where it does not.
fn identities(line: &str) -> Option<String> {
    let mut out = None;
    for (word, instead) in [("portid ", "(hidden)"), ("switchid ", "(hidden)"), ("link-netns ", "(name)")] {
        let text: &str = out.as_deref().unwrap_or(line);
        let length = |value: &str| match word {
            "link-netns " => value.find(' ').unwrap_or(value.len()),
            _ => value.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(value.len()),
        };
        let found = text.match_indices(word).find_map(|(at, _)| {
            let (before, value) = text.split_at_checked(at + word.len())?;
            let length = length(value);
            (length > 0).then_some((before, value.get(length..)?))
        });
        if let Some((before, after)) = found {
            out = Some(format!("{before}{instead}{after}"));
        }
    }
    out
}

/// Addresses with colons and dots. `None` where there is none.
fn words(line: &str) -> Option<String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.');
    // Less than two separators make no address.
    line.bytes().filter(|byte| matches!(byte, b':' | b'.')).nth(1)?;
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(is_inner) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_inner(c)).unwrap_or(from.len()));
        out.push_str(before);
        let judged = judge(word, &out);
        out.push_str(&judged);
        rest = after;
    }
    out.push_str(rest);
    (out != line).then_some(out)
}

/// A word of letters, digits, colons and dots; `left` is what stands before it.
fn judge(word: &str, left: &str) -> String {
    if !word.contains(':') {
        return dotted(word, left);
    }
    let groups: Vec<&str> = word.split(':').collect();
    let mut out = Joined { text: String::with_capacity(word.len()), glued: true };
    // Groups of one to four digits or none that follow each other.
    let mut run: Vec<&str> = Vec::new();
    for group in groups {
        if group.is_empty() || is_hex(group, 4) {
            run.push(group);
            continue;
        }
        let before = |out: &Joined| format!("{left}{}", out.text);
        if !run.is_empty() && is_quad(group) && group.split('.').count() == 4 {
            let left = before(&out);
            out.push(&embedded(&mut run, group, &left));
            run.clear();
            continue;
        }
        if !run.is_empty() {
            out.push(&colons(&run));
            run.clear();
        }
        // A bridge's id: priority, dot, address.
        let split = group.split_once('.').filter(|(_, last)| is_hex(last, 4));
        let left = before(&out);
        match split {
            Some((priority, last)) => {
                out.push(&dotted(priority, &left));
                out.text.push('.');
                out.glued = true;
                run.push(last);
            }
            None => out.push(&dotted(group, &left)),
        }
    }
    if !run.is_empty() {
        out.push(&colons(&run));
    }
    out.text
}

/// Parts with colons between them.
struct Joined {
    text: String,
    /// Whether the next part follows without a colon.
    glued: bool,
}

impl Joined {
    fn push(&mut self, part: &str) {
        if !self.glued {
            self.text.push(':');
        }
        self.text.push_str(part);
        self.glued = false;
    }
}

/// An IPv4 address behind `run`: the end of an IPv6 address (RFC 4291, section 2.2) or one for itself.
fn embedded<'a>(run: &mut Vec<&'a str>, quad: &'a str, left: &str) -> String {
    run.push(quad);
    let whole = colons(run);
    if whole == "(ip6)" {
        return whole;
    }
    run.pop();
    format!("{}:{}", colons(run), dotted(quad, left))
}

/// Groups of hexadecimal digits, one to four or none in each, with colons between.
fn colons(run: &[&str]) -> String {
    let (mut run, mut lead, mut tail) = (run, "", "");
    if let [first, rest @ ..] = run
        && first.is_empty()
        && rest.first().is_some_and(|second| !second.is_empty())
    {
        (run, lead) = (rest, ":");
    }
    if let [rest @ .., last] = run
        && last.is_empty()
        && rest.last().is_some_and(|former| !former.is_empty())
    {
        (run, tail) = (rest, ":");
    }
    let text = run.join(":");
    let of_length = |length: usize| run.iter().filter(|group| group.len() == length).count();
    let filled = || run.iter().filter(|group| !group.is_empty());
    // An IPv4 address at the end stands for two groups.
    let units: usize = filled().map(|group| if group.contains('.') { 2 } else { 1 }).sum();
    let is_full = units == 8 && of_length(0) == 0;
    let is_short = (1..8).contains(&units) && text.matches("::").count() == 1 && !text.contains(":::");
    let instead = if run.len() == 6 && of_length(1) + of_length(2) == 6 {
        "(mac)"
    } else if run.len() >= 6 && of_length(2) == run.len() {
        "(hidden)"
    } else if is_full || is_short {
        "(ip6)"
    } else {
        &text
    };
    format!("{lead}{instead}{tail}")
}

/// A word without colons.
fn dotted(word: &str, left: &str) -> String {
    let text = word.trim_end_matches('.');
    let tail = word.get(text.len()..).unwrap_or_default();
    let parts: Vec<&str> = text.split('.').collect();
    let is_cisco = parts.len() == 3 && parts.iter().all(|part| part.len() == 4 && is_hex(part, 4));
    let is_link = parts.len() == 6
        && parts.iter().all(|part| is_hex(part, 2))
        && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let instead = if is_quad(text) && !is_version(left) {
        "(ip4)"
    } else if is_cisco && !is_version(left) || is_link {
        "(mac)"
    } else {
        text
    };
    format!("{instead}{tail}")
}

fn is_hex(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Four numbers to 255, and a port at most.
fn is_quad(text: &str) -> bool {
    let is_number = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts: Vec<&str> = text.split('.').collect();
    matches!(parts.len(), 4 | 5)
        && parts.iter().take(4).all(|part| is_number(part, 3) && part.parse::<u16>().is_ok_and(|n| n <= 255))
        && parts.get(4).is_none_or(|port| is_number(port, 5))
}

/// Whether the text before a number says that it is a version.
fn is_version(left: &str) -> bool {
    let bytes = left.as_bytes();
    let near = bytes.get(bytes.len().saturating_sub(ANNOUNCED)..).unwrap_or_default().to_ascii_lowercase();
    if ["version", "firmware"].iter().any(|word| near.windows(word.len()).any(|text| text == word.as_bytes()))
    {
        return true;
    }
    let end = near.iter().rposition(|byte| !b" :=.-".contains(byte)).map_or(0, |last| last + 1);
    let before = near.get(..end).unwrap_or_default();
    ["fw", "ver", "rev", "nvm", "pkg", "linux", "freebsd", "netbsd"].iter().any(|word| {
        before
            .strip_suffix(word.as_bytes())
            .is_some_and(|rest| rest.last().is_none_or(|byte| !byte.is_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Documentation addresses throughout: RFC 5737, RFC 3849, RFC 7042 (section 2.1.1).
    #[test]
    fn addresses_go_in_every_form() {
        for (text, expected) in [
            ("link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff", "link/ether (mac) brd (mac)"),
            ("inet addr:192.0.2.1  Bcast:192.0.2.255", "inet addr:(ip4)  Bcast:(ip4)"),
            ("HWaddr:00:00:5E:00:53:01", "HWaddr:(mac)"),
            ("0000002A 00:00:5e:00:53:01 eth0", "0000002A (mac) eth0"),
            (
                "bridge_id 8000.0:0:5e:0:53:1 designated_root 8000.0:0:5e:0:53:1",
                "bridge_id 8000.(mac) designated_root 8000.(mac)",
            ),
            ("mac 00-00-5e-00-53-01, 00-00-5E-00-53-02", "mac (mac), (mac)"),
            ("0000.5e00.5301 and igb0:0.0.5e.0.53.1", "(mac) and igb0:(mac)"),
            ("inet6 2001:db8::1/64 fe80::200:5eff:fe00:5301%eth0", "inet6 (ip6)/64 (ip6)%eth0"),
            ("2001:db8:0:0:0:0:0:1 ::1 ::ffff:192.0.2.1", "(ip6) (ip6) (ip6)"),
            ("64:ff9b::192.0.2.1 [2001:db8::]:53", "(ip6) [(ip6)]:53"),
            ("from 192.0.2.1:80, 198.51.100.7.443 and 203.0.113.9.", "from (ip4):80, (ip4) and (ip4)."),
            ("NA: fe80::1: advertised our address", "NA: (ip6): advertised our address"),
            ("6d:5a:56:da:25:5b:0e:c2:41:67", "(hidden)"),
            ("link/infiniband 80:00:02:08:fe:80:00:00:00:00", "link/infiniband (hidden)"),
            ("5: enx00005e005301: <UP>", "5: enxhidden301: <UP>"),
            ("$ cat /sys/class/net/wlx00005e005301/mtu", "$ cat /sys/class/net/wlxhidden301/mtu"),
            ("portid 00005e005301 switchid 00005e005302", "portid (hidden) switchid (hidden)"),
            ("link-netns customer-7 numtxqueues 4", "link-netns (name) numtxqueues 4"),
            ("addr é192.0.2.1é", "addr é(ip4)é"),
        ] {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn what_looks_like_an_address_and_is_none_stays() {
        for text in [
            "bus-info: 0000:03:00.0",
            " 39:      21812          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0",
            "[12:34:56] up 1+02:03:04, 12:34:56.789",
            "    0:      0     1     2     3     4     5     6     7",
            "     rx_queue_0_packets: 123",
            "Ethernet controller [0200]: Intel [8086:1533] (rev 03)",
            "Linux 6.12.9-1 #1 SMP",
            "version: 5.1.0.4-k",
            "version: 1.61.0.2",
            "firmware-version: 218.0.219.13/pkg 21.85.21.92",
            "dev.bnxt.0.ver.fw_ver: 20.8.4.0",
            "Linux 4.4.0.31",
            "igb0@pci0:1:0:0:\tclass=0x020000 rev=0x03",
            "dev.igb.0.%location: slot=0 function=0 dbsf=pci0:1:0:0 handle=\\_SB_.PCI0.RP01.PXSX",
            "irq130: igc0:rxq0              889032238        103",
            "1.3.6.1.2.1.2.2.1.10",
            "300.1.2.3 and 1.2.3",
            "::",
            "12-34-56-78 and 00-00-5e-00-53-01-02",
            "std::vector",
        ] {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text} became {}", line(text));
        }
    }

    fn separators() -> impl Strategy<Value = String> {
        prop::sample::select(vec![" ", "\t", "=", ",", "/", "(", "[", "addr:", "peer ", "é", "\""])
            .prop_map(str::to_owned)
    }

    proptest! {
        #[test]
        fn no_line_panics_and_redacting_again_changes_nothing(text in "\\PC*") {
            let once = line(&text);
            prop_assert_eq!(line(&once), once.clone());
        }

        #[test]
        fn nor_does_one_made_of_what_addresses_are_made_of(text in "[0-9a-fA-F:.x \\-é]{0,60}") {
            let once = line(&text);
            prop_assert_eq!(line(&once), once.clone());
        }

        #[test]
        fn no_address_survives_wherever_it_stands(
            bytes in any::<[u8; 16]>(), before in separators(), after in "( |/24|%eth0|,|)",
        ) {
            let six = std::net::Ipv6Addr::from(bytes);
            let [a, b, c, d, e, f, ..] = bytes;
            let four = std::net::Ipv4Addr::new(a, b, c, d);
            let mac = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
            let short = format!("{a:x}:{b:x}:{c:x}:{d:x}:{e:x}:{f:x}");
            let dashes = mac.replace(':', "-").to_uppercase();
            for address in [four.to_string(), mac, short, dashes, six.to_string()] {
                if address == "::" {
                    continue;
                }
                let text = format!("x {before}{address}{after} y");
                let redacted = line(&text);
                prop_assert!(!redacted.contains(&address), "{} became {}", text, redacted);
                // What stands around it stays.
                let end = format!("{after} y");
                prop_assert!(redacted.starts_with("x ") && redacted.ends_with(&end), "{}", redacted);
            }
        }

        #[test]
        fn counters_and_bus_addresses_stay(
            name in "[a-z][a-z0-9_]{0,20}", value: u64, domain in 0u16..=1, bus: u8, device in 0u8..32, function in 0u8..8,
        ) {
            let counter = format!("     {name}: {value}");
            prop_assert_eq!(line(&counter), counter.as_str());
            let slot = format!("bus-info: {domain:04x}:{bus:02x}:{device:02x}.{function}");
            prop_assert_eq!(line(&slot), slot.as_str());
        }
    }
}
