//! The compiled programs. `make bpf` compiles them from `bpf/`, with BTF.

/// An object file; aligned as readers of ELF want it.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static STEER_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/steer.o"));
static ARRIVE_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/arrive.o"));
static STEER_NOFRAGS_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/steer_nofrags.o"));
static ARRIVE_NOFRAGS_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/arrive_nofrags.o"));
static ENVELOPE_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/envelope.o"));
static FASTPATH_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/fastpath.o"));
static SUBSCRIBERS_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/subscribers.o"));
static ENVELOPE_NOFRAGS_BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/envelope_nofrags.o"));

/// Program `steer`, section `xdp.frags`: frames in several buffers, buckets that move. Linux 5.19.
pub static STEER: &[u8] = &STEER_BYTES.0;
/// Program `arrive`, section `xdp.frags/cpumap`: goes with [`STEER`].
pub static ARRIVE: &[u8] = &ARRIVE_BYTES.0;
/// Program `steer`, section `xdp`, for older kernels: frames in one buffer, and a bucket keeps its first CPU.
pub static STEER_NOFRAGS: &[u8] = &STEER_NOFRAGS_BYTES.0;
/// Program `arrive`, section `xdp/cpumap`: goes with [`STEER_NOFRAGS`].
pub static ARRIVE_NOFRAGS: &[u8] = &ARRIVE_NOFRAGS_BYTES.0;
/// Program `envelope`, section `xdp.frags`: frames in several buffers. Linux 5.18.
pub static ENVELOPE: &[u8] = &ENVELOPE_BYTES.0;
/// Program `envelope`, section `xdp`, for older kernels: frames in one buffer.
pub static ENVELOPE_NOFRAGS: &[u8] = &ENVELOPE_NOFRAGS_BYTES.0;
/// Program `fastpath`, section `xdp`: frames in one buffer. Linux 5.12.
pub static FASTPATH: &[u8] = &FASTPATH_BYTES.0;
/// Programs `from_lines` and `from_uplink`, section `xdp`: frames in one buffer. Linux 5.12.
pub static SUBSCRIBERS: &[u8] = &SUBSCRIBERS_BYTES.0;
