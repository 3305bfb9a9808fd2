//! Why a frame or packet went no further.

use std::fmt;

macro_rules! reasons {
    ($($(#[$text:meta])+ $name:ident = $word:literal,)+) => {
        /// Why a frame or packet went no further. Each is counted by itself ([`crate::Counters`]).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Dropped {
            $($(#[$text])+ $name,)+
        }

        impl Dropped {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Dropped] = &[$(Dropped::$name,)+];

            /// The word for it in scripted output.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Dropped::$name => $word,)+
                }
            }
        }
    };
}

reasons! {
    /// Received: it ends inside a header.
    Short = "short",
    /// Received: a tag is missing, or has another TPID or VID.
    OtherVlan = "other-vlan",
    /// Either way: another tag under those of the link, so that it belongs to another link.
    MoreTags = "more-tags",
    /// Received: what stands under the tags is no PPPoE session frame (EtherType 0x8864).
    NotPppoe = "not-pppoe",
    /// Received: PPPoE version or type is not 1.
    PppoeVersion = "pppoe-version",
    /// Received: a PPPoE code other than 0 (RFC 2516 section 6).
    PppoeCode = "pppoe-code",
    /// Received: another PPPoE session.
    OtherSession = "other-session",
    /// Received: this session, but from another station than the peer.
    OtherPeer = "other-peer",
    /// Received: this session, but for another station.
    OtherStation = "other-station",
    /// Received: the PPPoE length exceeds the frame.
    PppoeLength = "pppoe-length",
    /// Received: a compressed PPP protocol field, which PPPoE forbids (RFC 2516 section 7).
    PppCompressed = "ppp-compressed",
    /// Received: LCP, authentication or a network control protocol, which a fixed session has nobody for.
    PppControl = "ppp-control",
    /// Received: a PPP protocol that is neither IP nor control.
    PppProtocol = "ppp-protocol",
    /// Either way: the IP version is none, or not the one announced.
    IpVersion = "ip-version",
    /// Received: an IP length that exceeds the frame or is less than its own header.
    IpLength = "ip-length",
    /// Either way: longer than the buffer, or than the PPPoE length can count.
    TooLong = "too-long",
    /// Received: the kernel handed over a super-packet that cannot be taken apart.
    SuperPacket = "super-packet",
    /// Received: the queue of the packet socket was full.
    SocketFull = "socket-full",
    /// Received: the interface of the link is down or did not take it.
    InterfaceRefused = "interface-refused",
    /// Received: the inner source address is none of the subscriber's.
    OtherSource = "other-source",
    /// Either way: more than the subscriber's rate.
    OverRate = "over-rate",
    /// To be sent: no subscriber has the destination.
    NoSubscriber = "no-subscriber",
    /// To be sent: longer than the subscriber takes, and not to be fragmented; its sender is informed.
    PathMtu = "path-mtu",
    /// To be sent: longer than the parent's MTU allows (EMSGSIZE).
    ParentMtu = "parent-mtu",
    /// To be sent: longer than a frame of the XDP socket, which was made for the MTU that the parent had when the link came up.
    XdpFrame = "xdp-frame",
    /// To be sent: the queue of the parent was full (ENOBUFS, EAGAIN).
    ParentFull = "parent-full",
    /// To be sent: the parent is down or removed (ENETDOWN, ENXIO).
    ParentDown = "parent-down",
    /// To be sent: the parent refused it for another reason.
    ParentRefused = "parent-refused",
}

impl Dropped {
    pub(crate) const COUNT: usize = Dropped::ALL.len();
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_in_the_documentation() {
        let page = include_str!("../../../../docs/links/usage.md");
        for reason in Dropped::ALL {
            assert!(page.contains(&format!("| `{reason}` | ")), "{reason}");
        }
    }

    #[test]
    fn words_are_distinct_and_places_are_numbers() {
        let mut words: Vec<&str> = Dropped::ALL.iter().map(|reason| reason.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Dropped::COUNT);
        for (place, reason) in Dropped::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place, "{reason}");
        }
    }
}
