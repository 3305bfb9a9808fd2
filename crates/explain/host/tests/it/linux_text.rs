//! A Linux machine's outputs as one text: whole, cut after every line, shuffled, quoted.
//!
//! The text is written after the tools' sources (ethtool 6.1, iproute2 6.1, Linux 6.1) with figures of its own.

use crate::read;
use rxlane_host::{Interface, Observed, Snapshot, System};
use std::fmt::Debug;

const TEXT: &str = include_str!("linux_text.txt");

fn interface<'a>(snapshot: &'a Snapshot, name: &str) -> &'a Interface {
    snapshot.interface(name).expect(name)
}

#[test]
fn the_whole_text() {
    let snapshot = read(TEXT);
    assert_eq!(snapshot.system.as_ref().map(|system| system.value), Some(System::Linux));
    assert_eq!((snapshot.cpu_count(), snapshot.interval.map(|time| time.as_secs())), (Some(4), Some(3)));
    let eth0 = interface(&snapshot, "eth0");
    assert_eq!(eth0.pci.as_ref().map(|pci| pci.value.as_str()), Some("8086:1539"));
    assert_eq!(eth0.link.partner.as_ref().map(|fact| fact.value), Some(1000));
    assert_eq!((eth0.channel_count(), eth0.hash_fields.len(), eth0.features.len()), (Some(2), 2, 4));
    assert_eq!(eth0.reta.as_ref().map(|reta| reta.get().entries.len()), Some(16));
    assert_eq!(eth0.queues.len(), 2);
    assert_eq!(snapshot.physical("eth0.7"), "eth0");
    assert_eq!(snapshot.sessions.len(), 1);
    let unread: Vec<&str> = snapshot.unread.iter().map(|unread| unread.what.as_str()).collect();
    assert_eq!(unread, ["ethtool -x eth1", "ethtool -l eth1"]);
    let queue = snapshot.interrupts_of("eth0").find(|one| one.queue == Some(0)).expect("queue 0");
    assert_eq!(queue.affinity.as_ref().map(|cpus| cpus.get().clone()), Some(vec![3]));
    assert_eq!(queue.counts.len(), 4);
    let load = snapshot.cpus.load.get(&3).expect("load").value;
    assert!((load.softirq.expect("softirq") - 96.66).abs() < 0.1, "{load:?}");
    assert_eq!(snapshot.softnet.keys().copied().collect::<Vec<_>>(), [0, 3]);
}

/// That a part knows nothing, or what the whole knows.
fn assert_part<T: PartialEq + Debug>(what: &str, part: Option<T>, whole: Option<T>) {
    assert!(part.is_none() || part == whole, "{what}: {part:?} is not {whole:?}");
}

fn last<T: Clone + PartialEq>(observed: &Option<Observed<T>>) -> Option<T> {
    observed.as_ref().map(|observed| observed.get().clone())
}

fn assert_interface(part: &Interface, whole: &Interface) {
    let value = |fact: &Option<rxlane_host::Fact<String>>| fact.as_ref().map(|fact| fact.value.clone());
    assert_part("driver", value(&part.driver), value(&whole.driver));
    assert_part("bus", value(&part.bus), value(&whole.bus));
    assert_part("pci", value(&part.pci), value(&whole.pci));
    assert_part("parent", value(&part.parent), value(&whole.parent));
    assert_part("mtu", last(&part.mtu), last(&whole.mtu));
    assert_part("speed", last(&part.link.speed), last(&whole.link.speed));
    assert_part(
        "reta",
        last(&part.reta).map(|reta| reta.entries),
        last(&whole.reta).map(|reta| reta.entries),
    );
    assert_part("channels", part.channel_count(), whole.channel_count());
    assert_part("ring", last(&part.rings.rx.current), last(&whole.rings.rx.current));
    assert_part("xdp", last(&part.xdp), last(&whole.xdp));
    for (supported, known) in
        [(&part.link.supported, &whole.link.supported), (&part.link.partner, &whole.link.partner)]
    {
        let value = |fact: &Option<rxlane_host::Fact<u32>>| fact.as_ref().map(|fact| fact.value);
        assert_part("modes", value(supported), value(known));
    }
    for (flow, fields) in &part.hash_fields {
        assert_eq!(Some(fields.get()), whole.hash_fields.get(flow).map(Observed::get), "{flow}");
    }
    for (name, state) in &part.features {
        assert_eq!(Some(state.get()), whole.features.get(name).map(Observed::get), "{name}");
    }
    for (name, number) in &part.coalesce {
        assert_eq!(Some(number.get()), whole.coalesce.get(name).map(Observed::get), "{name}");
    }
}

/// The interface, with what names none: as long as a text names one interface, that is taken for it.
fn with_nameless(whole: &Snapshot, name: &str) -> Interface {
    let mut known = interface(whole, name).clone();
    if let Some(nameless) = whole.interface("") {
        known.driver = known.driver.or_else(|| nameless.driver.clone());
        known.bus = known.bus.or_else(|| nameless.bus.clone());
        known.pci = known.pci.or_else(|| nameless.pci.clone());
        known.hash_fields.extend(nameless.hash_fields.clone());
    }
    known
}

#[test]
fn cut_after_any_line_it_says_less_and_nothing_else() {
    for text in [TEXT.to_owned(), without_prompts(TEXT)] {
        let whole = read(&text);
        for (at, _) in text.match_indices('\n') {
            let part = read(text.split_at(at + 1).0);
            for interface in &part.interfaces {
                assert_interface(interface, &with_nameless(&whole, &interface.name));
            }
            let online = part.cpu_count();
            assert_part("cpus", online, whole.cpu_count());
            for interrupt in &part.interrupts {
                let known = whole.interrupts.iter().find(|known| known.vector == interrupt.vector);
                let known = known.expect("the vector in the whole");
                for (cpu, counter) in &interrupt.counts {
                    assert_eq!(Some(counter.first()), known.counts.get(cpu).map(|known| known.first()));
                }
            }
            assert!(part.sessions.len() <= whole.sessions.len() && part.omitted == 0);
        }
    }
}

fn without_prompts(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with(['$', '#'])).map(|line| format!("{line}\n")).collect()
}

#[test]
fn headings_alone_tell_most() {
    let snapshot = read(&without_prompts(TEXT));
    let eth0 = interface(&snapshot, "eth0");
    assert!(eth0.reta.is_some() && eth0.link.speed.is_some() && eth0.channel_count() == Some(2));
    assert_eq!((snapshot.interrupts.len(), snapshot.softirqs.len(), snapshot.softnet.len()), (4, 2, 2));
    // What names no interface is the unnamed one's.
    assert_eq!(interface(&snapshot, "").hash_fields.len(), 2);
    assert!(interface(&snapshot, "").driver.is_some() && eth0.driver.is_none());
}

#[test]
fn mail_quotes_and_line_ends_change_nothing() {
    let plain = read(TEXT);
    let quoted: String = TEXT.lines().map(|line| format!("> {line}\r\n")).collect();
    let quoted = read(&quoted);
    assert_eq!(quoted.interfaces.len(), plain.interfaces.len());
    for interface in &quoted.interfaces {
        assert_interface(interface, self::interface(&plain, &interface.name));
        assert_interface(self::interface(&plain, &interface.name), interface);
    }
}

#[test]
fn lines_in_any_disorder_do_not_panic() {
    let lines: Vec<&str> = TEXT.lines().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..200 {
            let line = lines.get(random(lines.len())).copied().unwrap_or_default();
            let cut = line.char_indices().map(|(at, _)| at).nth(random(line.len() + 1)).unwrap_or(line.len());
            let line = if random(4) == 0 { line.split_at(cut).0 } else { line };
            text.push_str(line);
            text.push(if random(20) == 0 { ' ' } else { '\n' });
        }
        let snapshot = read(&text);
        assert!(snapshot.interfaces.len() < 100);
    }
}

/// A line that no prompt stands before is not quoted as output of the command before, which prints no such line.
#[test]
fn what_the_command_before_cannot_have_printed_is_not_its_output() {
    let cpu = "%Cpu3  :  0.0 us,  0.0 sy,  0.0 ni,  2.0 id,  0.0 wa,  0.0 hi, 98.0 si,  0.0 st\n";
    let command = |prompt: &str| {
        let text = format!("{prompt}\n2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500\n\n{cpu}{cpu}");
        let snapshot = read(&text);
        let eth0 = snapshot.interface("eth0").expect("eth0").seen.command.as_deref().map(str::to_owned);
        (eth0, snapshot.cpus.load[&3].quote.command.as_deref().map(str::to_owned))
    };
    let ip = Some("ip -4 addr".to_owned());
    assert_eq!(command("root@r:~# ip -4 addr"), (ip, None));
    // Whatever prints several outputs may have printed this one.
    for several in ["ip -4 addr; top -bn1", "ip -4 addr && top -bn1", "dmesg"] {
        let both = (Some(several.to_owned()), Some(several.to_owned()));
        assert_eq!(command(&format!("root@r:~# {several}")), both, "{several}");
    }
    let top = read(&format!("$ top -bn1\n{cpu}"));
    assert_eq!(top.cpus.load[&3].quote.command.as_deref(), Some("top -bn1"));
}
