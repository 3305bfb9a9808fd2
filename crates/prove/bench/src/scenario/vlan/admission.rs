//! Which frames an interface of MTU 1500 admits: the sizes that tags make of full packets.

use super::super::Error;
use super::super::pair::{Pair, WAN};
use super::super::report::Fact;
use kernel::socket::{Transmit, TransmitError};
use std::thread::sleep;
use std::time::Duration;

/// Bytes of the frames, FCS included: a full packet with no tag to three (the NTT slides' 1518 to 1530).
const SIZES: [usize; 4] = [1518, 1522, 1526, 1530];
const FCS: usize = 4;
/// MTU of the end that receives, and of the one that sends, which lets all of them out.
const MTU: u16 = 1500;
const SENDS: u16 = 1600;
/// How long what was sent has for its way; veth hands it over within the call that sends.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

/// Sends a frame of each size with each stack of tags (TPIDs `ad`, `q`), and checks whether the other end counts it.
pub fn facts<'a>(tags: impl Iterator<Item = (&'a str, &'a [(&'a str, u16)])>) -> Result<Vec<Fact>, Error> {
    let pair = Pair::new(1, MTU)?;
    pair.near.ip(&["link", "set", "dev", WAN, "mtu", &SENDS.to_string()])?;
    let mut facts = Vec::new();
    for (text, tags) in tags {
        for size in SIZES {
            let frame = frame(tags, size - FCS);
            // What the other end drops, the sender may hear of: the count decides.
            let before = pair.far.counter(WAN, "rx_packets")?;
            let sent = pair.near.inside(|| Transmit::open(WAN)?.send_once(&frame))?;
            sent.map_err(|error: TransmitError| Error::Failed(error.to_string()))?;
            sleep(ON_ITS_WAY);
            let is_in = pair.far.counter(WAN, "rx_packets")? > before;
            facts.push(Fact {
                question: format!("frame of {size} bytes, {text}, at a veth of MTU {MTU}"),
                answer: if is_in { "let in" } else { "dropped" }.to_owned(),
            });
        }
    }
    Ok(facts)
}

/// A frame of so many bytes without FCS, of no protocol that anybody answers.
fn frame(tags: &[(&str, u16)], bytes: usize) -> Vec<u8> {
    // Of nobody, to everybody.
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1]);
    for (tpid, vid) in tags {
        let tpid: u16 = if *tpid == "ad" { 0x88a8 } else { 0x8100 };
        frame.extend(tpid.to_be_bytes());
        frame.extend(vid.to_be_bytes());
    }
    // Local experimental EtherType 1 (IEEE 802-2014 clause 9.2.3).
    frame.extend([0x88, 0xb5]);
    frame.resize(bytes, 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{netns, require};

    #[test]
    fn veth_lets_in_a_tag_more_than_its_mtu() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let tags: [(&str, &[(&str, u16)]); 2] = [("no tag", &[]), ("two tags", &[("ad", 1), ("q", 2)])];
        let answers: Vec<String> =
            facts(tags.into_iter()).expect("answers").into_iter().map(|fact| fact.answer).collect();
        // is_skb_forwardable() of net/core/dev.c allows VLAN_HLEN whether or not there is a tag.
        assert_eq!(answers, ["let in", "let in", "dropped", "dropped"].repeat(2));
    }
}
