use super::*;
use crate::tests::{PEER, frame, framing, set_down, with_pair};
use kernel::socket::Transmit;
use std::time::{Duration, Instant};
use wire::ethernet::MacAddress;

/// Bytes from the EtherType under the tags on.
const PLAIN: [u8; 48] = {
    let mut bytes = [7; 48];
    (bytes[0], bytes[1]) = (8, 6);
    bytes
};

fn under(tags: &str, rest: &[u8]) -> Vec<u8> {
    let (ethertype, rest) = rest.split_first_chunk().expect("two");
    frame(MacAddress::BROADCAST, tags, u16::from_be_bytes(*ethertype), rest)
}

fn next(parent: &mut Parent) -> Option<Vec<u8>> {
    let until = Instant::now() + testkit::PATIENCE;
    while Instant::now() < until {
        match parent.receive().expect("received") {
            Arrival::Frame(received) => return Some(received.frame.to_vec()),
            Arrival::Nothing => std::thread::sleep(Duration::from_millis(1)),
            other => panic!("{other:?}"),
        }
    }
    None
}

#[test]
fn only_frames_of_the_link_arrive_with_every_tag() {
    with_pair(1600, |[near, _], [local, _]| {
        let pppoe = [&[0x88, 0x64, 0x11, 0, 0, 7, 0, 2][..], &[0; 12]].concat();
        let to_us = |frame: Vec<u8>| [&local.0[..], &frame[6..]].concat();
        let frames = [
            ("q:35", under("q:35", &PLAIN)),
            ("ad:100,q:200", under("ad:100,q:200", &PLAIN)),
            ("q:100,q:200", under("q:100,q:200", &PLAIN)),
            ("0x9100:1,q:2", under("0x9100:1,q:2", &PLAIN)),
            ("ad:1,ad:2,ad:3,q:4", under("ad:1,ad:2,ad:3,q:4", &PLAIN)),
            ("pppoe:7@02:00:5e:00:00:02", to_us(under("none", &pppoe))),
            ("ad:1,pppoe:7@02:00:5e:00:00:02", to_us(under("ad:1", &pppoe))),
            // Of no link: untagged, another session, to another station.
            ("", under("none", &PLAIN)),
            ("", under("none", &pppoe)),
            ("", to_us(under("none", &[&pppoe[..5], &[8], &pppoe[6..]].concat()))),
        ];
        let mut transmit = Transmit::open("far0").expect("a socket");
        for (link, own) in frames.iter().filter(|(link, _)| !link.is_empty()) {
            let framing = framing(link, local);
            let mut parent = Parent::open(near.index, &framing).expect("sockets");
            // The last one ends the list: nothing of the others is before or behind it.
            let all: Vec<&[u8]> = frames.iter().map(|(_, frame)| &frame[..]).chain([&own[..]]).collect();
            transmit.send(&all).expect("sent");
            assert_eq!(next(&mut parent).as_ref(), Some(own), "{link}");
            assert_eq!(next(&mut parent).as_ref(), Some(own), "{link}");
            assert!(matches!(parent.receive(), Ok(Arrival::Nothing)), "{link}");
            assert_eq!(parent.observer().expect("a descriptor").drops().expect("counted"), 0);
        }
    });
}

#[test]
fn a_managed_session_leaves_negotiation_to_the_control_socket() {
    with_pair(1600, |[near, _], [local, _]| {
        for link in ["none", "ad:1,q:2"] {
            let frame = |protocol: u16| {
                let [high, low] = protocol.to_be_bytes();
                let pppoe = [0x88, 0x64, 0x11, 0, 0, 7, 0, 6, high, low, 1, 2, 3, 4];
                [&local.0[..], &under(link, &pppoe)[6..]].concat()
            };
            let tags = link.replace("none", "").replace("q:2", "q:2,");
            let framing = framing(&format!("{tags}pppoe:7@{PEER}"), local);
            let frames = [0x0021, 0xc021, 0x8021, 0x8057, 0x0281, 0x2145, 0x0057].map(frame);
            let all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            for (framing, expected) in [
                (framing.clone(), all.clone()),
                // IP, and what is compressed, for it to be counted.
                (framing.managed(), vec![all[0], all[5], all[6]]),
            ] {
                let mut parent = Parent::open(near.index, &framing).expect("sockets");
                Transmit::open("far0").expect("a socket").send(&all).expect("sent");
                for frame in expected {
                    assert_eq!(next(&mut parent).as_deref(), Some(frame), "{link}");
                }
                assert!(matches!(parent.receive(), Ok(Arrival::Nothing)), "{link}");
            }
        }
    });
}

#[test]
fn frames_that_the_mtu_forbids_are_distinguished() {
    with_pair(1500, |[near, _], [local, _]| {
        // Linux lets a frame be four bytes longer whose outermost TPID is 0x8100.
        for (link, most) in [("q:35", 1500), ("q:1,q:2", 1496), ("ad:100,q:200", 1492), ("ad:1", 1496)] {
            let framing = framing(link, local);
            let longest = crate::frame_size::longest_mtu(near.mtu, framing.encapsulation());
            assert_eq!(longest, most, "{link}");
            let parent = Parent::open(near.index, &framing).expect("sockets");
            for (size, expected) in [(most, Ok(())), (most + 1, Err(Dropped::ParentMtu))] {
                let frame = under(link, &[&[8, 0][..], &vec![0x45; size as usize]].concat());
                assert_eq!(parent.send(&frame[..12], &frame[12..]), expected, "{link} {size}");
            }
        }
        set_down("near0");
        let parent = Parent::open(near.index, &framing("q:35", local)).expect("sockets");
        let frame = under("q:35", &PLAIN);
        assert_eq!(parent.send(&frame, &[]), Err(Dropped::ParentDown));
    });
}

/// Sends a frame with a virtio header, as a machine's own stack hands one to a card: to be segmented, to be summed.
pub(crate) fn send_with_header(interface: u32, header: &NetHeader, frame: &[u8]) -> io::Result<()> {
    let socket = Packet::open_blocking()?;
    socket.turn_on(Flag::NetHeader)?;
    socket.bind_to_send(interface)?;
    let bytes = header.bytes();
    rustix::io::writev(&socket, &[IoSlice::new(&bytes), IoSlice::new(frame)])?;
    Ok(())
}
