//! bpf(2), as `include/uapi/linux/bpf.h` describes it.
//!
//! Only what aya does not offer or does another way: links (create, ask, detach), pins by path, the kernel's
//! information about objects, map elements as bytes, and loading without signals.
#![allow(unsafe_code)]

use crate::cpu;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `enum bpf_cmd`.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgLoad = 5,
    ObjPin = 6,
    ObjGet = 7,
    ProgGetFdById = 13,
    InfoByFd = 15,
    LinkCreate = 28,
    LinkUpdate = 29,
    LinkGetFdById = 30,
    LinkGetNextId = 31,
    LinkDetach = 34,
}

/// `enum bpf_map_type`.
pub mod map_type {
    /// `BPF_MAP_TYPE_ARRAY`.
    pub const ARRAY: u32 = 2;
    /// `BPF_MAP_TYPE_PERCPU_HASH`.
    pub const PERCPU_HASH: u32 = 5;
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`.
    pub const PERCPU_ARRAY: u32 = 6;
    /// `BPF_MAP_TYPE_LRU_PERCPU_HASH`.
    pub const LRU_PERCPU_HASH: u32 = 10;
    /// `BPF_MAP_TYPE_CPUMAP`.
    pub const CPUMAP: u32 = 16;
    pub(super) const PERCPU_CGROUP_STORAGE: u32 = 21;
}

/// `BPF_PROG_TYPE_XDP`.
const PROG_TYPE_XDP: u32 = 6;
/// `enum bpf_attach_type`: `BPF_XDP_CPUMAP`.
pub const ATTACH_CPUMAP: u32 = 35;
/// `enum bpf_attach_type`: `BPF_XDP`.
pub const ATTACH_XDP: u32 = 37;
/// `enum bpf_link_type`: `BPF_LINK_TYPE_XDP`.
const LINK_TYPE_XDP: u32 = 6;
/// `BPF_F_XDP_HAS_FRAGS`.
pub const XDP_HAS_FRAGS: u32 = 1 << 5;

// The beginnings of the members of `union bpf_attr` up to the last field that is used. The kernel takes what is
// missing behind as zero (`bpf_check_uarg_tail_zero` and the copy in `__sys_bpf`). Every byte is a field: there is no
// padding.

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map_fd: u32,
    spare: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct Object {
    path: u64,
    fd: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Id {
    start: u32,
    next: u32,
    flags: u32,
    spare: u32,
}

#[repr(C)]
#[derive(Default)]
struct InfoByFd {
    fd: u32,
    length: u32,
    info: u64,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkUpdate {
    link: u32,
    program: u32,
    flags: u32,
    expected: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkDetach {
    link: u32,
    spare: u32,
}

/// Calls bpf(2).
///
/// # Safety
///
/// `T` is the beginning of the member of `union bpf_attr` that belongs to the command, without padding, and every
/// pointer in it is valid for what the kernel reads and writes there.
unsafe fn bpf<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the pointer is to a whole T, whose size the kernel gets; the rest is the caller's promise.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            &raw mut *attributes,
            size_of::<T>() as libc::c_long,
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}

/// As [`bpf`], for commands whose answer is a new file descriptor.
///
/// # Safety
///
/// As [`bpf`].
unsafe fn bpf_fd<T>(command: Command, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise is the same.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just opened it for this process (with O_CLOEXEC), and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd() as u32
}

fn pointer(bytes: &[u8]) -> u64 {
    bytes.as_ptr() as u64
}

/// At most 15 bytes of a name and a zero.
fn name_field(name: &str) -> [u8; 16] {
    let mut field = [0; 16];
    for (to, from) in field.iter_mut().zip(name.bytes().take(15)) {
        *to = from;
    }
    field
}

/// A map with keys of four bytes.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    /// `enum bpf_map_type`.
    pub kind: u32,
    /// Bytes of a value; of one CPU's, where each has its own.
    pub value_size: usize,
    /// Entries it can have.
    pub entries: u32,
    /// Bytes that the kernel reads and writes for one element, of all CPUs.
    bytes: usize,
}

impl Map {
    /// Makes a map with keys of four bytes.
    pub fn create(kind: u32, value_size: u32, max_entries: u32, name: &str) -> io::Result<Map> {
        let mut attributes = MapCreate {
            map_type: kind,
            key_size: 4,
            value_size,
            max_entries,
            name: name_field(name),
            ..MapCreate::default()
        };
        // SAFETY: MapCreate is what BPF_MAP_CREATE reads; there is no pointer in it.
        let fd = unsafe { bpf_fd(Command::MapCreate, &mut attributes) }?;
        Map::of(fd)
    }

    /// What a file descriptor of a map stands for. Fails with `EINVAL` where it is none, or a map with other keys.
    pub fn of(fd: OwnedFd) -> io::Result<Map> {
        // struct bpf_map_info: type, id, key_size, value_size, max_entries, map_flags.
        let info: [u32; 6] = info(fd.as_fd())?;
        let [kind, _, key_size, value_size, entries, _] = info;
        if key_size != 4 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let value_size = value_size as usize;
        let per_cpu = matches!(
            kind,
            map_type::PERCPU_HASH
                | map_type::PERCPU_ARRAY
                | map_type::LRU_PERCPU_HASH
                | map_type::PERCPU_CGROUP_STORAGE
        );
        let bytes =
            if per_cpu { value_size.next_multiple_of(8) * cpu::possible()?.len() } else { value_size };
        Ok(Map { fd, kind, value_size, entries, bytes })
    }

    /// Its file descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The value of a key; of a per-CPU map the values of all possible CPUs, each at a multiple of eight bytes.
    /// `None`: there is no such entry.
    pub fn lookup(&self, key: u32) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0_u8; self.bytes];
        let key = key.to_ne_bytes();
        let mut attributes = Element {
            map_fd: number(self.fd()),
            key: pointer(&key),
            value: value.as_mut_ptr() as u64,
            ..Element::default()
        };
        // SAFETY: the key has the four bytes of `of`. The kernel writes `bytes`: the value size that it reported, or
        // that rounded up for each possible CPU (`bpf_map_value_size`), of which it printed the list.
        match unsafe { bpf(Command::MapLookup, &mut attributes) } {
            Ok(_) => Ok(Some(value)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the value of a key; of a per-CPU map the values of all possible CPUs, as [`Map::lookup`] gives them.
    pub fn update(&self, key: u32, value: &[u8]) -> io::Result<()> {
        if value.len() != self.bytes {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let key = key.to_ne_bytes();
        let mut attributes = Element {
            map_fd: number(self.fd()),
            key: pointer(&key),
            value: pointer(value),
            ..Element::default()
        };
        // SAFETY: key and value are as long as what the kernel reads, as in `lookup`; it writes to neither.
        unsafe { bpf(Command::MapUpdate, &mut attributes) }.map(drop)
    }
}

/// `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    /// An instruction by its fields.
    pub const fn new(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
        // Two bit fields, whose order in the byte is that of the bytes in a word.
        let registers =
            if cfg!(target_endian = "big") { destination << 4 | source } else { source << 4 | destination };
        Instruction { code, registers, offset, immediate }
    }
}

/// Loads an XDP program of a few instructions, without a log.
pub fn load_xdp(code: &[Instruction], flags: u32, expected_attach_type: u32) -> io::Result<OwnedFd> {
    let license = c"Dual MIT/GPL";
    let mut attributes = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        flags,
        name: name_field("rxlane_probe"),
        expected_attach_type,
        ..ProgLoad::default()
    };
    // SAFETY: ProgLoad is what BPF_PROG_LOAD reads; code and licence live until the call returns, the code as long as
    // it says, the licence ending in a zero; there is no log to write.
    without_signals(|| unsafe { bpf_fd(Command::ProgLoad, &mut attributes) })
}

/// Pins an object under a path in a BPF file system.
pub fn pin(fd: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut attributes = Object { path: path.as_ptr() as u64, fd: number(fd), flags: 0 };
    // SAFETY: Object is what BPF_OBJ_PIN reads; the path ends in a zero and lives until the call returns.
    unsafe { bpf(Command::ObjPin, &mut attributes) }.map(drop)
}

/// Opens what is pinned under a path.
pub fn get(path: &CStr) -> io::Result<OwnedFd> {
    let mut attributes = Object { path: path.as_ptr() as u64, ..Object::default() };
    // SAFETY: as for `pin`.
    unsafe { bpf_fd(Command::ObjGet, &mut attributes) }
}

/// The beginning of the information about an object, as numbers of 32 bits.
fn info<const N: usize>(fd: BorrowedFd<'_>) -> io::Result<[u32; N]> {
    let mut words = [0_u32; N];
    let mut attributes =
        InfoByFd { fd: number(fd), length: size_of_val(&words) as u32, info: words.as_mut_ptr() as u64 };
    // SAFETY: the kernel reads and writes at most `length` bytes at `info`. It follows pointers in what it reads, for
    // lists that the caller wants; all are zero.
    unsafe { bpf(Command::InfoByFd, &mut attributes) }?;
    Ok(words)
}

/// What the kernel says of a loaded program.
#[derive(Clone, Debug)]
pub struct ProgramInfo {
    /// Its number.
    pub id: u32,
    /// A hash of its instructions.
    pub tag: [u8; 8],
    /// `CLOCK_BOOTTIME`, nanoseconds.
    pub loaded_ns: u64,
    /// Who loaded it.
    pub user: u32,
    /// Empty where it has none.
    pub name: String,
}

/// What the kernel says of a loaded program.
pub fn program_info(fd: BorrowedFd<'_>) -> io::Result<ProgramInfo> {
    // struct bpf_prog_info: type 0, id 4, tag 8, lengths 16 and 20, pointers 24 and 32, load_time 40, created_by_uid
    // 48, nr_map_ids 52, map_ids 56, name 64 to 80.
    let words: [u32; 20] = info(fd)?;
    let bytes = words.map(u32::to_ne_bytes).concat();
    let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
    let name = part(64, 80).split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(ProgramInfo {
        id: words[1],
        tag: part(8, 16).try_into().unwrap_or_default(),
        loaded_ns: part(40, 48).try_into().map(u64::from_ne_bytes).unwrap_or_default(),
        user: words[12],
        name: String::from_utf8_lossy(name).into_owned(),
    })
}

/// Opens a loaded program by its number. Requires `CAP_SYS_ADMIN`.
pub fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    let mut attributes = Id { start: id, ..Id::default() };
    // SAFETY: Id is what BPF_PROG_GET_FD_BY_ID reads.
    unsafe { bpf_fd(Command::ProgGetFdById, &mut attributes) }
}

/// What the kernel says of an XDP link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its number.
    pub id: u32,
    /// The number of its program.
    pub program: u32,
    /// Index of the interface in the namespace where that is now; 0: it was removed, or the link was detached.
    pub interface: u32,
}

/// What the kernel says of a link; `None`: it is no XDP link.
pub fn link_info(fd: BorrowedFd<'_>) -> io::Result<Option<LinkInfo>> {
    // struct bpf_link_info: type 0, id 4, prog_id 8, then from 16 on what belongs to the type: the interface's index.
    let [kind, id, program, _, interface, _] = info(fd)?;
    Ok((kind == LINK_TYPE_XDP).then_some(LinkInfo { id, program, interface }))
}

/// Attaches a program to an interface of the calling thread's network namespace; `flags` as `XDP_FLAGS_*`. The program
/// is taken off when the last file descriptor and pin of the link are closed and removed.
pub fn link_create(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attributes =
        LinkCreate { program: number(program), target: interface, attach_type: ATTACH_XDP, flags };
    // SAFETY: LinkCreate is what BPF_LINK_CREATE reads.
    unsafe { bpf_fd(Command::LinkCreate, &mut attributes) }
}

/// Puts another program in the place of that of a link, at once: every frame meets one of the two.
pub fn link_update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = LinkUpdate { link: number(link), program: number(program), ..LinkUpdate::default() };
    // SAFETY: LinkUpdate is what BPF_LINK_UPDATE reads.
    unsafe { bpf(Command::LinkUpdate, &mut attributes) }.map(drop)
}

/// Takes the program of a link off its interface, whoever else has the link open.
pub fn link_detach(link: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = LinkDetach { link: number(link), spare: 0 };
    // SAFETY: LinkDetach is what BPF_LINK_DETACH reads, with four zero bytes behind.
    unsafe { bpf(Command::LinkDetach, &mut attributes) }.map(drop)
}

/// The number of the link after `id`; `None`: there is none. Requires `CAP_SYS_ADMIN`.
pub fn next_link(id: u32) -> io::Result<Option<u32>> {
    let mut attributes = Id { start: id, ..Id::default() };
    // SAFETY: Id is what BPF_LINK_GET_NEXT_ID reads, and where it writes `next`.
    match unsafe { bpf(Command::LinkGetNextId, &mut attributes) } {
        Ok(_) => Ok(Some(attributes.next)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a link by its number. Requires `CAP_SYS_ADMIN`.
pub fn link_by_id(id: u32) -> io::Result<OwnedFd> {
    let mut attributes = Id { start: id, ..Id::default() };
    // SAFETY: Id is what BPF_LINK_GET_FD_BY_ID reads.
    unsafe { bpf_fd(Command::LinkGetFdById, &mut attributes) }
}

/// Loads a program while no signal reaches this thread but SIGKILL and SIGSTOP; one that comes meanwhile goes to another thread,
/// or waits. Else the verifier gives up with EAGAIN (`do_check` in kernel/bpf/verifier.c), and aya takes that for a refusal: it asks
/// again, with a log that it lets grow until all of it fits, which makes seconds of a second, or gives up where another signal comes.
pub fn without_signals<T>(load: impl FnOnce() -> T) -> T {
    struct Former(libc::sigset_t);
    impl Drop for Former {
        fn drop(&mut self) {
            // SAFETY: it is a set of signals, and no former one is requested. With those it cannot fail.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
        }
    }
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut former = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset(3) fills the whole set, and pthread_sigmask(3), which fails with no valid `how`, the other one.
    let _former = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), former.as_mut_ptr());
        Former(former.assume_init())
    };
    load()
}

/// A path for the kernel.
pub fn c_path(path: &str) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
