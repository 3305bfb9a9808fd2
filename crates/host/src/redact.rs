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
//! | interface named by its address: the last three digits stay, to tell two apart | `enx00005e005301` | `enxhidden301` |
//! | identity of a switch's port or a namespace in `ip link` | `portid 00005e005301` | `portid (hidden)` |
//!
//! # What stays
//!
//! PCI addresses (`0000:03:00.0`), PCI ids (`8086:1533`), times (`12:34:56`), tables (`0: 0 1 2`), counters, and
//! numbers of versions: four numbers with dots are a version, not an address, where `version` or `firmware` stands
//! in the 32 octets before, or `fw`, `ver`, `rev`, `nvm`, `pkg` or the name of a system right before.
//!
//! # Limits
//!
//! A line is looked at alone. Not recognised: addresses without separators, cut off (`2001:db8:1:2`) or glued to
//! letters (`ip192.0.2.1`); an IPv4 address right behind the word `version`; names of hosts and of people, which
//! look like any word. Taken though no address: six small numbers with colons between (`1:2:3:4:5:6`), a firmware's
//! number that no word announces, hexadecimal words with two colons (`dead::beef`).

use std::borrow::Cow;

/// Octets before a number in which a word may announce a version.
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
    const LENGTH: usize = 17;
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_mac = |text: &str| {
        text.bytes().enumerate().all(|(place, octet)| match place % 3 {
            2 => octet == b'-',
            _ => octet.is_ascii_hexdigit(),
        })
    };
    let mut out: Option<String> = None;
    let (mut done, mut at) = (0, 0);
    // Every character where an address could begin: octets of it are ASCII, so that slices are in bounds.
    while let Some(rest) = line.get(at..) {
        let Some(first) = rest.chars().next() else { break };
        let is_free = |neighbour: Option<char>| !neighbour.is_some_and(is_inner);
        let before = if at == done && done > 0 { Some(')') } else { line.get(..at)?.chars().next_back() };
        match rest.get(..LENGTH).filter(|text| is_mac(text)) {
            Some(_) if is_free(before) && is_free(rest.get(LENGTH..)?.chars().next()) => {
                let out = out.get_or_insert_default();
                out.push_str(line.get(done..at)?);
                out.push_str("(mac)");
                at += LENGTH;
                done = at;
            }
            _ => at += first.len_utf8(),
        }
    }
    out.map(|out| out + line.get(done..).unwrap_or_default())
}

/// Interface names that systemd makes of an address (`enx00005e005301`). `None` where there is none.
fn named_by_address(line: &str) -> Option<String> {
    const LENGTH: usize = 15;
    let is_name = |text: &&str| {
        text.get(..3).is_some_and(|kind| matches!(kind, "enx" | "wlx" | "wwx"))
            && text.bytes().skip(3).all(|octet| octet.is_ascii_hexdigit())
    };
    let mut out: Option<String> = None;
    let mut rest = line;
    while let Some((at, name)) = rest
        .match_indices('x')
        .filter_map(|(x, _)| Some((x.checked_sub(2)?, rest.get(x - 2..x + LENGTH - 2)?)))
        .find(|(_, name)| is_name(name))
    {
        let out = out.get_or_insert_default();
        out.push_str(rest.get(..at)?);
        out.push_str(name.get(..3)?);
        out.push_str("hidden");
        out.push_str(name.get(12..)?);
        rest = rest.get(at + LENGTH..)?;
    }
    out.map(|out| out + rest)
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
    if line.bytes().filter(|octet| matches!(octet, b':' | b'.')).nth(1).is_none() {
        return None;
    }
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
        let split = group.rsplit_once('.').filter(|(_, last)| is_hex(last, 4) && !is_quad(group));
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
        && text.bytes().any(|octet| octet.is_ascii_alphabetic());
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
    (1..=most).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_hexdigit())
}

/// Four numbers to 255, and a port at most.
fn is_quad(text: &str) -> bool {
    let is_number = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|octet| octet.is_ascii_digit())
    };
    let parts: Vec<&str> = text.split('.').collect();
    matches!(parts.len(), 4 | 5)
        && parts.iter().take(4).all(|part| is_number(part, 3) && part.parse::<u16>().is_ok_and(|n| n <= 255))
        && parts.get(4).is_none_or(|port| is_number(port, 5))
}

/// Whether the text before a number says that it is a version.
fn is_version(left: &str) -> bool {
    let octets = left.as_bytes();
    let near = octets.get(octets.len().saturating_sub(ANNOUNCED)..).unwrap_or_default().to_ascii_lowercase();
    if ["version", "firmware"].iter().any(|word| near.windows(word.len()).any(|text| text == word.as_bytes())) {
        return true;
    }
    let end = near.iter().rposition(|octet| !b" :=.-".contains(octet)).map_or(0, |last| last + 1);
    let before = near.get(..end).unwrap_or_default();
    ["fw", "ver", "rev", "nvm", "pkg", "linux", "freebsd", "netbsd"].iter().any(|word| {
        before
            .strip_suffix(word.as_bytes())
            .is_some_and(|rest| rest.last().is_none_or(|octet| !octet.is_ascii_lowercase()))
    })
}
