//! Any bytes as the text that somebody pasted, whole and as two texts: no panic, the bounds of the snapshot, and
//! every quote is the line that it names.

use rxlane_host::text::Reader;
use rxlane_host::{Counter, Fact, Interface, Limited, Observed, Quote, Snapshot};
use std::sync::Arc;

/// Bytes of a line that the reader looks at.
const LONGEST_LINE: usize = 64 * 1024;

/// Lines of a text as quotes show them.
fn lines(name: &str, text: &[u8]) -> Vec<Box<str>> {
    let source: Arc<str> = name.into();
    let quoted = |line: &[u8]| {
        let line = String::from_utf8_lossy(line.get(..LONGEST_LINE).unwrap_or(line));
        let mut line = line.trim_end_matches(['\n', '\r']);
        // Marks of mail quoting.
        while let Some(rest) = line.strip_prefix('>') {
            line = rest.strip_prefix(' ').unwrap_or(rest);
        }
        Quote::new(&source, 0, None, line).text.as_ref().into()
    };
    text.split_inclusive(|byte| *byte == b'\n').map(quoted).collect()
}

/// Texts by name, and their lines.
struct Texts(Vec<(&'static str, Vec<Box<str>>)>);

impl Texts {
    fn check(&self, quote: &Quote) {
        let (_, lines) =
            self.0.iter().find(|(name, _)| **name == *quote.source).expect("the text has a name");
        let place = usize::try_from(quote.line).ok().and_then(|line| line.checked_sub(1)).expect("from 1");
        assert_eq!(lines.get(place).map(|line| &**line), Some(&*quote.text), "{quote}");
    }

    fn fact<T>(&self, fact: &Option<Fact<T>>) {
        fact.iter().for_each(|fact| self.check(&fact.quote));
    }

    fn observed<T>(&self, observed: &Option<Observed<T>>) {
        observed.iter().for_each(|observed| self.setting(observed));
    }

    fn setting<T>(&self, observed: &Observed<T>) {
        self.check(observed.quote());
        observed.former().iter().for_each(|fact| self.check(&fact.quote));
    }

    fn counter(&self, counter: &Option<Counter>) {
        counter.iter().for_each(|counter| self.check(counter.quote()));
    }

    fn limited(&self, limited: &Limited) {
        self.observed(&limited.current);
        self.fact(&limited.most);
    }

    fn interface(&self, interface: &Interface) {
        self.check(&interface.seen);
        self.fact(&interface.kind);
        for name in [&interface.parent, &interface.master, &interface.driver, &interface.bus, &interface.pci]
        {
            self.fact(name);
        }
        self.fact(&interface.model);
        self.observed(&interface.mtu);
        self.fact(&interface.mtu_most);
        self.observed(&interface.up);
        self.observed(&interface.link.speed);
        self.observed(&interface.link.full_duplex);
        self.observed(&interface.link.up);
        self.fact(&interface.link.supported);
        self.fact(&interface.link.partner);
        let (channels, rings) = (&interface.channels, &interface.rings);
        for limited in [&channels.rx, &channels.combined, &rings.rx] {
            self.limited(limited);
        }
        interface.coalesce.values().for_each(|setting| self.setting(setting));
        self.observed(&interface.adaptive_rx);
        interface.features.values().for_each(|setting| self.setting(setting));
        self.observed(&interface.reta);
        interface.hash_fields.values().for_each(|setting| self.setting(setting));
        for queue in interface.queues.values() {
            [&queue.packets, &queue.bytes, &queue.drops]
                .into_iter()
                .for_each(|counter| self.counter(counter));
            self.observed(&queue.rps);
        }
        let totals = &interface.totals;
        self.counter(&totals.packets);
        self.counter(&totals.bytes);
        totals.overflow.values().chain(totals.too_long.values()).for_each(|one| self.check(one.quote()));
        self.observed(&interface.xdp);
        self.fact(&interface.virtual_functions);
        assert!(interface.queues.len() <= Snapshot::QUEUES);
    }

    fn machine(&self, snapshot: &Snapshot) {
        self.fact(&snapshot.system);
        self.fact(&snapshot.kernel);
        self.fact(&snapshot.cpus.online);
        self.fact(&snapshot.cpus.model);
        for fact in snapshot.cpus.load.values() {
            self.check(&fact.quote);
        }
        for interrupt in &snapshot.interrupts {
            self.check(&interrupt.quote);
            interrupt.counts.values().for_each(|counter| self.check(counter.quote()));
            self.observed(&interrupt.affinity);
            self.fact(&interrupt.rate);
        }
        snapshot.softirqs.values().flat_map(|cpus| cpus.values()).for_each(|one| self.check(one.quote()));
        for softnet in snapshot.softnet.values() {
            [&softnet.processed, &softnet.dropped, &softnet.time_squeeze]
                .into_iter()
                .for_each(|counter| self.check(counter.quote()));
            self.counter(&softnet.received_rps);
        }
        if let Some(netisr) = &snapshot.netisr {
            self.observed(&netisr.threads);
            self.observed(&netisr.dispatch);
            self.observed(&netisr.bound);
            netisr.protocols.values().for_each(|protocol| self.check(&protocol.quote));
            for stream in netisr.workstreams.values() {
                [&stream.handled, &stream.dropped]
                    .into_iter()
                    .for_each(|counter| self.check(counter.quote()));
            }
        }
        snapshot.sessions.iter().for_each(|session| self.check(&session.quote));
        snapshot.processes.iter().for_each(|process| self.check(&process.quote));
        snapshot.log.iter().for_each(|log| self.check(&log.quote));
        snapshot.sysctls.values().for_each(|setting| self.setting(setting));
        snapshot.read.values().for_each(|quote| self.check(quote));
    }
}

fn read(texts: &[(&'static str, &[u8])]) {
    let mut reader = Reader::new();
    for (name, text) in texts {
        reader.read(name, *text).expect("memory does not fail");
    }
    let snapshot = reader.finish();
    assert!(snapshot.interfaces.len() <= Snapshot::INTERFACES);
    assert!(snapshot.interrupts.len() <= Snapshot::INTERRUPTS);
    assert!(snapshot.cpus.load.len() <= Snapshot::CPUS && snapshot.softnet.len() <= Snapshot::CPUS);
    assert!(snapshot.sysctls.len() <= Snapshot::NAMES);
    for kept in [snapshot.sessions.len(), snapshot.processes.len(), snapshot.log.len(), snapshot.unread.len()]
    {
        assert!(kept <= Snapshot::LINES);
    }
    let texts = Texts(texts.iter().map(|(name, text)| (*name, lines(name, text))).collect());
    snapshot.interfaces.iter().for_each(|interface| texts.interface(interface));
    texts.machine(&snapshot);
}

pub fn run(input: &[u8]) {
    read(&[("whole", input)]);
    let (first, second) = input.split_at(input.len() / 2);
    read(&[("first", first), ("second", second)]);
}
