//! `tags-hidden` and `xdp-generic-only`.

use super::*;

const STRIPS: [(&str, &str); 2] = [("rx-vlan-offload", "on"), ("rx-vlan-stag-hw-parse", "off [fixed]")];

fn tagged(kind: &str) -> String {
    links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, kind)]) + &driver("eth0", "igb")
}

#[test]
fn a_program_that_does_not_see_the_tags() {
    let text = with_program(&tagged(Q35), "xdp") + &features("eth0", &STRIPS);
    let finding = one(&text, "tags-hidden");
    assert_eq!(about(&finding), (MAYBE, "eth0"));
    quotes(&finding, "rx-vlan-offload: on");
    quotes(&finding, "id 35");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -K eth0 rxvlan off"]);
    // Tags of 0x88a8 are another feature.
    let text = with_program(&tagged(AD100), "xdp") + &features("eth0", &STRIPS);
    came_to(&text, "tags-hidden", Outcome::Clear);
}

#[test]
fn rxlane_s_own_program_without_the_tags() {
    let status = |mode: &str| {
        format!(
            "{{\"schema\":\"rxlane.steer/1\",\"interface\":\"eth0\",\"mode\":\"{mode}\",\"cpus\":[],\"reasons\":[]}}\n"
        )
    };
    let text = with_program(&tagged(Q35), "xdp") + &features("eth0", &STRIPS);
    let finding = weighed(&(text.clone() + &status("native")), "tags-hidden", MAYBE);
    states(&finding, "SteeringWithoutTag");
    quotes(&finding, "\"mode\": \"native\"");
    let last = finding.remedies[0].commands.last().map(String::as_str);
    assert_eq!(last, Some("rxlane steer up eth0 --disable-rxvlan"));
    // Another's program, and one after which the tag is still beside the frame.
    for mode in ["off", "generic"] {
        let finding = one(&(text.clone() + &status(mode)), "tags-hidden");
        assert_eq!(commands(&finding, System::Linux), ["ethtool -K eth0 rxvlan off"], "{mode}");
    }
}

#[test]
fn stripping_without_a_program() {
    let plain = tagged(Q35) + &features("eth0", &STRIPS);
    came_to(&plain, "tags-hidden", Outcome::Clear);
    // PPPoE in a VLAN is what steering by XDP is for.
    let pppoe = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("ppp0", 1492, "ppp")])
        + SESSION
        + &features("eth0", &STRIPS);
    let finding = one(&pppoe, "tags-hidden");
    assert_eq!((finding.severity, finding.remedies.len()), (Severity::Info, 0));
    insufficient(&tagged(Q35), "tags-hidden", &["ethtool -k eth0"]);
    let untagged = links(&[("eth0", 1500, "")]) + &features("eth0", &STRIPS);
    came_to(&untagged, "tags-hidden", Outcome::DoesNotApply);
}

#[test]
fn a_program_in_generic_mode() {
    let generic =
        |name: &str| with_program(&links(&[("eth0", 1500, "")]), "xdpgeneric") + &driver("eth0", name);
    let native = weighed(&generic("igb"), "xdp-generic-only", LIMITS);
    quotes(&native, "xdpgeneric");
    offers(&native, "AttachNative");
    // tg3 has no native mode; of a driver without a profile nobody knows.
    for name in ["tg3", "cxgb4"] {
        let finding = one(&generic(name), "xdp-generic-only");
        assert_eq!((finding.severity, finding.remedies.len()), (Severity::Info, 0), "{name}");
    }
    let native = with_program(&links(&[("eth0", 1500, "")]), "xdp");
    came_to(&native, "xdp-generic-only", Outcome::Clear);
    insufficient(&driver("eth0", "igb"), "xdp-generic-only", &["ip -d link show dev eth0"]);
}
