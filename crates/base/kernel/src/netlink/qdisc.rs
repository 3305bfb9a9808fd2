//! Queueing disciplines and what they dropped.

use super::message::u32_at;
use super::{Attributes, Message, Netlink, Refusal};
use libc::RTM_GETQDISC;

/// Bytes of `struct tcmsg`: family and padding, interface, handle, parent, information.
const TCMSG: usize = 20;
/// `include/uapi/linux/rtnetlink.h` and `gen_stats.h`.
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// `drops` and `overlimits` in `struct gnet_stats_queue`, five numbers of 32 bits.
const DROPS: usize = 8;
const OVERLIMITS: usize = 16;

/// A queueing discipline of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// The number of its interface.
    pub interface: u32,
    /// Its kind: `fq_codel`.
    pub kind: String,
    /// Its handle as tc(8) prints it in `MAJOR:`; 0: the kernel gave it none.
    pub handle: u16,
    /// Packets that it dropped; those of its children count here, too, where its kind passes them on.
    pub drops: u32,
    /// Packets that it held back.
    pub overlimits: u32,
}

impl Qdisc {
    fn read(body: &[u8]) -> Option<Qdisc> {
        let attributes = Attributes::behind(TCMSG, body);
        let queue = attributes.nest(TCA_STATS2).and_then(|statistics| statistics.get(TCA_STATS_QUEUE))?;
        Some(Qdisc {
            interface: u32_at(body, 4)?,
            kind: attributes.text(TCA_KIND)?,
            handle: (u32_at(body, 8)? >> 16) as u16,
            drops: u32_at(queue, DROPS)?,
            overlimits: u32_at(queue, OVERLIMITS)?,
        })
    }
}

/// All queueing disciplines of this network namespace. Error: `EOPNOTSUPP`: the kernel has none (`CONFIG_NET_SCHED`).
pub fn qdiscs() -> Result<Vec<Qdisc>, Refusal> {
    let objects = Netlink::route()?.dump(&Message::new(RTM_GETQDISC, &[0; TCMSG]))?;
    Ok(objects.iter().filter_map(|object| Qdisc::read(object)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_short_at_any_place_nothing_panics() {
        let header = [0, 7, 0x8001_0000, u32::MAX, 1].map(u32::to_ne_bytes).concat();
        let queue = [1, 2, 3, 4, 5].map(u32::to_ne_bytes).concat();
        let message = Message::new(36, &header)
            .with_text(TCA_KIND, b"tbf")
            .with_nest(TCA_STATS2, |statistics| statistics.with(TCA_STATS_QUEUE, &queue));
        let body = message.bytes(0, 0).expect("short").split_off(16);
        let expected =
            Qdisc { interface: 7, kind: "tbf".to_owned(), handle: 0x8001, drops: 3, overlimits: 5 };
        assert_eq!(Qdisc::read(&body), Some(expected));
        for end in 0..body.len() {
            Qdisc::read(body.get(..end).expect("within"));
        }
    }

    #[test]
    fn the_kernel_lists_those_of_this_namespace() {
        let listed = qdiscs();
        assert!(listed.is_ok(), "{listed:?}");
    }
}
