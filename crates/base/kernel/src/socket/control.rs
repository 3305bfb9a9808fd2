//! Ancillary data that the kernel attaches to a message (cmsg(3)).

use std::time::Duration;
use wire::ethernet::EtherType;
use wire::vlan::{Tag, Tci};

/// `TP_STATUS_VLAN_VALID`, `TP_STATUS_VLAN_TPID_VALID`, `TP_STATUS_GSO_TCP` of linux/if_packet.h.
const VLAN_VALID: u32 = 1 << 4;
const TPID_VALID: u32 = 1 << 6;
const GSO_TCP: u32 = 1 << 8;
/// linux/udp.h.
const UDP_GRO: i32 = 104;

/// Ancillary data of a frame or datagram, where it was requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The outermost VLAN tag, which the kernel takes off a frame (`PACKET_AUXDATA`).
    pub tag: Option<Tag>,
    /// When the kernel received it, since 1970 by the clock that can be set (`SO_TIMESTAMPNS`).
    pub time: Option<Duration>,
    /// Whether the frame is several TCP segments (`PACKET_AUXDATA`).
    pub is_merged: bool,
    /// Bytes of each datagram in it but the last, where there are several (`UDP_GRO`).
    pub segment: Option<usize>,
}

impl Control {
    /// Reads messages as the kernel lays them out (`put_cmsg()` in net/core/scm.c): length with header as a `long`, level, type,
    /// data, filled up to the size of a `long`.
    #[inline]
    pub(super) fn read(mut rest: &[u8]) -> Control {
        const LONG: usize = size_of::<usize>();
        const HEADER: usize = LONG + 8;
        let mut control = Control::default();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let length = usize::from_ne_bytes(*length);
            let (Some(level), Some(kind)) = (int(behind, 0), int(behind, 4)) else { break };
            let Some(data) = rest.get(HEADER..length) else { break };
            match (level, kind) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => control.auxiliary(data),
                (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => control.time = timestamp(data),
                (libc::SOL_UDP, UDP_GRO) => {
                    let bytes = int(data, 0).and_then(|bytes| usize::try_from(bytes).ok());
                    control.segment = bytes.filter(|bytes| *bytes > 0);
                }
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(LONG)..).unwrap_or_default();
        }
        control
    }

    /// `struct tpacket_auxdata`.
    #[inline]
    fn auxiliary(&mut self, data: &[u8]) {
        let half = |at: usize| Some(u16::from_ne_bytes(*data.get(at..)?.first_chunk()?));
        let (Some(status), Some(tci), Some(tpid)) = (int(data, 0), half(16), half(18)) else { return };
        let status = status.cast_unsigned();
        self.is_merged = status & GSO_TCP != 0;
        if status & VLAN_VALID != 0 {
            // Kernels before 3.14 do not say it, and take off no other.
            let tpid = if status & TPID_VALID != 0 { EtherType(tpid) } else { EtherType::VLAN };
            self.tag = Some(Tag { tpid, tci: Tci(tci) });
        }
    }
}

/// `struct timespec`, of two `long`s.
fn timestamp(data: &[u8]) -> Option<Duration> {
    let (seconds, nanoseconds) = data.split_first_chunk()?;
    let nanoseconds = isize::from_ne_bytes(*nanoseconds.first_chunk()?);
    let nanoseconds = u32::try_from(nanoseconds).ok().filter(|n| *n < 1_000_000_000)?;
    Some(Duration::new(u64::try_from(isize::from_ne_bytes(*seconds)).ok()?, nanoseconds))
}

#[inline]
fn int(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let header = size_of::<usize>() + 8;
        let mut message = (header + data.len()).to_ne_bytes().to_vec();
        message.extend(level.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(data);
        message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
        message
    }

    fn auxiliary(status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let mut data = [status, 60, 60, 0].map(u32::to_ne_bytes).concat();
        data.extend(tci.to_ne_bytes());
        data.extend(tpid.to_ne_bytes());
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &data)
    }

    fn tag(tpid: u16, tci: u16) -> Option<Tag> {
        Some(Tag { tpid: EtherType(tpid), tci: Tci(tci) })
    }

    #[test]
    fn tags_times_and_segments_are_read() {
        let time = [1_732_231_180_isize, 7].map(isize::to_ne_bytes).concat();
        let mut bytes = message(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &time);
        bytes.extend(auxiliary(VLAN_VALID | TPID_VALID | GSO_TCP, 0x6064, 0x88a8));
        bytes.extend(message(libc::SOL_UDP, UDP_GRO, &1400_i32.to_ne_bytes()));
        let time = Some(Duration::new(1_732_231_180, 7));
        let expected = Control { tag: tag(0x88a8, 0x6064), time, is_merged: true, segment: Some(1400) };
        assert_eq!(Control::read(&bytes), expected);
        assert_eq!(Control::read(&auxiliary(VLAN_VALID, 35, 0)).tag, tag(0x8100, 35));
        // VLAN id 0 is a tag as well; only the status says so.
        assert_eq!(Control::read(&auxiliary(VLAN_VALID | TPID_VALID, 0, 0x8100)).tag, tag(0x8100, 0));
        assert_eq!(Control::read(&auxiliary(1, 35, 0x8100)), Control::default());
    }

    proptest! {
        #[test]
        fn no_control_message_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..128), cut in 0..160_usize) {
            let _ = Control::read(&bytes);
            bytes.splice(0..0, auxiliary(VLAN_VALID, 1, 2));
            let _ = Control::read(&bytes[..cut.min(bytes.len())]);
        }
    }
}
