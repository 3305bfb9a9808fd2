//! What the tests share: namespaces with an interface to steer, plans, frames.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rxlane_xdp::layout::{Class, Settings};
use rxlane_xdp::{
    Attachment, Counters, Dead, Family, Interface, Mode, Plan, attach, clear_dead, dead, kernel,
};
use testkit::netns::{self, Namespace, Veth};
use testkit::{Missing, require};

/// The steered end.
pub const WAN: &str = "wan0";
/// The end that frames are sent from.
pub const PEER: &str = "peer0";

/// Time for the kernel to do what it does without another request.
pub const SOON: Duration = testkit::PATIENCE;

fn probe() -> Result<(), Missing> {
    netns::probe()?;
    match kernel().cpumap_programs {
        Some(true) => Ok(()),
        Some(false) => Err(Missing("this kernel has no programs in maps of CPUs (Linux 5.9)".to_owned())),
        None => Err(Missing(
            "BPF programs cannot be loaded here (run the tests as root, outside containers)".to_owned(),
        )),
    }
}

/// A namespace with interfaces. What was attached in it is removed with it.
pub struct Machine {
    pub namespace: Namespace,
    /// The inode of the namespace, which its pins bear.
    pub inode: u64,
}

impl Machine {
    /// With a pair of four queues, each end up; `None`: not on this machine, which has been said.
    pub fn new() -> Option<Machine> {
        Machine::with(&Veth { queues: 4, ..Veth::pair(WAN, PEER) })
    }

    /// The same with another pair.
    pub fn with(pair: &Veth<'_>) -> Option<Machine> {
        require("bpf", probe())?;
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(pair).expect("a pair");
        let inode = namespace.inside(|| find(pair.near)).namespace;
        Some(Machine { namespace, inode })
    }

    /// One that is steered: there is a BPF file system until it is dropped.
    pub fn with_pins() -> Option<Machine> {
        let machine = Machine::new()?;
        drop(machine.attached());
        Some(machine)
    }

    /// Attaches to the steered end.
    pub fn attached(&self) -> Attachment {
        self.namespace.inside(|| attach(&plan(find(WAN)))).expect("attached")
    }

    /// Opens the attachment of the steered end as another process would.
    pub fn open(&self) -> Option<Attachment> {
        self.namespace.inside(|| Attachment::open(&find(WAN))).expect("opened")
    }

    /// Folders with pins of this namespace.
    pub fn folders(&self) -> Vec<PathBuf> {
        let folder = PathBuf::from(format!("/sys/fs/bpf/rxlane/steer/{}", self.inode));
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// Dead pins of this namespace.
    pub fn dead(&self) -> Vec<Dead> {
        dead(Family::Steer).expect("looked").into_iter().filter(|dead| dead.namespace == self.inode).collect()
    }

    /// Neither a program nor a pin.
    pub fn assert_clean(&self, interface: &str) {
        let program = self.namespace.inside(|| find(interface).program()).expect("queried");
        assert_eq!(program, None);
        assert_eq!(self.folders(), Vec::<PathBuf>::new());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Also after a failure: pins outlive namespaces.
        self.namespace.inside(|| {
            let interfaces = std::fs::read_dir("/sys/class/net").into_iter().flatten();
            for name in interfaces.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
                let _ = Interface::find(&name).and_then(|interface| Attachment::remove(&interface));
            }
        });
        for dead in dead(Family::Steer).unwrap_or_default() {
            if dead.namespace == self.inode {
                let _ = clear_dead(&dead);
            }
        }
    }
}

/// The CPUs that are up, at most four.
pub fn cpus() -> Vec<u32> {
    let count = std::thread::available_parallelism().expect("known").get().min(4);
    (0..count as u32).collect()
}

/// Buckets in turn over all CPUs, PPPoE only, native mode.
pub fn plan(interface: Interface) -> Plan {
    let cpus = cpus();
    let buckets = std::array::from_fn(|bucket: usize| cpus[bucket % cpus.len()]);
    let settings = Settings {
        key: testkit::key(),
        classes: Class::Pppoe.bit(),
        symmetric: 0,
        cpus: 0,
        spare: 0,
        hold_ns: 1_000_000,
    };
    let cpus = cpus.into_iter().map(|cpu| (cpu, 4096)).collect();
    Plan { interface, mode: Mode::Native, settings, buckets, cpus }
}

pub fn find(name: &str) -> Interface {
    Interface::find(name).expect("there")
}

/// A PPPoE session frame with IPv4 and UDP, of a flow by its number, so long in all.
pub fn pppoe(flow: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x64];
    let inner = length - frame.len() - 8;
    frame.extend([0x11, 0, 0, 7]);
    frame.extend((inner as u16 + 2).to_be_bytes());
    frame.extend([0x00, 0x21]);
    frame.extend([0x45, 0]);
    frame.extend((inner as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0]);
    frame.extend(flow.to_be_bytes());
    frame.extend([192, 0, 2, 1, 4, 0, 0, 53]);
    frame.extend((inner as u16 - 20).to_be_bytes());
    frame.resize(length, 0);
    frame
}

/// Waits until as many frames as were sent are where they belong, and gives the counters.
pub fn settled(attachment: &Attachment, sent: u64) -> Counters {
    let until = Instant::now() + SOON;
    loop {
        let counters = attachment.counts().expect("counted");
        let arrived: u64 = counters.arrived.iter().sum();
        assert!(arrived <= counters.sent.iter().sum(), "{counters:?}");
        let there = arrived + counters.kept.iter().sum::<u64>();
        if there == sent {
            return counters;
        }
        assert!(Instant::now() < until, "{there} of {sent} arrived");
        std::thread::sleep(Duration::from_millis(5));
    }
}
