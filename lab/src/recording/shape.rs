//! What repeats when an exchange is recorded again: which kinds of frames each station sends, in which order.
//!
//! Ids, ports, times and lengths differ from recording to recording, and so do how many segments and acknowledgements
//! a transfer takes, how often a request goes out that nobody has heard yet, which of several negotiations at once is
//! ahead, and what comes by the clock (listener reports, solicitations, probes of a neighbour that has been silent).
//! The shape has none of that.

use super::tshark::{self, Fields};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

const BROADCAST: &str = "ff:ff:ff:ff:ff:ff";

/// A line for the order of the exchange's parts, then one for each protocol, tags and sender with the kinds of frames
/// in the order in which they first came.
///
/// # Errors
///
/// tshark cannot be run, fails, or answers in another form.
pub fn of(tshark: &Path, capture: &Path) -> Result<Vec<String>> {
    let mut shape = Shape::default();
    for (place, fields) in tshark::frames(tshark, capture)?.iter().enumerate() {
        shape.add(fields).with_context(|| format!("{}: frame {}", capture.display(), place + 1))?;
    }
    Ok(shape.lines())
}

#[derive(Debug, Default)]
struct Shape {
    parts: Vec<String>,
    kinds: BTreeMap<String, Vec<String>>,
}

impl Shape {
    fn add(&mut self, fields: &Fields) -> Result<()> {
        let (stack, tags) = (fields.stack()?, fields.tags()?);
        let kinds = kinds(&stack, fields)?;
        let Some(first) = kinds.first() else { return Ok(()) };
        let mut conversation = format!("{tags} {}", stack.join(":"));
        if first.starts_with("echo") {
            // Both stations ask by their own clocks.
            conversation.push_str(&format!(" {first}"));
        } else {
            let part = part(&stack);
            if self.parts.last() != Some(&part) {
                self.parts.push(part);
            }
        }
        let sender = fields.first("eth.src").context("no sender")?;
        let known = self.kinds.entry(format!("{conversation} of {sender}")).or_default();
        for kind in kinds {
            if !known.contains(&kind) {
                known.push(kind);
            }
        }
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let kinds = self.kinds.iter().map(|(name, kinds)| format!("{name}: {}", kinds.join(", ")));
        [format!("parts: {}", self.parts.join(", "))].into_iter().chain(kinds).collect()
    }
}

/// Which part of an exchange a frame belongs to. The protocols of PPP's network phase talk at once.
fn part(stack: &[&str]) -> String {
    let last = stack.last().copied().unwrap_or_default();
    if ["ipcp", "ipv6cp", "ccp"].contains(&last) {
        return "network".to_owned();
    }
    match stack.iter().position(|name| ["ip", "ipv6"].contains(name)) {
        Some(network) => stack.get(network..).unwrap_or_default().join(":"),
        None => last.to_owned(),
    }
}

/// What the frame is; several things for a segment, none for what comes by the clock or by chance.
fn kinds(stack: &[&str], fields: &Fields) -> Result<Vec<String>> {
    let number = |name: &str| -> Result<u32> {
        let text = fields.first(name).with_context(|| format!("no {name}"))?;
        match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => text.parse(),
        }
        .with_context(|| format!("{name} {text}"))
    };
    let last = stack.last().copied().unwrap_or_default();
    let kind = match last {
        "pppoed" => {
            let code = match number("pppoe.code")? {
                0x09 => "PADI",
                0x07 => "PADO",
                0x19 => "PADR",
                0x65 => "PADS",
                0xa7 => "PADT",
                _ => "other",
            };
            let room = fields.first("pppoed.tags.max_payload").map_or("", |_| " with PPP-Max-Payload");
            return Ok(vec![format!("{code}{room}")]);
        }
        "lcp" | "ipcp" | "ipv6cp" | "ccp" => match number("ppp.code")? {
            1 => "configure-request",
            2 => "configure-ack",
            3 => "configure-nak",
            4 => "configure-reject",
            5 => "terminate-request",
            6 => "terminate-ack",
            7 => "code-reject",
            8 => "protocol-reject",
            9 => "echo-request",
            10 => "echo-reply",
            _ => "other",
        },
        "pap" => match number("pap.code")? {
            1 => "authenticate-request",
            2 => "authenticate-ack",
            3 => "authenticate-nak",
            _ => "other",
        },
        "chap" => match number("chap.code")? {
            1 => "challenge",
            2 => "response",
            3 => "success",
            4 => "failure",
            _ => "other",
        },
        "arp" if number("arp.opcode")? == 1 && fields.first("eth.dst") == Some(BROADCAST) => "request",
        "arp" => return Ok(Vec::new()),
        "icmp" => match number("icmp.type")? {
            0 => "reply",
            8 => "request",
            _ => "other",
        },
        "icmpv6" => match number("icmpv6.type")? {
            128 => "request",
            129 => "reply",
            // Listener reports (RFC 3810) and neighbour discovery (RFC 4861).
            130..=137 | 143 => return Ok(Vec::new()),
            _ => "other",
        },
        "tcp" => return Ok(marks(number("tcp.flags")?, number("tcp.len")?)),
        "udp" => "datagram",
        _ => "packet",
    };
    Ok(vec![kind.to_owned()])
}

/// A segment by what repeats of it (RFC 9293 section 3.1); a mere acknowledgement is nothing.
fn marks(flags: u32, bytes: u32) -> Vec<String> {
    let marks = [
        (flags & 0x04 != 0, "RST"),
        (flags & 0x02 != 0, "SYN"),
        (bytes > 0, "data"),
        (flags & 0x01 != 0, "FIN"),
    ];
    marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tshark::frame;
    use super::*;

    fn shape(frames: &[Fields]) -> Vec<String> {
        let mut shape = Shape::default();
        for frame in frames {
            shape.add(frame).expect("a frame");
        }
        shape.lines()
    }

    fn control(sender: &str, protocol: &str, code: &str) -> Fields {
        let protocols = format!("eth:ethertype:pppoes:ppp:{protocol}");
        frame(&[("frame.protocols", &protocols), ("eth.src", sender), ("ppp.code", code)])
    }

    fn segment(sender: &str, flags: &str, bytes: &str) -> Fields {
        frame(&[
            ("frame.protocols", "eth:ethertype:ip:tcp"),
            ("eth.src", sender),
            ("tcp.flags", flags),
            ("tcp.len", bytes),
        ])
    }

    #[test]
    fn repeated_and_interleaved_negotiations_have_one_shape() {
        let [a, b] = ["a", "b"];
        let prompt = [
            control(a, "lcp", "1"),
            control(b, "lcp", "2"),
            control(a, "ipcp", "1"),
            control(a, "ipv6cp", "1"),
            control(a, "lcp", "9"),
            control(a, "lcp", "5"),
        ];
        let slow = [
            control(a, "lcp", "1"),
            control(a, "lcp", "1"),
            control(b, "lcp", "2"),
            control(a, "ipv6cp", "1"),
            control(a, "lcp", "9"),
            control(a, "ipcp", "1"),
            control(a, "lcp", "9"),
            control(a, "lcp", "5"),
        ];
        let lines = shape(&prompt);
        assert_eq!(lines, shape(&slow));
        assert_eq!(lines[0], "parts: lcp, network, lcp");
        assert!(
            lines.contains(
                &"untagged eth:pppoes:ppp:lcp of a: configure-request, terminate-request".to_owned()
            )
        );
        let refused = [control(a, "lcp", "1"), control(b, "lcp", "4"), control(a, "lcp", "5")];
        assert_ne!(lines, shape(&refused));
        assert_ne!(lines, shape(&prompt[..5]), "no end");
    }

    #[test]
    fn a_transfer_has_the_same_shape_in_however_many_segments() {
        let many = [
            segment("a", "0x0002", "0"),
            segment("b", "0x0012", "0"),
            segment("a", "0x0010", "0"),
            segment("b", "0x0018", "1440"),
            segment("b", "0x0018", "60"),
            segment("b", "0x0011", "0"),
        ];
        let few = [segment("a", "0x0002", "0"), segment("b", "0x0012", "0"), segment("b", "0x0019", "1500")];
        assert_eq!(shape(&many), shape(&few));
        assert_eq!(
            shape(&few),
            ["parts: ip:tcp", "untagged eth:ip:tcp of a: SYN", "untagged eth:ip:tcp of b: SYN, data, FIN"]
        );
        assert_ne!(shape(&few), shape(&few[..2]), "no data");
    }

    #[test]
    fn what_the_clock_triggers_has_no_part_in_it() {
        let report = frame(&[
            ("frame.protocols", "eth:ethertype:ipv6:ipv6.hopopts:icmpv6"),
            ("eth.src", "a"),
            ("icmpv6.type", "143"),
        ]);
        let arp = |destination: &str| {
            frame(&[
                ("frame.protocols", "eth:ethertype:arp"),
                ("eth.src", "a"),
                ("eth.dst", destination),
                ("arp.opcode", "1"),
            ])
        };
        assert_eq!(shape(&[report, arp("b")]), ["parts: "]);
        assert_eq!(shape(&[arp(BROADCAST)]), ["parts: arp", "untagged eth:arp of a: request"]);
    }
}
