//! What conntrack and nftables have in common: the header of their messages (`include/uapi/linux/netfilter/nfnetlink.h`).
//!
//! Both require `CAP_NET_ADMIN` in the network namespace. A kernel that lacks one of them answers with an error; one that has it as
//! a module loads it, as for `nft` and `conntrack`.

pub mod conntrack;
pub mod nftables;

use super::Message;

/// Bytes of `struct nfgenmsg`: family, version, resource.
const HEADER: usize = 4;

/// A request of a subsystem, for entries of a protocol family (0: of all).
fn request(subsystem: u8, command: u8, family: u8) -> Message {
    Message::new(u16::from_be_bytes([subsystem, command]), &[family, 0, 0, 0])
}
