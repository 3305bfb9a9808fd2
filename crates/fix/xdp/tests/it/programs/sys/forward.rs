//! `bpf/native_forward.c`, compiled.

use super::Guarded;
use libloading::{Library, Symbol};
use rxlane_xdp::forward_layout::{Alive, FlowKey, FlowValue, ForwardCounts, LIMITS, Limit, NextHopValue};
use std::ffi::c_int;
use std::path::Path;
use std::slice;

/// In [`FlowKey::protocol`]: the key is of IPv4 and ends early.
pub const KEY_OF_IPV4: u16 = 1 << 15;

/// What the program has in maps.
#[derive(Default)]
pub struct Tables {
    pub keys: Vec<FlowKey>,
    /// Of the key at the same place.
    pub flows: Vec<FlowValue>,
    pub next_hops: Vec<NextHopValue>,
    pub limits: [Limit; LIMITS as usize],
    pub alive: Alive,
    /// Bits of the places of ports.
    pub ports: u64,
}

/// What `bpf/native_forward.c` calls `struct tables`.
#[repr(C)]
struct Pointers {
    keys: *const FlowKey,
    flows: *mut FlowValue,
    next_hops: *const NextHopValue,
    limits: *mut Limit,
    alive: *const Alive,
    flow_count: u64,
    next_hop_count: u64,
    ports: u64,
    now: u64,
}

/// What it calls `struct context`.
#[repr(C)]
struct Context {
    start: *mut u8,
    end: *mut u8,
    room: *mut u8,
    tables: *mut Pointers,
    port: u64,
}

type Forward = unsafe extern "C" fn(*mut Context, *mut ForwardCounts) -> c_int;

pub struct Forwarder {
    forward: Forward,
    _library: Library,
}

impl Forwarder {
    pub fn open(library: &Path) -> Result<Forwarder, libloading::Error> {
        // SAFETY: the library is bpf/native_forward.c, which has no initializers; the symbol has this type there.
        unsafe {
            let library = Library::new(library)?;
            let forward: Symbol<'_, Forward> = library.get(b"forward_frame")?;
            Ok(Forwarder { forward: *forward, _library: library })
        }
    }

    /// What happens to the frame that was put into `memory`, with `headroom` bytes in front of it, and the frame
    /// afterwards.
    pub fn forward(
        &self,
        memory: &mut Guarded,
        headroom: usize,
        port: u32,
        tables: &mut Tables,
        now: u64,
        counts: &mut ForwardCounts,
    ) -> (u32, Vec<u8>) {
        assert!(memory.length + headroom <= memory.capacity && tables.keys.len() == tables.flows.len());
        let mut pointers = Pointers {
            keys: tables.keys.as_ptr(),
            flows: tables.flows.as_mut_ptr(),
            next_hops: tables.next_hops.as_ptr(),
            limits: tables.limits.as_mut_ptr(),
            alive: &raw const tables.alive,
            flow_count: tables.flows.len() as u64,
            next_hop_count: tables.next_hops.len() as u64,
            ports: tables.ports,
            now,
        };
        // SAFETY: the frame ends where the accessible memory does, and the room begins in it; the tables have as many
        // elements as is said and are borrowed alone; the library is loaded as long as `self` lives. What it leaves lies
        // between the room and the end of the memory.
        unsafe {
            let start = memory.start.add(memory.capacity - memory.length);
            let mut context = Context {
                start,
                end: start.add(memory.length),
                room: start.sub(headroom),
                tables: &raw mut pointers,
                port: u64::from(port),
            };
            let action = (self.forward)(&raw mut context, &raw mut *counts);
            let length = context.end.offset_from(context.start);
            let left = slice::from_raw_parts(context.start, usize::try_from(length).expect("a frame"));
            (action as u32, left.to_vec())
        }
    }
}
