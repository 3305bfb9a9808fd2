//! Everything that talks to Linux, and the only crate besides SIMD with `unsafe`, in modules named `sys`.
//!
//! * [`netlink`]: interfaces, addresses, routes, XDP programs, generic families, notifications.
//! * [`socket`]: packet sockets and their filters, many messages a system call, UDP, memory shared with the kernel.
//! * [`tun`], [`ethtool`], [`bpf`]: devices of this process, what drivers say, bpf(2).
//! * [`perf`]: what CPUs execute, and tracepoints.
//! * [`process`], [`netns`], [`cpu`]: who is alive, which network namespace, which CPUs and what they do; [`random`] numbers.
//! * [`sysctl`]: settings of a network namespace.
//! * [`mod@file`]: locks, private folders, files replaced as a whole, bounded reads.
//!
//! ```
//! use rxlane_kernel::cpu::CpuSet;
//! use rxlane_kernel::netns::NetNs;
//! use rxlane_kernel::process;
//!
//! let own = process::Id::own()?;
//! assert!(own.is_alive());
//! assert_eq!(NetNs::of(own.pid)?, NetNs::current()?);
//! assert_eq!(CpuSet::parse_list("0-3,8")?.mask(), "10f");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Elsewhere there is [`cpu::CpuSet`], for what was read of a Linux, [`mod@file`] and [`allocations`].
//!
//! Errors of single calls are [`std::io::Error`]; the caller says what the call was for.

pub mod allocations;
#[cfg(target_os = "linux")]
pub mod bpf;
pub mod cpu;
#[cfg(target_os = "linux")]
pub mod ethtool;
pub mod file;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(target_os = "linux")]
pub mod netns;
#[cfg(target_os = "linux")]
pub mod perf;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod random;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod sysctl;
#[cfg(target_os = "linux")]
pub mod tun;
