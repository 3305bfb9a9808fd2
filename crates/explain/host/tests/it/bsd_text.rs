//! Outputs of FreeBSD and NetBSD routers as people paste them: whole, cut after any line, without prompts, twice.
//!
//! The outputs are written for these tests by the formats of FreeBSD 11 to 14 and NetBSD 10 (`usr.bin/vmstat`,
//! `usr.bin/netstat`, `sbin/sysctl`, `sbin/ifconfig`, `usr.sbin/pciconf`, `usr.bin/top`).

use crate::read_all as read;
use rxlane_host::{Delta, Kind, LogTopic, Snapshot, System};
use std::collections::BTreeSet;

/// A router with an I210 (igb) on which all PPPoE frames land on queue 0.
const ROUTER: &str = include_str!("bsd_text.txt");

fn without_prompts(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("root@")).flat_map(|line| [line, "\n"]).collect()
}

/// What the snapshot says, one fact a string, without quotes.
fn facts(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    let mut note = |fact: String| {
        facts.insert(fact);
    };
    for (name, setting) in &snapshot.sysctls {
        note(format!("{name}={}", setting.get()));
    }
    for one in &snapshot.interrupts {
        let counts: Vec<u64> = one.counts.values().map(|counter| counter.value()).collect();
        note(format!("{} {} {counts:?} {:?} {:?}", one.vector, one.action, one.queue, one.receives));
    }
    for interface in &snapshot.interfaces {
        let name = &interface.name;
        for fact in [&interface.pci, &interface.model, &interface.driver, &interface.bus, &interface.parent] {
            fact.iter().for_each(|fact| note(format!("{name} {}", fact.value)));
        }
        interface.kind.iter().for_each(|kind| note(format!("{name} {:?}", kind.value)));
        interface.mtu.iter().for_each(|mtu| note(format!("{name} mtu {}", mtu.get())));
        interface.link.speed.iter().for_each(|speed| note(format!("{name} speed {}", speed.get())));
        for (feature, is) in &interface.features {
            note(format!("{name} {feature} {}", is.get().on));
        }
        for (number, queue) in &interface.queues {
            queue.packets.iter().for_each(|one| note(format!("{name} {number} {}", one.value())));
        }
        for (counter, value) in interface.totals.overflow.iter().chain(&interface.totals.too_long) {
            note(format!("{name} {counter} {}", value.value()));
        }
        interface.totals.packets.iter().for_each(|one| note(format!("{name} packets {}", one.value())));
    }
    for (cpu, load) in &snapshot.cpus.load {
        note(format!("cpu {cpu} {:?}", load.value));
    }
    snapshot.cpus.online.iter().for_each(|count| note(format!("cpus {}", count.value)));
    for process in &snapshot.processes {
        note(format!("{} {:?} {:?}", process.name, process.pid, process.cpu));
    }
    for log in &snapshot.log {
        note(format!("{:?} {:?} {}", log.topic, log.interface, log.times));
    }
    if let Some(netisr) = &snapshot.netisr {
        netisr.threads.iter().for_each(|threads| note(format!("threads {}", threads.get())));
        netisr.bound.iter().for_each(|bound| note(format!("bound {}", bound.get())));
        for (name, protocol) in &netisr.protocols {
            note(format!("{name} {} {}", protocol.policy, protocol.dispatch));
        }
        for (key, stream) in &netisr.workstreams {
            note(format!("{key:?} {}", stream.handled.value()));
        }
    }
    facts
}

#[test]
fn the_whole_router() {
    for text in [ROUTER.to_owned(), without_prompts(ROUTER), ROUTER.replace('\n', "\r\n")] {
        let snapshot = read(&[&text]);
        assert_eq!(snapshot.system.as_ref().map(|system| system.value), Some(System::FreeBsd));
        assert_eq!(snapshot.cpu_count(), Some(4));
        let igb = snapshot.interface("igb0").expect("igb0");
        let queues: Vec<u64> =
            igb.queues.values().filter_map(|queue| Some(queue.packets.as_ref()?.value())).collect();
        assert_eq!(queues, [14_731_496_729, 17]);
        assert_eq!(igb.pci.as_ref().map(|pci| pci.value.as_str()), Some("8086:1533"));
        assert_eq!(igb.model.as_ref().map(|one| one.value.as_str()), Some("I210 Gigabit Network Connection"));
        assert_eq!(igb.totals.overflow["mac_stats.missed_packets"].value(), 5_000_000_000);
        let vlan = snapshot.interface("igb0.35").and_then(|one| one.kind.as_ref());
        assert_eq!(vlan.map(|kind| &kind.value), Some(&Kind::Vlan { tpid: None, id: Some(35) }));
        assert_eq!(snapshot.physical("igb0.35"), "igb0");
        let receives: Vec<&str> = snapshot
            .interrupts_of("igb0")
            .filter(|one| one.receives == Some(true))
            .map(|one| one.action.as_str())
            .collect();
        assert_eq!(receives, ["igb0:que 0", "igb0:que 1"]);
        let busy = snapshot.processes.iter().find(|one| one.cpu > Some(90.0)).expect("the interrupt thread");
        assert_eq!(busy.name, "intr{irq264: igb0:que 0}");
        let topics: Vec<LogTopic> = snapshot.log.iter().map(|log| log.topic).collect();
        assert_eq!(topics, [LogTopic::Reset, LogTopic::LinkUp]);
        assert_eq!(snapshot.omitted, 0);
    }
}

#[test]
fn prompts_add_nothing_but_names() {
    assert_eq!(facts(&read(&[&without_prompts(ROUTER)])), facts(&read(&[ROUTER])));
}

#[test]
fn cut_after_any_line_says_less_and_nothing_else() {
    for text in [ROUTER.to_owned(), without_prompts(ROUTER)] {
        let whole = facts(&read(&[&text]));
        let mut before = 0;
        for (end, _) in text.match_indices('\n') {
            let part = facts(&read(&[&text[..=end]]));
            let other: Vec<&String> = part.difference(&whole).collect();
            assert!(other.is_empty(), "{other:?} after {}", &text[..=end]);
            before = before.max(part.len());
        }
        assert_eq!(before, whole.len());
    }
}

#[test]
fn cut_within_any_line_does_not_panic() {
    for end in 0..=ROUTER.len() {
        read(&[&ROUTER[..end]]);
        read(&[&ROUTER[end..]]);
        read(&[&ROUTER[end..], &ROUTER[..end]]);
    }
}

#[test]
fn a_second_text_is_a_second_sample() {
    let later = ROUTER.replace("14731510450", "14731510550").replace("14731496741", "14731496751");
    for texts in [vec![ROUTER, later.as_str()], vec![format!("{ROUTER}\n{later}").as_str()]] {
        let snapshot = read(&texts);
        let counted = snapshot.interrupts_of("igb0").next().and_then(|one| one.counts.get(&None));
        assert_eq!(counted.map(|counter| counter.delta()), Some(Delta::Counted(100)));
        let netisr = snapshot.netisr.as_ref().expect("netisr");
        assert_eq!(netisr.workstreams[&(0, "ip".to_owned())].handled.delta(), Delta::Counted(10));
        assert_eq!(netisr.workstreams[&(0, "ether".to_owned())].handled.delta(), Delta::Counted(0));
    }
}

#[test]
fn netbsd() {
    let text = "$ sysctl hw.bge net.inet.ip.ifq\n\
                hw.bge.rx_lvl = 0\n\
                net.inet.ip.ifq.len = 0\n\
                net.inet.ip.ifq.maxlen = 256\n\
                net.inet.ip.ifq.drops = 40817\n\
                $ vmstat -i\n\
                interrupt                               total     rate\n\
                cpu0 timer                           12345678      100\n\
                ioapic0 pin 16                     5000000000     4000\n\
                Total                              5012345678     4100\n\
                Nov 30 19:54:18 r2 /netbsd: bge: failed on len 52?\n\
                Nov 30 19:54:49 r2 last message repeated 10930 times\n";
    let snapshot = read(&[text]);
    assert_eq!(snapshot.system.as_ref().map(|system| system.value), Some(System::NetBsd));
    assert_eq!(snapshot.sysctls["net.inet.ip.ifq.drops"].get(), "40817");
    assert_eq!(snapshot.sysctls["hw.bge.rx_lvl"].get(), "0");
    let pin = snapshot.interrupts.iter().find(|one| one.vector == "ioapic0 pin 16").expect("the pin");
    assert_eq!(pin.counts.get(&None).map(|counter| counter.value()), Some(5_000_000_000));
    let log = snapshot.log.first().expect("a message");
    assert_eq!((log.topic, log.times, log.interface.as_deref()), (LogTopic::FailedLength, 10_931, None));
    let alone = read(&["Nov 30 19:54:18 r2 /netbsd: bge: failed on len 52?\n"]);
    assert_eq!(alone.system.map(|system| system.value), Some(System::NetBsd));
}

#[test]
fn what_a_command_refused_is_noted() {
    for (command, answer) in [
        ("sysctl net.isr", "sysctl: unknown oid 'net.isr'"),
        ("vmstat -i", "sh: vmstat: not found"),
        ("pciconf -lv", "pciconf: /dev/pci: Permission denied"),
        ("sysctl net.isr", "sysctl: second level name 'isr' in 'net.isr' is invalid"),
    ] {
        let unread = read(&[&format!("# {command}\n{answer}\n")]).unread;
        assert_eq!(unread.len(), 1, "{answer}");
        assert_eq!((unread[0].what.as_str(), unread[0].why.as_str()), (command, answer));
    }
}

/// A thread's name is the vector's number and action in `vmstat -i`, in top and in ps -H.
#[test]
fn threads_of_vectors_have_the_vectors_names() {
    let vectors = "interrupt total rate\nirq264: igb0:rxq0 14731510450 1705\nirq265: igb0:rxq1 405 0\n";
    let top = "last pid: 24931;  load averages:  1.89,  0.94,  0.81  up 41+06:26:24    00:51:55\n\
               CPU 0:  0.0% user,  0.0% nice,  1.6% system, 98.0% interrupt,  0.4% idle\n\
               CPU 1:  0.0% user,  0.0% nice,  0.0% system,  0.0% interrupt,  100% idle\n\n\
               \x20 PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND\n\
               \x20  12 root        -92    -     0B   816K CPU0     0  99:02  97.11% intr{irq264: igb0:rxq0}\n";
    let ps = "USER PID %CPU COMMAND\nroot 12 97.1 [intr/irq264: igb0:rxq0]\n";
    for busy in [top, ps] {
        let snapshot = read(&[&format!("{vectors}{busy}")]);
        let vector = &snapshot.interrupts[0];
        let thread = format!("intr{{{}: {}}}", vector.vector, vector.action);
        let process = snapshot.processes.iter().find(|process| process.name == thread).expect(busy);
        assert!(process.cpu.is_some_and(|share| share > 97.0));
        assert_eq!((vector.interface.as_deref(), vector.queue), (Some("igb0"), Some(0)));
        if busy == top {
            let load = &snapshot.cpus.load;
            assert_eq!((load[&0].value.interrupt, load[&1].value.idle), (98.0, 100.0));
        }
    }
}
