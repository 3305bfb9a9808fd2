//! Everything that a snapshot says, a line each: what it is about, the value, and the line of the text that says so.

use rxlane_host::{Counter, Fact, FastPath, Interface, Limited, Netfilter, Observed, Snapshot};
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};

/// The facts of a snapshot, those about one thing together.
pub fn facts(snapshot: &Snapshot) -> Vec<String> {
    let mut facts = Facts::default();
    facts.fact("system", &snapshot.system);
    facts.fact("kernel", &snapshot.kernel);
    facts.fact("architecture", &snapshot.architecture);
    if let Some(Fact { value, quote }) = &snapshot.distribution {
        let openwrt = if value.is_openwrt { "" } else { ", no OpenWrt" };
        facts.note(format!("distribution: {}{openwrt} @{}", value.name, quote.line));
        facts.some("release", &value.release);
    }
    facts.fact("board", &snapshot.board);
    facts.some("interval", &snapshot.interval);
    facts.fact("cpus online", &snapshot.cpus.online);
    facts.fact("cpus model", &snapshot.cpus.model);
    for (node, cpus) in &snapshot.cpus.nodes {
        facts.note(format!("node {node}: {cpus:?}"));
    }
    let cpus = &snapshot.cpus;
    for (what, values) in
        [("capacity", &cpus.capacity), ("frequency", &cpus.frequency), ("part", &cpus.parts)]
    {
        for (cpu, Fact { value, quote }) in values {
            facts.note(format!("cpu {cpu} {what}: {value} @{}", quote.line));
        }
    }
    for (cpu, load) in &snapshot.cpus.load {
        let (line, load) = (load.quote.line, load.value);
        let (user, system, interrupt) = (load.user, load.system, load.interrupt);
        let softirq = load.softirq.map(|share| format!(" softirq {share}")).unwrap_or_default();
        let idle = load.idle;
        facts.note(format!(
            "cpu {cpu}: user {user} system {system} interrupt {interrupt}{softirq} idle {idle} @{line}"
        ));
    }
    snapshot.interfaces.iter().for_each(|one| facts.interface(one));
    facts.interrupts(snapshot);
    for (name, counters) in &snapshot.softirqs {
        facts.note(format!("softirq {name}: {}", list(counters)));
    }
    for (cpu, softnet) in &snapshot.softnet {
        let (processed, dropped) = (count(&softnet.processed), count(&softnet.dropped));
        let squeezed = count(&softnet.time_squeeze);
        facts.note(format!("softnet {cpu}: processed {processed} dropped {dropped} squeezed {squeezed}"));
        facts.counter(&format!("softnet {cpu} rps"), &softnet.received_rps);
    }
    facts.netisr(snapshot);
    facts.fact("PPPoE driver", &snapshot.pppoe_driver);
    for session in &snapshot.sessions {
        facts.note(format!("session {} on {} @{}", session.id, session.interface, session.quote.line));
    }
    for one in &snapshot.processes {
        let pid = one.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        facts.note(format!("process{pid} {}: {:?} @{}", one.name, one.cpu, one.quote.line));
    }
    for Fact { value, quote } in &snapshot.functions {
        let (function, share) = (&value.function, value.share * 100.0);
        facts.note(format!("function {function}: {share:.2} % @{}", quote.line));
        value.callers.iter().for_each(|caller| facts.note(format!("caller of {function}: {caller}")));
    }
    facts.counters("mbufs denied", &snapshot.mbufs.denied);
    for (kind, Fact { value: (used, most), quote }) in &snapshot.mbufs.used {
        facts.note(format!("mbufs {kind}: {used} of {most} @{}", quote.line));
    }
    for one in &snapshot.log {
        let interface = one.interface.as_deref().unwrap_or("?");
        facts.note(format!("log {:?} of {interface}: {} times @{}", one.topic, one.times, one.quote.line));
    }
    for (name, value) in &snapshot.sysctls {
        facts.observe(&format!("sysctl {name}"), value);
    }
    facts.all("uci", &snapshot.uci);
    facts.netfilter(&snapshot.netfilter);
    facts.fast_path(&snapshot.fast_path);
    for one in &snapshot.unread {
        facts.note(format!("not read {}: {}", one.what, one.why));
    }
    for (tool, quote) in &snapshot.read {
        facts.note(format!("read {tool} @{}", quote.line));
    }
    if snapshot.omitted > 0 {
        facts.note(format!("omitted {}", snapshot.omitted));
    }
    facts.0
}

fn count(counter: &Counter) -> String {
    let (first, value) = (counter.first(), counter.value());
    if counter.delta() == rxlane_host::Delta::OneSample {
        value.to_string()
    } else {
        format!("{first}..{value}")
    }
}

fn list<K: Debug>(counters: &BTreeMap<K, Counter>) -> String {
    let counts: Vec<String> = counters.iter().map(|(key, one)| format!("{key:?}={}", count(one))).collect();
    counts.join(" ").replace("Some(", "").replace(")=", "=")
}

#[derive(Default)]
struct Facts(Vec<String>);

impl Facts {
    fn note(&mut self, fact: String) {
        self.0.push(fact);
    }

    fn some<T: Debug>(&mut self, what: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.note(format!("{what}: {value:?}"));
        }
    }

    fn fact<T: Debug>(&mut self, what: &str, fact: &Option<Fact<T>>) {
        if let Some(Fact { value, quote }) = fact {
            self.note(format!("{what}: {value:?} @{}", quote.line));
        }
    }

    fn observe<T: Debug>(&mut self, what: &str, value: &Observed<T>) {
        let former = value.former().map(|fact| format!(", was {:?} @{}", fact.value, fact.quote.line));
        self.note(format!("{what}: {:?} @{}{}", value.get(), value.quote().line, former.unwrap_or_default()));
    }

    fn observed<T: Debug>(&mut self, what: &str, value: &Option<Observed<T>>) {
        value.iter().for_each(|value| self.observe(what, value));
    }

    fn all<K: Display, T: Debug>(&mut self, what: &str, values: &BTreeMap<K, Observed<T>>) {
        values.iter().for_each(|(name, value)| self.observe(&format!("{what} {name}"), value));
    }

    fn counter(&mut self, what: &str, counter: &Option<Counter>) {
        if let Some(counter) = counter {
            self.note(format!("{what}: {} @{}", count(counter), counter.quote().line));
        }
    }

    fn counters(&mut self, what: &str, counters: &BTreeMap<String, Counter>) {
        for (name, counter) in counters {
            self.note(format!("{what} {name}: {} @{}", count(counter), counter.quote().line));
        }
    }

    fn limited(&mut self, what: &str, limited: &Limited) {
        self.observed(what, &limited.current);
        self.fact(&format!("{what} at most"), &limited.most);
    }

    fn interface(&mut self, one: &Interface) {
        let name = if one.name.is_empty() { "?" } else { &one.name };
        let what = |word: &str| format!("{name} {word}");
        self.note(format!("{name} @{}", one.seen.line));
        self.fact(&what("kind"), &one.kind);
        for (word, fact) in [
            ("parent", &one.parent),
            ("master", &one.master),
            ("driver", &one.driver),
            ("bus", &one.bus),
            ("pci", &one.pci),
            ("model", &one.model),
        ] {
            self.fact(&what(word), fact);
        }
        self.observed(&what("mtu"), &one.mtu);
        self.fact(&what("mtu at most"), &one.mtu_most);
        self.observed(&what("up"), &one.up);
        self.fact(&what("addressed"), &one.addressed);
        self.observed(&what("speed"), &one.link.speed);
        self.observed(&what("full duplex"), &one.link.full_duplex);
        self.observed(&what("carrier"), &one.link.up);
        self.fact(&what("speed supported"), &one.link.supported);
        self.fact(&what("speed of the partner"), &one.link.partner);
        self.limited(&what("channels rx"), &one.channels.rx);
        self.limited(&what("channels combined"), &one.channels.combined);
        self.limited(&what("ring rx"), &one.rings.rx);
        self.all(&what("coalesce"), &one.coalesce);
        self.observed(&what("adaptive"), &one.adaptive_rx);
        for (feature, state) in &one.features {
            let (is, line) = (state.get(), state.quote().line);
            let fixed = if is.fixed { " fixed" } else { "" };
            self.note(format!(
                "{name} feature {feature}: {}{fixed} @{line}",
                if is.on { "on" } else { "off" }
            ));
        }
        if let Some(reta) = &one.reta {
            let former = reta.former().map(|fact| fact.value.entries.len());
            let (is, line) = (reta.get(), reta.quote().line);
            let entries: Vec<String> = is.entries.iter().map(u32::to_string).collect();
            let key = is.key.as_ref().map(|key| key.bytes().len());
            self.note(format!(
                "{name} reta: {} rings, {}, key {key:?}, {:?} @{line}",
                is.rings,
                entries.join(" "),
                is.function
            ));
            self.some(&what("reta had entries"), &former);
        }
        self.all(&what("hash fields"), &one.hash_fields);
        for (number, queue) in &one.queues {
            let what = |word: &str| format!("{name} queue {number} {word}");
            self.counter(&what("packets"), &queue.packets);
            self.counter(&what("bytes"), &queue.bytes);
            self.counter(&what("drops"), &queue.drops);
            self.observed(&what("rps"), &queue.rps);
            if queue.packets.is_none()
                && queue.bytes.is_none()
                && queue.drops.is_none()
                && queue.rps.is_none()
            {
                self.note(format!("{name} queue {number}"));
            }
        }
        self.counter(&what("packets"), &one.totals.packets);
        self.counter(&what("bytes"), &one.totals.bytes);
        self.counters(&what("overflow"), &one.totals.overflow);
        self.counters(&what("too long"), &one.totals.too_long);
        self.counters(&what("allowance"), &one.totals.allowances);
        self.observed(&what("xdp"), &one.xdp);
        self.fact(&what("shaper"), &one.shaper);
        if let Some(steering) = &one.steering {
            self.observe(&what("steering"), &steering.mode);
            for (cpu, target) in &steering.cpus {
                self.note(format!("{name} steers to {cpu} @{}", target.seen.line));
                self.counter(&what(&format!("frames to {cpu}")), &target.frames);
                self.counter(&what(&format!("drops to {cpu}")), &target.drops);
            }
            self.counters(&what("steering reason"), &steering.reasons);
            self.counter(&what("steering moves"), &steering.moves);
            self.observed(&what("steering classes"), &steering.classes);
            self.observed(&what("steering rebalances"), &steering.rebalances);
        }
        self.fact(&what("virtual functions"), &one.virtual_functions);
    }

    fn interrupts(&mut self, snapshot: &Snapshot) {
        for one in &snapshot.interrupts {
            let interface = one.interface.as_ref().map(|name| format!(" of {name:?}")).unwrap_or_default();
            let queue = one.queue.map(|queue| format!(" queue {queue}")).unwrap_or_default();
            let receives = match one.receives {
                Some(true) => " receives",
                Some(false) => " receives nothing",
                None => "",
            };
            let (vector, action, line) = (&one.vector, &one.action, one.quote.line);
            self.note(format!(
                "interrupt {vector} {action:?}{interface}{queue}{receives}: {} @{line}",
                list(&one.counts)
            ));
            self.observed(&format!("interrupt {vector} affinity"), &one.affinity);
            self.fact(&format!("interrupt {vector} rate"), &one.rate);
        }
    }

    fn netfilter(&mut self, netfilter: &Netfilter) {
        for (what, quote) in [("flowtables", &netfilter.listed), ("rules", &netfilter.ruleset)] {
            quote.iter().for_each(|quote| self.note(format!("all {what} @{}", quote.line)));
        }
        for one in &netfilter.flowtables {
            let (table, name, line) = (&one.table, &one.name, one.quote.line);
            let devices = one.devices.join(" ");
            self.note(format!("flowtable {table:?} {name}: {devices}, hardware {:?} @{line}", one.hardware));
        }
        for one in &netfilter.flow_rules {
            let (table, chain, name) = (&one.table, &one.chain, &one.flowtable);
            let mut rule = format!("flow rule {table:?} {chain} to {name}: {}", one.protocols.join(" "));
            for (is_so, word) in [(one.needs_mark, " marked"), (one.only_new, " new")] {
                rule.push_str(if is_so { word } else { "" });
            }
            if let Some(before) = &one.accepted_before {
                rule.push_str(&format!(" accepted @{}", before.line));
            }
            self.note(format!("{rule} @{}", one.quote.line));
        }
        for (name, quote) in &netfilter.routed {
            self.note(format!("routed {name} @{}", quote.line));
        }
        if let Some(all) = &netfilter.connections {
            let (entries, line) = (all.entries, all.quote.line);
            for (protocol, one) in &all.by_protocol {
                let (established, offloaded) = (one.established, one.offloaded);
                self.note(format!(
                    "connections {protocol}: {established} established {offloaded} offloaded {} hardware",
                    one.hardware
                ));
            }
            let (marked, helped, offloaded) =
                (all.bypassed_marked, all.bypassed_helped, all.offloaded_marked);
            self.note(format!(
                "connections: {entries}, bypassed {marked} marked {helped} helped, offloaded {offloaded} marked @{line}"
            ));
        }
    }

    fn fast_path(&mut self, known: &Option<FastPath>) {
        let Some(known) = known else { return };
        let (mode, ports) = (&known.mode, &known.ports);
        self.note(format!("fast path: {:?} @{}", mode.value, mode.quote.line));
        self.note(format!("fast path ports: {} @{}", ports.value.join(" "), ports.quote.line));
        self.note(format!("fast packets: {} @{}", count(&known.fast), known.fast.quote().line));
        self.counters("slow packets", &known.slow);
        self.counters("refusals", &known.refusals);
        self.observed("flows", &known.flows);
        self.fact("flows at most", &known.flows_most);
        self.observed("seconds", &known.seconds);
        self.some("process", &known.pid);
    }

    fn netisr(&mut self, snapshot: &Snapshot) {
        let Some(netisr) = &snapshot.netisr else { return };
        self.observed("netisr threads", &netisr.threads);
        self.observed("netisr dispatch", &netisr.dispatch);
        self.observed("netisr bound", &netisr.bound);
        for (name, one) in &netisr.protocols {
            self.note(format!(
                "netisr {name}: policy {} dispatch {} @{}",
                one.policy, one.dispatch, one.quote.line
            ));
        }
        for ((cpu, name), one) in &netisr.workstreams {
            let (handled, dropped) = (count(&one.handled), count(&one.dropped));
            self.note(format!("netisr {name} on {cpu}: handled {handled} dropped {dropped}"));
        }
    }
}
