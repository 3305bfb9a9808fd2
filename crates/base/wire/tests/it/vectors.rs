//! `vectors/frames`: frames that every parser of the project must read alike.
//!
//! `RXLANE_WRITE_VECTORS=1 cargo test -p rxlane-wire --test it vectors` writes the file anew after a frame of
//! `frames.rs` has changed; look at the difference, and at what another dissector says of it.

use crate::frames::*;
use rxlane_wire::emit::{Fragment, Ipv4};
use rxlane_wire::error::Layer;
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::{Fragment as Place, IpProtocol, Link, dissect};
use std::fmt::Write;
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../vectors/frames/valid.csv")
}

const HEAD: &str = "\
# Frames without a defect, from the first byte of the named link type on, without FCS; bytes in hexadecimal.
# stack: headers, outermost first. Flow: the first IP header's, ports empty where the packet has none.
# fragment: none, first or later; offsets count bytes from the start to the IP header and to the transport header.
# Source: built by crates/base/wire/tests/it/frames.rs from the specifications named in crates/base/wire/src/emit. tshark
# 4.0.17 reads the same headers, but for the TPIDs 0x9200 and 0x9300, which it does not know.
name,link,bytes,stack,source,source_port,destination,destination_port,protocol,fragment,network,transport
";

/// The corpus, and the places of a packet among fragments under PPPoE.
fn all() -> Vec<Built> {
    let mut all = corpus();
    let places = [
        (["first fragment 4", "first fragment 6"], 0, true),
        (["middle fragment 4", "middle fragment 6"], 6, true),
        (["last fragment 4", "last fragment 6"], 12, false),
    ];
    for ([name4, name6], offset, more) in places {
        let data = |name| Built::payload(name, 28).udp();
        let header =
            Ipv4 { total_length: 56, fragment_offset: offset, more_fragments: more, ..ipv4(IpProtocol::UDP) };
        let v4 = data(name4).bound(Layer::Ipv4, &header).ppp(PppProtocol::IPV4);
        all.push(v4.pppoe().ethernet(EtherType::PPPOE_SESSION));
        let header = Fragment { next_header: IpProtocol::UDP, offset, more, identification: 7 };
        let v6 = data(name6).wrap(Layer::Fragment, &header).ipv6(IpProtocol::FRAGMENT).ppp(PppProtocol::IPV6);
        all.push(v6.pppoe().tag(35, EtherType::PPPOE_SESSION).ethernet(EtherType::VLAN));
    }
    all
}

fn link_name(link: Link) -> &'static str {
    match link {
        Link::Ethernet => "ethernet",
        Link::LinuxCooked => "cooked1",
        Link::LinuxCooked2 => "cooked2",
        Link::Ip => "ip",
        Link::Ppp => "ppp",
        Link::PppOverEthernet => "pppoe",
    }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// What the dissection says of a frame, as the columns behind its bytes.
fn answer(link: Link, bytes: &[u8]) -> String {
    let seen = dissect(link, bytes, bytes.len());
    assert_eq!(seen.error(), None);
    let flow = seen.flow();
    let fragment = match seen.fragment() {
        Place::None => "none",
        Place::First => "first",
        Place::Later => "later",
    };
    [
        seen.stack().to_string(),
        optional(flow.map(|flow| flow.source())),
        optional(flow.and_then(|flow| flow.source_port())),
        optional(flow.map(|flow| flow.destination())),
        optional(flow.and_then(|flow| flow.destination_port())),
        optional(flow.map(|flow| flow.protocol())),
        fragment.to_owned(),
        optional(seen.network_offset()),
        optional(seen.transport_offset()),
    ]
    .join(",")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn every_vector_is_read_as_it_says() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path())?;
    let mut frames = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let mut columns = line.splitn(4, ',');
        let mut column = || columns.next().ok_or(line);
        let (name, link, bytes, expected) = (column()?, column()?, column()?, column()?);
        let links = [
            Link::Ethernet,
            Link::LinuxCooked,
            Link::LinuxCooked2,
            Link::Ip,
            Link::Ppp,
            Link::PppOverEthernet,
        ];
        let link = links.into_iter().find(|known| link_name(*known) == link).ok_or(line)?;
        let bytes = (0..bytes.len() / 2)
            .map(|at| u8::from_str_radix(&bytes[2 * at..2 * at + 2], 16))
            .collect::<Result<Vec<u8>, _>>()?;
        assert_eq!(answer(link, &bytes), expected, "{name}");
        frames += 1;
    }
    assert_eq!(frames, all().len());
    Ok(())
}

#[test]
fn the_vectors_are_what_is_emitted() -> std::io::Result<()> {
    let mut text = HEAD.to_owned();
    for built in all() {
        let (bytes, answer) = (hexadecimal(&built.bytes), answer(built.link, &built.bytes));
        let _ = writeln!(text, "{},{},{bytes},{answer}", built.name, link_name(built.link));
    }
    if std::env::var_os("RXLANE_WRITE_VECTORS").is_some() {
        std::fs::write(path(), &text)?;
    }
    let committed = std::fs::read_to_string(path())?;
    let other = committed.lines().zip(text.lines()).find(|(committed, emitted)| committed != emitted);
    assert_eq!(other, None, "committed and emitted; RXLANE_WRITE_VECTORS=1 writes the file anew");
    assert_eq!(committed, text);
    Ok(())
}
