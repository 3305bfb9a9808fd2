//! The system calls of perf events.
#![allow(unsafe_code)]

use super::Source;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;

/// `enum perf_event_sample_format`.
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_RAW: u64 = 1 << 10;

/// Bits behind `read_format`, in the order of the bit field.
const DISABLED: u64 = 1 << 0;
const FREQUENCY: u64 = 1 << 10;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ENABLE`, `PERF_EVENT_IOC_DISABLE`: `_IO('$', 0)` and `_IO('$', 1)`.
const ENABLE: u32 = rustix::ioctl::opcode::none(b'$', 0);
const DISABLE: u32 = rustix::ioctl::opcode::none(b'$', 1);

/// `struct perf_event_attr` in its first version (`PERF_ATTR_SIZE_VER0`), which every kernel knows; what later versions have
/// behind it is taken for zero (`perf_copy_attr()` in kernel/events/core.c).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    /// Of each so many events a sample, or with [`FREQUENCY`] so many samples a second.
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wake_up: u32,
    breakpoint: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

impl Attributes {
    pub(super) fn of(source: Source) -> Attributes {
        let common = Attributes { size: size_of::<Attributes>() as u32, ..Attributes::default() };
        match source {
            Source::Clock { hertz } => Attributes {
                kind: TYPE_SOFTWARE,
                config: CPU_CLOCK,
                period: hertz,
                sample: SAMPLE_IP | SAMPLE_TID | SAMPLE_CALLCHAIN,
                flags: DISABLED | FREQUENCY | EXCLUDE_CALLCHAIN_USER,
                ..common
            },
            Source::Tracepoint { id } => Attributes {
                kind: TYPE_TRACEPOINT,
                config: id,
                period: 1,
                sample: SAMPLE_IP | SAMPLE_TID | SAMPLE_RAW,
                flags: DISABLED,
                ..common
            },
        }
    }
}

/// perf_event_open(2) for every process on one CPU.
pub(super) fn open(attributes: &Attributes, cpu: u32) -> io::Result<OwnedFd> {
    const EVERY_PROCESS: libc::pid_t = -1;
    const NO_GROUP: libc::c_int = -1;
    let cpu = libc::c_int::try_from(cpu).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: the kernel reads as many bytes of the attributes as their field `size` says, which is their size.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            EVERY_PROCESS,
            cpu,
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    };
    let descriptor = libc::c_int::try_from(descriptor).unwrap_or(-1);
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel has just given, and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

pub(super) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, ENABLE)
}

pub(super) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, DISABLE)
}

fn control(event: BorrowedFd<'_>, request: u32) -> io::Result<()> {
    // SAFETY: both requests take a number, and change no memory.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
