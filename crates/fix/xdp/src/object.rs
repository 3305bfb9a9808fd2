//! The compiled programs. `make bpf` compiles them from `bpf/`, with BTF; `build.rs` packs them (RFC 1951), and each is unpacked
//! when it is first loaded.

use flate2::read::DeflateDecoder;
use std::io::Read;
use std::sync::LazyLock;

/// An object file; aligned as readers of ELF want it.
struct Unpacked {
    bytes: Vec<u8>,
    start: usize,
}

impl Unpacked {
    const ALIGNMENT: usize = 8;

    fn new(packed: &[u8]) -> Unpacked {
        let mut object = Vec::new();
        // What the build has packed is whole; anything else is no ELF, which the loader says.
        let _ = DeflateDecoder::new(packed).read_to_end(&mut object);
        let mut bytes = vec![0; object.len() + Unpacked::ALIGNMENT];
        let start = bytes.as_ptr().align_offset(Unpacked::ALIGNMENT);
        if let Some(place) = bytes.get_mut(start..start + object.len()) {
            place.copy_from_slice(&object);
        }
        bytes.truncate(start + object.len());
        Unpacked { bytes, start }
    }

    fn object(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $(
            $(#[$doc])*
            pub fn $name() -> &'static [u8] {
                static OBJECT: LazyLock<Unpacked> = LazyLock::new(|| {
                    Unpacked::new(include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($name))))
                });
                OBJECT.object()
            }
        )*
    };
}

objects! {
    /// Program `steer`, section `xdp.frags`: frames in several buffers, buckets that move. Linux 5.19.
    steer
    /// Program `arrive`, section `xdp.frags/cpumap`: goes with [`steer`].
    arrive
    /// Program `steer`, section `xdp`, for older kernels: frames in one buffer, and a bucket keeps its first CPU.
    steer_nofrags
    /// Program `arrive`, section `xdp/cpumap`: goes with [`steer_nofrags`].
    arrive_nofrags
    /// Program `envelope`, section `xdp.frags`: frames in several buffers. Linux 5.18.
    envelope
    /// Program `envelope`, section `xdp`, for older kernels: frames in one buffer.
    envelope_nofrags
    /// Program `fastpath`, section `xdp`: frames in one buffer. Linux 5.12.
    fastpath
    /// Programs `from_lines` and `from_uplink`, section `xdp`: frames in one buffer. Linux 5.12.
    subscribers
}
