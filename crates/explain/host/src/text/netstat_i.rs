//! `netstat -i` with `-b`, `-n`, `-d`: frames by interface, of FreeBSD and NetBSD.
//!
//! Only the lines of the link layer (`<Link#1>`; NetBSD `<Link>`) count frames of the interface; the others count
//! by address. Columns after the address are read from the right by their titles, since an interface without a
//! link address has one word less (FreeBSD and NetBSD `usr.bin/netstat/if.c`).

use super::{Fate, Line, Section, Tool};
use crate::{Counter, Fact, Observed, Quote, Snapshot};
use std::collections::HashSet;

pub(super) static TOOL: Tool = Tool {
    name: "netstat -i",
    command: |command| command.program == "netstat" && (command.has_flag('i') || command.has_flag('I')),
    heading: |line| titles(line).is_some(),
    open: |_| Box::new(Links::default()),
};

const FIRST: [&str; 4] = ["Name", "Mtu", "Network", "Address"];

/// Titles of the columns after the address.
fn titles(line: &str) -> Option<Vec<String>> {
    if !line.starts_with("Name") {
        return None;
    }
    let mut words = line.split_whitespace();
    let is_table = FIRST.iter().all(|title| words.next() == Some(title));
    let titles: Vec<String> = words.map(str::to_owned).collect();
    (is_table && titles.iter().any(|title| title == "Ipkts")).then_some(titles)
}

#[derive(Default)]
struct Links {
    titles: Vec<String>,
    seen: HashSet<String>,
}

impl Section for Links {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if text.is_empty() {
            return Fate::Skipped;
        }
        if let Some(titles) = titles(text) {
            *self = Links { titles, seen: HashSet::new() };
            return Fate::Taken;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if self.titles.is_empty() || words.len() <= self.titles.len() {
            return Fate::Over;
        }
        let [name, mtu, network, ..] = words.as_slice() else { return Fate::Over };
        // With and without an address; lines of an address have `-` for what belongs to the interface.
        let is_row = words.len() <= self.titles.len() + FIRST.len()
            && (*mtu == "-" || mtu.bytes().all(|c| c.is_ascii_digit()));
        if !is_row {
            return Fate::Over;
        }
        if !network.starts_with("<Link") {
            return Fate::Taken;
        }
        let quote = line.quote();
        self.link(name, mtu, &words, &quote, snapshot);
        Fate::Taken
    }
}

impl Links {
    fn link(&mut self, name: &str, mtu: &str, words: &[&str], quote: &Quote, snapshot: &mut Snapshot) {
        let is_down = name.ends_with('*');
        let name = name.trim_end_matches('*');
        // `-W` was not given and the name filled its column: FreeBSD cuts it without a mark, which cannot be seen.
        if !super::command::is_interface(name) || self.seen.len() >= Snapshot::INTERFACES {
            return;
        }
        if !self.seen.insert(name.to_owned()) {
            return;
        }
        let Some(interface) = snapshot.interface_mut(name, quote) else { return };
        if let Ok(mtu) = mtu.parse() {
            Observed::note(&mut interface.mtu, Fact::new(mtu, quote.clone()));
        }
        if is_down {
            Observed::note(&mut interface.up, Fact::new(false, quote.clone()));
        }
        let values = words.get(words.len() - self.titles.len()..).unwrap_or_default();
        for (title, value) in self.titles.iter().zip(values) {
            // `-` where the kernel does not count.
            let Ok(value) = value.parse() else { continue };
            match title.as_str() {
                "Ipkts" => Counter::note(&mut interface.totals.packets, value, quote.clone()),
                "Ibytes" => Counter::note(&mut interface.totals.bytes, value, quote.clone()),
                "Idrop" => {
                    let overflow = &mut interface.totals.overflow;
                    Counter::note_at(overflow, title.clone(), value, quote.clone(), Snapshot::LINES);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Delta;
    use crate::text::read;

    // FreeBSD 13, usr.bin/netstat/if.c; written for this test.
    const FREEBSD: &str = "\
Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop
igb0   1500 <Link#1>      00:00:5e:00:53:01 7294967296     0    12 9000000000000 42     0       4200     0     0
igb0      - fe80::%igb0/6 fe80::1%igb0               0     -     -          0        1     -         76     -     -
igb1*  1500 <Link#2>      00:00:5e:00:53:02          0     0     0          0        0     0          0     0     0
lo0   16384 <Link#3>                            5     0     0        500        5     0        500     0     0
";

    #[test]
    fn lines_of_the_link_layer() {
        for text in [FREEBSD.to_owned(), format!("$ netstat -ibdn\n{FREEBSD}")] {
            let snapshot = read(&text);
            let igb = snapshot.interface("igb0").expect("igb0");
            assert_eq!(igb.mtu.as_ref().map(|mtu| *mtu.get()), Some(1500));
            assert_eq!(
                igb.totals.packets.as_ref().map(|n| (n.value(), n.delta())),
                Some((7_294_967_296, Delta::OneSample))
            );
            assert_eq!(igb.totals.bytes.as_ref().map(|n| n.value()), Some(9_000_000_000_000));
            assert_eq!(igb.totals.overflow["Idrop"].value(), 12);
            let down = snapshot.interface("igb1").and_then(|one| one.up.as_ref().map(|up| *up.get()));
            assert_eq!(down, Some(false));
            let lo = snapshot.interface("lo0").expect("lo0");
            assert_eq!(lo.totals.packets.as_ref().map(|n| n.value()), Some(5));
        }
    }

    #[test]
    fn netbsd_has_other_columns() {
        let text = "Name  Mtu   Network       Address              Ipkts Ierrs    Opkts Oerrs Colls\n\
                    bge0  1500  <Link>        00:00:5e:00:53:03    12345     0     6789     0     0\n";
        let snapshot = read(text);
        let bge = snapshot.interface("bge0").expect("bge0");
        assert_eq!(bge.totals.packets.as_ref().map(|n| n.value()), Some(12_345));
        assert_eq!((bge.totals.bytes.is_none(), bge.totals.overflow.is_empty()), (true, true));
    }

    #[test]
    fn two_samples_and_a_half() {
        let text = format!("{FREEBSD}{}", FREEBSD.replace("7294967296", "7294967396"));
        let packets = |text: &str| read(text).interface("igb0").and_then(|one| one.totals.packets.clone());
        assert_eq!(packets(&text).map(|n| n.delta()), Some(Delta::Counted(100)));
        let half = &FREEBSD[..FREEBSD.find(" 42 ").expect("a column")];
        assert_eq!(packets(half), None);
    }
}
