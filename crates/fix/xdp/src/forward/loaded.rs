//! The program and its maps in the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use aya::maps::xdp::XdpMapError;
use aya::maps::{Array, DevMap, HashMap, MapData, MapError, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use kernel::bpf;

use crate::dead::moved;
use crate::error::Error;
use crate::features::forwarding_is_possible;
use crate::forward::{Flow, Key, NextHop, Used};
use crate::forward_layout::{
    Alive, FlowValue, ForwardCounts, KEY_IPV4_LENGTH, KEY_LENGTH, LIMITS, Limit, NextHopValue, NextHops,
    Pass, RATE_LEAST, map,
};
use crate::interface::{Interface, Mode, namespace};
use crate::link::create_link;
use crate::load::{load_program, map_error, not_loaded, now_ns, take};
use crate::object;

const PROGRAM: &str = "fastpath";
/// `BPF_NOEXIST` and `BPF_EXIST` of bpf(2) are not used: an entry is written whether it is there or not.
const ANY: u64 = 0;
const FLOW_LENGTH: usize = size_of::<FlowValue>();
/// Longer than a program runs for a packet.
const GRACE: Duration = Duration::from_millis(1);
const COUNTS_LENGTH: usize = size_of::<ForwardCounts>();

/// The program of the fast path, loaded, with its maps; they end with this. Ports end by themselves ([`Port`]), and while
/// one lives its program does, too.
pub struct Forwarding {
    ipv4: HashMap<MapData, [u8; KEY_IPV4_LENGTH], [u8; FLOW_LENGTH]>,
    ipv6: HashMap<MapData, [u8; KEY_LENGTH], [u8; FLOW_LENGTH]>,
    next_hops: Array<MapData, [u8; size_of::<NextHops>()]>,
    /// What is in that map, and when it was last changed.
    known: Vec<(NextHops, Option<Instant>)>,
    ports: DevMap<MapData>,
    alive: Array<MapData, [u8; size_of::<Alive>()]>,
    limits: Array<MapData, [u8; size_of::<Limit>()]>,
    counts: PerCpuArray<MapData, [u8; COUNTS_LENGTH]>,
    program: OwnedFd,
    /// Holds the program for [`Forwarding::run`].
    ebpf: Ebpf,
    /// Most flows of either IP version.
    flows: u32,
}

/// A port on which the program runs, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Port {
    interface: Interface,
    link: OwnedFd,
}

impl Port {
    /// The interface, by the name that it had when it was attached.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The index, where it is now, of an interface that went to another network namespace; `None`: it is here, or was removed.
    pub fn away(&self) -> Option<u32> {
        moved(&bpf::link_info(self.link.as_fd()).ok()??)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // Closing it takes the program off only where nobody else has it open, as who lists the kernel's links has for a moment. That of
        // an interface that was removed is refused.
        let _ = bpf::link_detach(self.link.as_fd());
    }
}

/// What the program did since it was loaded, summed over all CPUs and ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets forwarded.
    pub fast: u64,
    /// Bytes of their IP packets.
    pub fast_bytes: u64,
    /// Packets dropped by a rate limit.
    pub limited: u64,
    /// Frames left to the kernel, in the order of [`Pass::ALL`].
    pub passed: [u64; Pass::ALL.len()],
}

impl Forwarding {
    /// Loads the program, with space for so many flows of IPv4 and as many of IPv6, and so many next hops. Nothing is
    /// forwarded before the first [`beat`](Forwarding::beat). Linux 5.12.
    ///
    /// # Errors
    ///
    /// [`Error::NotPermitted`], [`Error::Lacks`], [`Error::System`] (memory), [`Error::Object`].
    pub fn load(flows: u32, next_hops: u32) -> Result<Forwarding, Error> {
        forwarding_is_possible()?;
        let mut loader = EbpfLoader::new();
        // The program does not read the kernel's types.
        loader.btf(None);
        for name in [map::FLOWS_IPV4, map::FLOWS_IPV6] {
            loader.map_max_entries(name, flows);
        }
        loader.map_max_entries(map::NEXT_HOPS, next_hops);
        let mut ebpf = loader.load(object::fastpath()).map_err(|error| not_loaded(PROGRAM, error))?;
        let program = load_program(PROGRAM, &mut ebpf)?;
        Ok(Forwarding {
            ipv4: take(&mut ebpf, PROGRAM, map::FLOWS_IPV4)?,
            ipv6: take(&mut ebpf, PROGRAM, map::FLOWS_IPV6)?,
            next_hops: take(&mut ebpf, PROGRAM, map::NEXT_HOPS)?,
            known: vec![(NextHops::default(), None); next_hops as usize],
            ports: take(&mut ebpf, PROGRAM, map::PORTS)?,
            alive: take(&mut ebpf, PROGRAM, map::ALIVE)?,
            limits: take(&mut ebpf, PROGRAM, map::RATE_LIMITS)?,
            counts: take(&mut ebpf, PROGRAM, map::FORWARDED)?,
            program,
            ebpf,
            flows,
        })
    }

    /// Puts the program on an interface of the calling thread's network namespace, until the result is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Attached`] and [`Error::Foreign`] where it has a program already; [`Error::NoInterface`],
    /// [`Error::NotPermitted`], [`Error::Lacks`] in the words of the driver, [`Error::Plan`] in another namespace.
    pub fn attach(&self, interface: &Interface, mode: Mode) -> Result<Port, Error> {
        if interface.namespace != namespace()? {
            let problem = format!("{} is in another network namespace than this thread", interface.name);
            return Err(Error::Plan(problem));
        }
        interface.is_free()?;
        let link = create_link(interface, mode, self.program.as_fd())?;
        Ok(Port { interface: interface.clone(), link })
    }

    /// The interface by which packets leave for a place in the map of ports, by its index in the calling thread's network
    /// namespace; `None`: none. An interface that is removed leaves the map.
    pub fn set_port(&mut self, place: u32, interface: Option<u32>) -> Result<(), Error> {
        // The kernel takes index 0 for none (__dev_map_alloc_node's caller dev_map_update_elem in kernel/bpf/devmap.c).
        self.ports.set(place, interface.unwrap_or_default(), None, ANY).map_err(|error| match error {
            XdpMapError::MapError(error) => map_error("set a port", error),
            XdpMapError::ChainedProgramNotSupported => defect(&error.to_string()),
        })
    }

    /// The daemon lives now, and flows of this generation are valid. Due well within
    /// [`HEARTBEAT_MOST_NS`](crate::forward_layout::HEARTBEAT_MOST_NS).
    pub fn beat(&mut self, generation: u32) -> Result<(), Error> {
        self.beat_at(generation, now_ns())
    }

    /// As [`beat`](Forwarding::beat), at another time. For tests.
    #[doc(hidden)]
    pub fn beat_at(&mut self, generation: u32, heartbeat_ns: u64) -> Result<(), Error> {
        let alive = Alive { heartbeat_ns, generation, spare: 0 };
        self.alive.set(0, alive.bytes(), ANY).map_err(|error| map_error("write the heartbeat", error))
    }

    /// A next hop; `None`: packets of flows that lead there go to the kernel. No packet gets a part of the former one. Waits where
    /// that was set less than a millisecond ago.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] for an inner tag without an outer one; [`Error::System`] beyond the last place.
    pub fn set_next_hop(&mut self, place: u32, next: Option<&NextHop>) -> Result<(), Error> {
        let value = next.map_or_else(|| Ok(NextHopValue::default()), NextHop::value)?;
        let failed = |error| map_error("set a next hop", error);
        let Some((known, changed)) = self.known.get_mut(place as usize) else {
            return Err(defect(&format!("there is no place {place} for a next hop")));
        };
        // A packet that reads the one before the last is over by then: the program is not interrupted.
        if let Some(since) = changed.map(|changed| changed.elapsed()).filter(|since| *since < GRACE) {
            std::thread::sleep(GRACE.saturating_sub(since));
        }
        for step in known.replaced(value) {
            self.next_hops.set(place, step.bytes(), ANY).map_err(failed)?;
            *known = step;
        }
        *changed = Some(Instant::now());
        Ok(())
    }

    /// Installs a flow that has forwarded nothing, in the place of what has its key.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`] where there are as many flows as may be; [`Error::Plan`] as [`Key::value`] and [`Flow::value`]
    /// say; [`Error::System`].
    pub fn insert(&mut self, key: &Key, flow: &Flow) -> Result<(), Error> {
        self.write(key, &flow.value(key)?)
    }

    /// Installs a flow in the place of what has its key, and keeps that one's packets, bytes and time; those of packets
    /// that are forwarded in this moment are lost.
    ///
    /// # Errors
    ///
    /// As [`insert`](Forwarding::insert).
    pub fn renew(&mut self, key: &Key, flow: &Flow) -> Result<(), Error> {
        let Used { packets, bytes, used_ns } = self.used(key)?.unwrap_or_default();
        self.write(key, &FlowValue { packets, bytes, used_ns, ..flow.value(key)? })
    }

    fn write(&mut self, key: &Key, flow: &FlowValue) -> Result<(), Error> {
        let (bytes, value) = (key.value()?.bytes(), flow.bytes());
        let written = match bytes.first_chunk().filter(|_| !key.is_ipv6()) {
            Some(ipv4) => self.ipv4.insert(ipv4, value, ANY),
            None => self.ipv6.insert(bytes, value, ANY),
        };
        written.map_err(|error| match &error {
            MapError::SyscallError(call) if call.io_error.raw_os_error() == Some(libc::E2BIG) => {
                Error::NoSpace { flows: self.flows }
            }
            _ => map_error("install a flow", error),
        })
    }

    /// Removes a flow. `false`: there was none.
    pub fn remove(&mut self, key: &Key) -> Result<bool, Error> {
        let bytes = key.value()?.bytes();
        let removed = match bytes.first_chunk().filter(|_| !key.is_ipv6()) {
            Some(ipv4) => self.ipv4.remove(ipv4),
            None => self.ipv6.remove(&bytes),
        };
        found(removed).map(|removed| removed.is_some()).map_err(|error| map_error("remove a flow", error))
    }

    /// What a flow forwarded since it was inserted. `None`: there is none.
    pub fn used(&self, key: &Key) -> Result<Option<Used>, Error> {
        let bytes = key.value()?.bytes();
        let value = match bytes.first_chunk().filter(|_| !key.is_ipv6()) {
            Some(ipv4) => self.ipv4.get(ipv4, ANY),
            None => self.ipv6.get(&bytes, ANY),
        };
        let value = found(value).map_err(|error| map_error("read a flow", error))?;
        Ok(value.map(|value| {
            let mut words = value.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
            let mut word = || words.next().unwrap_or_default();
            Used { packets: word(), bytes: word(), used_ns: word() }
        }))
    }

    /// A rate limit, whose bucket is full then: `bits_per_second` of IP packets, and at most `burst_bytes` at once, but
    /// never less than 10 ms of that rate, since the clock that the program reads stands still for as long.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] for place 0, places from [`LIMITS`] on, and a rate below [`RATE_LEAST`].
    pub fn set_limit(&mut self, place: u8, bits_per_second: u64, burst_bytes: u64) -> Result<(), Error> {
        let limit = Limit::new(bits_per_second, burst_bytes).filter(|_| (1..LIMITS).contains(&place));
        let limit = limit.ok_or_else(|| {
            Error::Plan(format!(
                "{bits_per_second} bit/s at place {place}: there are places 1 to {}, and rates of {RATE_LEAST} bit/s and more",
                LIMITS - 1
            ))
        })?;
        let set = self.limits.set(u32::from(place), limit.bytes(), ANY);
        set.map_err(|error| map_error("set a rate limit", error))
    }

    /// What the program did.
    pub fn counts(&self) -> Result<Counts, Error> {
        let values = self.counts.get(&0, ANY).map_err(|error| map_error("read the counters", error))?;
        let mut counts = Counts::default();
        for value in values.iter() {
            let mut words = value.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
            let mut add = |sum: &mut u64| *sum = sum.wrapping_add(words.next().unwrap_or_default());
            add(&mut counts.fast);
            add(&mut counts.fast_bytes);
            add(&mut counts.limited);
            counts.passed.iter_mut().for_each(add);
        }
        Ok(counts)
    }

    /// Runs the program on a frame (`BPF_PROG_TEST_RUN`) that arrives by an interface of the calling thread's network
    /// namespace: the action (`enum xdp_action`), and the frame as it leaves. For tests: nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::System`], `EINVAL` for a frame below 14 bytes or above about 3,500.
    #[doc(hidden)]
    pub fn run(&self, frame: &[u8], interface: u32) -> Result<(u32, Vec<u8>), Error> {
        let program = self.ebpf.program(PROGRAM).and_then(|program| <&Xdp>::try_from(program).ok());
        let program = program.ok_or_else(|| defect("it is not loaded"))?;
        // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let context = [0, frame.len() as u32, 0, interface, 0, 0].map(u32::to_ne_bytes);
        let mut out = vec![0; frame.len() + 256];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut out);
        options.ctx_in = Some(context.as_flattened());
        let result = program.test_run(options).map_err(|error| Error::System {
            doing: format!("run the program `{PROGRAM}`"),
            source: io::Error::other(error),
        })?;
        out.truncate(result.data_size_out as usize);
        Ok((result.return_value, out))
    }
}

/// An element; `None`: there is none.
fn found<T>(result: Result<T, MapError>) -> Result<Option<T>, MapError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(MapError::SyscallError(call)) if call.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn defect(problem: &str) -> Error {
    Error::Object { program: PROGRAM, problem: problem.to_owned() }
}
