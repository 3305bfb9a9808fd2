//! `tags-hidden` and `xdp-generic-only`.

use super::*;

#[test]
fn programs_that_do_not_see_the_tags() {
    let id = "tags-hidden";
    let tagged =
        |kind: &str| links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, kind)]) + &driver("eth0", "igb");
    let strips = features("eth0", &[("rx-vlan-offload", "on"), ("rx-vlan-stag-hw-parse", "off [fixed]")]);
    let text = with_program(&tagged(Q35), "xdp") + &strips;
    let rxlane = |mode: &str| {
        format!(
            "{text}{{\"schema\":\"rxlane.steer/1\",\"interface\":\"eth0\",\"mode\":\"{mode}\",\"cpus\":[],\"reasons\":[]}}\n"
        )
    };
    let pppoe = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("ppp0", 1492, "ppp")]) + SESSION;
    let off = "=Linux: ethtool -K eth0 rxvlan off";
    all_answer(&[
        (&text, id, MAYBE, &["=on eth0", "rx-vlan-offload: on", "id 35", off]),
        // Tags of 0x88a8 are another feature.
        (&(with_program(&tagged(AD100), "xdp") + &strips), id, CLEAR, &[]),
        (
            &rxlane("native"),
            id,
            MAYBE,
            &["SteeringWithoutTag", "\"mode\": \"native\"", "rxlane steer up eth0 --disable-rxvlan"],
        ),
        // Another's program, and one after which the tag is still outside the frame.
        (&rxlane("off"), id, MAYBE, &[off]),
        (&rxlane("generic"), id, MAYBE, &[off]),
        // Stripping without a program. PPPoE in a VLAN is what steering by XDP is for.
        (&(tagged(Q35) + &strips), id, CLEAR, &[]),
        (&(pppoe + &strips), id, CALM, &["=remedies: 0"]),
        (&tagged(Q35), id, LACKS, &["ethtool -k eth0"]),
        (&(links(&[("eth0", 1500, "")]) + &strips), id, NOT_HERE, &[]),
    ]);
}

#[test]
fn a_program_in_generic_mode() {
    let id = "xdp-generic-only";
    let eth0 = links(&[("eth0", 1500, "")]);
    let generic = |name: &str| with_program(&eth0, "xdpgeneric") + &driver("eth0", name);
    all_answer(&[
        (&generic("igb"), id, LIMITS, &["xdpgeneric", "offers AttachNative"]),
        // tg3 has no native mode; of a driver without a profile nobody knows.
        (&generic("tg3"), id, CALM, &["=remedies: 0"]),
        (&generic("cxgb4"), id, CALM, &["=remedies: 0"]),
        (&with_program(&eth0, "xdp"), id, CLEAR, &[]),
        (&driver("eth0", "igb"), id, LACKS, &["ip -d link show dev eth0"]),
    ]);
}
