//! The least program that hands frames to an XDP socket, as instructions, and its link to an interface (bpf(2)).

use super::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Where the program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    Generic = 1 << 1,
    Native = 1 << 2,
}

// The beginnings of the members of `union bpf_attr`; the kernel takes what is missing behind as zero.

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    spare: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Calls bpf(2).
///
/// # Safety
///
/// `T` is the beginning of the command's member of `union bpf_attr`, without padding, with valid pointers.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<i32> {
    // SAFETY: the caller's promise, and the size is T's.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    checked(answer).map(|fd| fd as i32)
}

/// The same, for commands that give a descriptor.
///
/// # Safety
///
/// As for [`bpf`].
unsafe fn made<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise; the descriptor is new and owned by nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, attributes)?)) }
}

/// A redirection of everything that arrives on queue 0 of an interface into an XDP socket. It ends with its drop.
pub struct Redirection {
    _link: OwnedFd,
    _program: OwnedFd,
    _map: OwnedFd,
}

impl Redirection {
    pub fn new(interface: u32, socket: BorrowedFd<'_>, mode: Mode) -> io::Result<Redirection> {
        let attributes =
            MapCreate { map_type: MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, max_entries: 1, map_flags: 0 };
        // SAFETY: the beginning of the member of BPF_MAP_CREATE, no pointers.
        let map = unsafe { made(MAP_CREATE, &attributes) }?;
        let (key, value) = (0_u32, socket.as_raw_fd());
        let attributes = MapUpdate {
            map: map.as_raw_fd() as u32,
            spare: 0,
            key: &raw const key as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        // SAFETY: the member of BPF_MAP_*_ELEM; key and value have the map's four octets.
        unsafe { bpf(MAP_UPDATE, &attributes) }?;
        let program = load(map.as_fd())?;
        let attributes = LinkCreate {
            program: program.as_raw_fd() as u32,
            interface,
            attach_type: ATTACH_XDP,
            flags: mode as u32,
        };
        // SAFETY: the beginning of the member of BPF_LINK_CREATE, no pointers.
        let link = unsafe { made(LINK_CREATE, &attributes) }?;
        Ok(Redirection { _link: link, _program: program, _map: map })
    }
}

/// An instruction: code, destination and source register, offset, immediate (RFC 9669 section 3).
const fn instruction(code: u8, registers: u8, offset: i16, immediate: i32) -> u64 {
    code as u64 | (registers as u64) << 8 | (offset as u16 as u64) << 16 | (immediate as u32 as u64) << 32
}

fn load(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let instructions = [
        // r2 = context->rx_queue_index
        instruction(0x61, 0x12, 16, 0),
        // r1 = the map, by descriptor; 16 octets
        instruction(0x18, 0x11, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0),
        // r3 = XDP_PASS, where there is no socket
        instruction(0xb7, 0x03, 0, 2),
        // bpf_redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, 51),
        instruction(0x95, 0, 0, 0),
    ];
    let attributes = ProgLoad {
        program_type: PROG_TYPE_XDP,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    // SAFETY: the beginning of the member of BPF_PROG_LOAD; instructions with their number, and a C string.
    unsafe { made(PROG_LOAD, &attributes) }
}
