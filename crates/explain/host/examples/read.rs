//! What the text reader makes of files: `cargo run -p rxlane-host --example read -- FILE…`, `-` for standard input.

use rxlane_host::text::Reader;
use rxlane_host::{Counter, Fact, Interface, Observed, Queue, Snapshot};
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::{self, BufReader, Write};

fn main() -> io::Result<()> {
    let mut reader = Reader::new();
    for name in std::env::args().skip(1) {
        if name == "-" {
            reader.read("standard input", io::stdin().lock())?;
        } else {
            reader.read(&name, BufReader::new(File::open(&name)?))?;
        }
    }
    show(&reader.finish(), &mut io::stdout().lock())
}

fn show(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    fact(out, "system", snapshot.system.as_ref())?;
    fact(out, "kernel", snapshot.kernel.as_ref())?;
    writeln!(out, "interval: {:?}; omitted: {}", snapshot.interval, snapshot.omitted)?;
    fact(out, "cpus.online", snapshot.cpus.online.as_ref())?;
    fact(out, "cpus.model", snapshot.cpus.model.as_ref())?;
    for (node, cpus) in &snapshot.cpus.nodes {
        writeln!(out, "node {node}: {cpus:?}")?;
    }
    for (cpu, load) in &snapshot.cpus.load {
        fact(out, &format!("load of CPU {cpu}"), Some(load))?;
    }
    for interface in &snapshot.interfaces {
        show_interface(interface, out)?;
    }
    show_interrupts(snapshot, out)?;
    show_machine(snapshot, out)
}

fn show_interface(interface: &Interface, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "interface {:?}, first in line {}", interface.name, interface.seen.line)?;
    fact(out, "  kind", interface.kind.as_ref())?;
    fact(out, "  parent", interface.parent.as_ref())?;
    fact(out, "  master", interface.master.as_ref())?;
    fact(out, "  driver", interface.driver.as_ref())?;
    fact(out, "  bus", interface.bus.as_ref())?;
    fact(out, "  pci", interface.pci.as_ref())?;
    fact(out, "  model", interface.model.as_ref())?;
    observed(out, "  mtu", interface.mtu.as_ref())?;
    fact(out, "  mtu_most", interface.mtu_most.as_ref())?;
    observed(out, "  up", interface.up.as_ref())?;
    observed(out, "  link.speed", interface.link.speed.as_ref())?;
    observed(out, "  link.full_duplex", interface.link.full_duplex.as_ref())?;
    observed(out, "  link.up", interface.link.up.as_ref())?;
    fact(out, "  link.supported", interface.link.supported.as_ref())?;
    fact(out, "  link.partner", interface.link.partner.as_ref())?;
    let (channels, rings) = (&interface.channels, &interface.rings);
    for (name, limited) in
        [("channels.rx", &channels.rx), ("channels.combined", &channels.combined), ("rings.rx", &rings.rx)]
    {
        observed(out, &format!("  {name}"), limited.current.as_ref())?;
        fact(out, &format!("  {name}, at most"), limited.most.as_ref())?;
    }
    for (name, value) in &interface.coalesce {
        observed(out, &format!("  {name}"), Some(value))?;
    }
    observed(out, "  adaptive_rx", interface.adaptive_rx.as_ref())?;
    for (name, value) in &interface.features {
        observed(out, &format!("  {name}"), Some(value))?;
    }
    observed(out, "  reta", interface.reta.as_ref())?;
    for (name, value) in &interface.hash_fields {
        observed(out, &format!("  hash fields of {name}"), Some(value))?;
    }
    for (number, queue) in &interface.queues {
        show_queue(*number, queue, out)?;
    }
    counter(out, "  packets", interface.totals.packets.as_ref())?;
    counter(out, "  bytes", interface.totals.bytes.as_ref())?;
    for (name, value) in &interface.totals.overflow {
        counter(out, &format!("  overflow {name}"), Some(value))?;
    }
    for (name, value) in &interface.totals.too_long {
        counter(out, &format!("  too long {name}"), Some(value))?;
    }
    observed(out, "  xdp", interface.xdp.as_ref())?;
    fact(out, "  virtual functions", interface.virtual_functions.as_ref())
}

fn show_queue(number: u32, queue: &Queue, out: &mut impl Write) -> io::Result<()> {
    for (name, value) in [("packets", &queue.packets), ("bytes", &queue.bytes), ("drops", &queue.drops)] {
        counter(out, &format!("  queue {number} {name}"), value.as_ref())?;
    }
    observed(out, &format!("  queue {number} rps"), queue.rps.as_ref())
}

fn show_interrupts(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    for interrupt in &snapshot.interrupts {
        let counts: Vec<String> = interrupt.counts.values().map(value).collect();
        let interface = interrupt.interface.as_deref().unwrap_or("-");
        let role = (interrupt.queue, interrupt.receives);
        let counts = counts.join(" ");
        writeln!(
            out,
            "interrupt {} {:?} of {interface} {role:?}: {counts}",
            interrupt.vector, interrupt.action
        )?;
        observed(out, "  affinity", interrupt.affinity.as_ref())?;
        fact(out, "  rate", interrupt.rate.as_ref())?;
    }
    Ok(())
}

fn show_machine(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    for (name, counters) in &snapshot.softirqs {
        let counts: Vec<String> = counters.values().map(value).collect();
        writeln!(out, "softirq {name}: {}", counts.join(" "))?;
    }
    for (cpu, softnet) in &snapshot.softnet {
        counter(out, &format!("softnet {cpu} processed"), Some(&softnet.processed))?;
        counter(out, &format!("softnet {cpu} dropped"), Some(&softnet.dropped))?;
        counter(out, &format!("softnet {cpu} squeezed"), Some(&softnet.time_squeeze))?;
    }
    if let Some(netisr) = &snapshot.netisr {
        writeln!(out, "netisr: {:?} {:?} {:?}", netisr.threads, netisr.dispatch, netisr.bound)?;
        for (name, protocol) in &netisr.protocols {
            writeln!(out, "  {name}: {} {}", protocol.policy, protocol.dispatch)?;
        }
        for (key, stream) in &netisr.workstreams {
            writeln!(out, "  {key:?}: handled {}", value(&stream.handled))?;
        }
    }
    for session in &snapshot.sessions {
        writeln!(out, "session {:#06x} on {}", session.id, session.interface)?;
    }
    for process in &snapshot.processes {
        writeln!(out, "process {} {:?} {:?} %", process.name, process.pid, process.cpu)?;
    }
    for log in &snapshot.log {
        writeln!(out, "log {:?} {:?} {} times: {}", log.topic, log.interface, log.times, log.quote)?;
    }
    for (name, value) in &snapshot.sysctls {
        observed(out, name, Some(value))?;
    }
    for unread in &snapshot.unread {
        writeln!(out, "not read: {}: {}", unread.what, unread.why)?;
    }
    for (tool, quote) in &snapshot.read {
        writeln!(out, "read {tool}: {quote}")?;
    }
    Ok(())
}

fn value(counter: &Counter) -> String {
    format!("{} ({:?})", counter.value(), counter.delta())
}

fn counter(out: &mut impl Write, name: &str, count: Option<&Counter>) -> io::Result<()> {
    match count {
        Some(count) => writeln!(out, "{name}: {}", value(count)),
        None => Ok(()),
    }
}

fn fact<T: Debug>(out: &mut impl Write, name: &str, fact: Option<&Fact<T>>) -> io::Result<()> {
    match fact {
        Some(fact) => line(out, name, &fact.value, fact.quote.line),
        None => Ok(()),
    }
}

fn observed<T: Debug + PartialEq>(
    out: &mut impl Write,
    name: &str,
    observed: Option<&Observed<T>>,
) -> io::Result<()> {
    let Some(observed) = observed else { return Ok(()) };
    line(out, name, observed.get(), observed.quote().line)?;
    match observed.former() {
        Some(former) => line(out, "    formerly", &former.value, former.quote.line),
        None => Ok(()),
    }
}

fn line(out: &mut impl Write, name: impl Display, value: &impl Debug, number: u64) -> io::Result<()> {
    writeln!(out, "{name}: {value:?}  (line {number})")
}
