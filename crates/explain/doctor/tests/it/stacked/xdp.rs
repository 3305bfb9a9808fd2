//! `tags-hidden` and `xdp-generic-only`.

use super::*;

/// `ip -d link` with an XDP program on eth0, in iproute2's words (ip/iplink_xdp.c, xdp_dump).
fn with_program(text: &str, mode: &str) -> String {
    text.replacen("mtu 1500 qdisc mq", &format!("mtu 1500 {mode} qdisc mq"), 1).replacen(
        "gso_max_segs 65535",
        "gso_max_segs 65535 \n    prog/xdp id 41 name steer tag 3b185187f1855c4c jited",
        1,
    )
}

const STRIPS: [(&str, &str); 2] = [("rx-vlan-offload", "on"), ("rx-vlan-stag-hw-parse", "off [fixed]")];

fn tagged(kind: &str) -> String {
    links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, kind)]) + &driver("eth0", "igb")
}

#[test]
fn a_program_that_does_not_see_the_tags() {
    let text = with_program(&tagged(Q35), "xdp") + &features("eth0", &STRIPS);
    let finding = one(&report(&text), "tags-hidden");
    assert_eq!(
        (weight(&finding), finding.interface.as_deref()),
        ((Severity::Warning, Certainty::Possible), Some("eth0"))
    );
    assert!(quotes(&finding, "rx-vlan-offload: on") && quotes(&finding, "id 35"));
    assert_eq!(commands(&finding, System::Linux), ["ethtool -K eth0 rxvlan off"]);
    // Tags of 0x88a8 are another feature.
    let text = with_program(&tagged(AD100), "xdp") + &features("eth0", &STRIPS);
    assert_eq!(outcome(&report(&text), "tags-hidden").0, Outcome::Clear);
}

#[test]
fn rxlane_s_own_program_without_the_tags() {
    let status = |mode: &str| {
        format!(
            "{{\"schema\":\"rxlane.steer/1\",\"interface\":\"eth0\",\"mode\":\"{mode}\",\"cpus\":[],\"reasons\":[]}}\n"
        )
    };
    let text = with_program(&tagged(Q35), "xdp") + &features("eth0", &STRIPS);
    let finding = one(&report(&(text.clone() + &status("native"))), "tags-hidden");
    assert_eq!(weight(&finding), (Severity::Warning, Certainty::Possible));
    assert!(
        states(&finding, "SteeringWithoutTag") && quotes(&finding, "\"mode\": \"native\""),
        "{finding:#?}"
    );
    let last = finding.remedies[0].commands.last().map(String::as_str);
    assert_eq!(last, Some("rxlane steer up eth0 --disable-rxvlan"));
    // Another's program, and one after which the tag is still beside the frame.
    for mode in ["off", "generic"] {
        let finding = one(&report(&(text.clone() + &status(mode))), "tags-hidden");
        assert_eq!(commands(&finding, System::Linux), ["ethtool -K eth0 rxvlan off"], "{mode}");
    }
}

#[test]
fn stripping_without_a_program() {
    let plain = tagged(Q35) + &features("eth0", &STRIPS);
    assert_eq!(outcome(&report(&plain), "tags-hidden").0, Outcome::Clear);
    // PPPoE in a VLAN is what steering by XDP is for.
    let pppoe = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("ppp0", 1492, "ppp")])
        + SESSION
        + &features("eth0", &STRIPS);
    let finding = one(&report(&pppoe), "tags-hidden");
    assert_eq!((finding.severity, finding.remedies.len()), (Severity::Info, 0));
    assert_eq!(
        outcome(&report(&tagged(Q35)), "tags-hidden"),
        (Outcome::InsufficientData, vec!["ethtool -k eth0".to_owned()])
    );
    let untagged = links(&[("eth0", 1500, "")]) + &features("eth0", &STRIPS);
    assert_eq!(outcome(&report(&untagged), "tags-hidden").0, Outcome::DoesNotApply);
}

#[test]
fn a_program_in_generic_mode() {
    let generic =
        |name: &str| with_program(&links(&[("eth0", 1500, "")]), "xdpgeneric") + &driver("eth0", name);
    let native = one(&report(&generic("igb")), "xdp-generic-only");
    assert_eq!(weight(&native), (Severity::Warning, Certainty::Certain));
    assert!(quotes(&native, "xdpgeneric") && offers(&native, "AttachNative"));
    // tg3 has no native mode; of a driver without a profile nobody knows.
    for name in ["tg3", "cxgb4"] {
        let finding = one(&report(&generic(name)), "xdp-generic-only");
        assert_eq!((finding.severity, finding.remedies.len()), (Severity::Info, 0), "{name}");
    }
    let native = with_program(&links(&[("eth0", 1500, "")]), "xdp");
    assert_eq!(outcome(&report(&native), "xdp-generic-only").0, Outcome::Clear);
    assert_eq!(
        outcome(&report(&driver("eth0", "igb")), "xdp-generic-only"),
        (Outcome::InsufficientData, vec!["ip -d link show dev eth0".to_owned()])
    );
}
