//! The arithmetic of stacked devices against what was seen: the table of the field report, and the profiles.

use rxlane_nic::stacked::{
    Adapter, DeviceKind, Feature, KernelRules, Row, Rule, Stack, TagLimit, Verdict, Walk, answer,
};
use rxlane_nic::{Key, Profile, builtin, lookup, schema};

const QINQ: &str = "ad:100,q:200";

fn rows(adapter: &Adapter, rules: &KernelRules, stack: &str) -> [Row; 8] {
    answer(adapter, rules, &stack.parse().unwrap())
}

fn row(rows: &[Row; 8], feature: Feature) -> Row {
    *rows.iter().find(|row| row.feature == feature).unwrap()
}

fn kind(kind: DeviceKind, rules: &KernelRules, stack: &str, feature: Feature) -> Verdict {
    row(&rows(&Adapter::of_kind(kind), rules, stack), feature).decision.verdict
}

fn nic(name: &str, rules: &KernelRules, stack: &str) -> [Row; 8] {
    let profile = lookup(name).unwrap();
    let parsed: Stack = stack.parse().unwrap();
    rows(&Adapter::of(&profile, rules, parsed.tpids(), parsed.has_pppoe()), rules, stack)
}

fn of_nic(name: &str, rules: &KernelRules, stack: &str, feature: Feature) -> (Verdict, Option<Rule>) {
    let decision = row(&nic(name, rules, stack), feature).decision;
    (decision.verdict, decision.rule)
}

/// T. Makita, Stacked Vlan, summary: a tag of 802.1Q in one of 802.1ad, on Linux 3.10 and 4.7. "Driver" and "device"
/// are its "depends on".
#[test]
fn the_table_of_the_field_report_follows_from_the_rules() {
    use DeviceKind::{HwCsum, IpCsum};
    use Verdict::{Device, Driver, No, Yes};
    let table = [
        (Feature::TxChecksum, HwCsum, No, Yes),
        (Feature::TxChecksum, IpCsum, No, Driver),
        (Feature::Gso, HwCsum, No, Yes),
        (Feature::Gso, IpCsum, No, Yes),
        (Feature::Tso, HwCsum, No, Driver),
        (Feature::Tso, IpCsum, No, Driver),
        (Feature::RxChecksum, HwCsum, Yes, Yes),
        (Feature::RxChecksum, IpCsum, Device, Device),
        (Feature::Rss, HwCsum, Device, Device),
        (Feature::Rss, IpCsum, Device, Device),
        (Feature::Rps, HwCsum, No, Yes),
        (Feature::Rps, IpCsum, No, Yes),
        (Feature::Gro, HwCsum, No, Yes),
        (Feature::Gro, IpCsum, No, Yes),
    ];
    for (feature, device, old, new) in table {
        let at = format!("{} {}", feature.label(), device.name());
        assert_eq!(kind(device, &KernelRules::v3_10(), QINQ, feature), old, "{at}, 3.10");
        assert_eq!(kind(device, &KernelRules::v4_7(), QINQ, feature), new, "{at}, 4.7");
    }
}

/// The same slides: what `ethtool -k` showed of a device with one tag and of one with two, on 3.10.
#[test]
fn on_3_10_one_tag_has_what_two_lack() {
    let sent = [Feature::TxChecksum, Feature::ScatterGather, Feature::Tso, Feature::Gso];
    for name in ["82599", "82576", "82574", "bnx2x", "connectx-3"] {
        for feature in sent {
            let one = of_nic(name, &KernelRules::v3_10(), "q:10", feature);
            assert_eq!(one.0, Verdict::Yes, "{name} {}", feature.label());
            let two = of_nic(name, &KernelRules::v3_10(), QINQ, feature);
            let rule = if feature == Feature::Gso { Rule::NeedsScatterGather } else { Rule::InheritsNothing };
            assert_eq!(two, (Verdict::No, Some(rule)), "{name} {}", feature.label());
        }
    }
}

/// "Let's enable the features then, but": the slides' igb and ixgbe write wrong checksums once features are inherited and
/// look-ups end at the first tag. The limit of 3.10 for several tags is lifted, too, for they look at drivers alone.
#[test]
fn inherited_features_alone_would_corrupt_double_tagged_frames() {
    let unlimited = KernelRules {
        inherits: true,
        tag_limit: TagLimit::UnlessDriverChecks,
        limit_keeps_ip: true,
        intersects: true,
        ..KernelRules::v3_10()
    };
    for name in ["82576", "i210", "82599", "x540"] {
        for stack in [QINQ, "q:1,q:2"] {
            let found = of_nic(name, &unlimited, stack, Feature::TxChecksum);
            assert_eq!(found, (Verdict::Broken, Some(Rule::LookupEnds)), "{name} {stack}");
        }
    }
    // The repair of 3.19 reaches who asks the kernel, and not who looks for himself.
    let repaired = KernelRules { protocol_walk: Walk::EveryTag, ..unlimited };
    assert_eq!(
        of_nic("82576", &repaired, QINQ, Feature::TxChecksum),
        (Verdict::Yes, Some(Rule::LookupFinds))
    );
    assert_eq!(of_nic("82599", &repaired, QINQ, Feature::TxChecksum).0, Verdict::Broken);
    // A device that gets the place needs no look-up.
    assert_eq!(of_nic("82574", &unlimited, QINQ, Feature::TxChecksum), (Verdict::Yes, Some(Rule::ByPlace)));
}

/// The report's machine: an 82599 with checksum and TSO on transmit for stacked frames on 4.7, without RX checksum and
/// RSS for them; one stream on one core, many by RPS.
#[test]
fn the_82599_of_the_field_report() {
    let rows = nic("82599", &KernelRules::v4_7(), QINQ);
    let verdicts = rows.map(|row| (row.feature.name(), row.decision.verdict.word()));
    let expected = [
        ("tx-checksum", "yes"),
        ("scatter-gather", "yes"),
        ("gso", "yes"),
        ("tso", "yes"),
        ("rx-checksum", "no"),
        ("rss", "no"),
        ("rps", "yes"),
        ("gro", "yes"),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn what_depends_on_drivers_depends_on_their_claims() {
    const BY_PLACE: (Verdict, Option<Rule>) = (Verdict::Yes, Some(Rule::ByPlace));
    const FOUND: (Verdict, Option<Rule>) = (Verdict::Yes, Some(Rule::LookupFinds));
    const DRIVER: (Verdict, Option<Rule>) = (Verdict::No, Some(Rule::DriverLimit));
    const STACK: (Verdict, Option<Rule>) = (Verdict::No, Some(Rule::StackLimit));
    const MIDDLE: (Verdict, Option<Rule>) = (Verdict::No, Some(Rule::MiddleLimit));
    const THREE: &str = "ad:1,q:2,q:3";
    let (v4_7, current) = (KernelRules::v4_7(), KernelRules::current());
    for (name, rules, stack, checksum, tso) in [
        // The limit lets IP_CSUM pass on 4.7 by the way sets are intersected; the mask of today does not.
        ("connectx-3", &v4_7, QINQ, BY_PLACE, DRIVER),
        ("connectx-3", &current, QINQ, DRIVER, DRIVER),
        ("bnx2x", &v4_7, QINQ, FOUND, DRIVER),
        ("bnx2x", &current, QINQ, DRIVER, DRIVER),
        ("sfc", &v4_7, QINQ, BY_PLACE, STACK),
        ("sfc", &current, QINQ, BY_PLACE, BY_PLACE),
        ("qlge", &v4_7, QINQ, BY_PLACE, STACK),
        ("i210", &v4_7, QINQ, BY_PLACE, BY_PLACE),
        ("82574", &v4_7, QINQ, BY_PLACE, FOUND),
        ("connectx-5", &current, QINQ, BY_PLACE, DRIVER),
        ("bcm57xx", &current, QINQ, STACK, STACK),
        // With three tags the lowest VLAN device sees two, and has no check of its own.
        ("i210", &v4_7, THREE, BY_PLACE, MIDDLE),
        ("i210", &current, THREE, BY_PLACE, MIDDLE),
    ] {
        let at = format!("{name}, {}, {stack}", rules.name);
        assert_eq!(of_nic(name, rules, stack, Feature::TxChecksum), checksum, "{at}");
        assert_eq!(of_nic(name, rules, stack, Feature::Tso), tso, "{at}");
        assert!(stack != THREE || of_nic(name, rules, stack, Feature::Gso).0 == Verdict::Yes, "{at}");
    }
    // Also a single tag of 0x88a8 is one that the look-ups of 3.10 do not know.
    for (rules, stack, expected) in [
        (KernelRules::v3_10(), "ad:100", Verdict::Broken),
        (KernelRules::v3_10(), "q:100", Verdict::Yes),
        (v4_7, "ad:100", Verdict::Yes),
    ] {
        assert_eq!(of_nic("82576", &rules, stack, Feature::TxChecksum).0, expected, "{} {stack}", rules.name);
    }
    // IP versions may differ. Scatter-gather is off by default, so nothing is segmented late.
    let rows = nic("rtl8125b", &current, "q:35");
    let checksum = row(&rows, Feature::TxChecksum);
    let ipv6 = checksum.ipv6.unwrap();
    assert_eq!(
        (checksum.decision.verdict, ipv6.verdict, ipv6.rule),
        (Verdict::Yes, Verdict::No, Some(Rule::NotForTagged))
    );
    assert_eq!(row(&rows, Feature::Gso).decision.verdict, Verdict::No);
    assert_eq!(row(&rows, Feature::ScatterGather).decision.rule, Some(Rule::NotOffered));
}

#[test]
fn rps_and_gro_look_at_the_tags_that_are_left_in_the_bytes() {
    let old = KernelRules::v3_10();
    for (stack, rps, gro) in [
        ("none", Verdict::Yes, Verdict::Yes),
        ("q:1", Verdict::Yes, Verdict::Yes),
        // The device leaves a tag of 0x88a8 where it is, and the dissector of 3.10 does not know it.
        ("ad:1", Verdict::No, Verdict::No),
        (QINQ, Verdict::No, Verdict::No),
        // The outer tag is taken off; the inner one is known to the dissector, and not to GRO.
        ("q:1,q:2", Verdict::Yes, Verdict::No),
        ("q:1,ad:2", Verdict::No, Verdict::No),
    ] {
        assert_eq!(kind(DeviceKind::IpCsum, &old, stack, Feature::Rps), rps, "{stack}");
        assert_eq!(kind(DeviceKind::IpCsum, &old, stack, Feature::Gro), gro, "{stack}");
        for rules in [KernelRules::v4_7(), KernelRules::current()] {
            assert_eq!(kind(DeviceKind::IpCsum, &rules, stack, Feature::Rps), Verdict::Yes, "{stack}");
            assert_eq!(kind(DeviceKind::IpCsum, &rules, stack, Feature::Gro), Verdict::Yes, "{stack}");
        }
    }
    // Whether an RTL8125B takes 0x88a8 off is unknown: on 3.10 it decides, today it does not.
    let decision = row(&nic("rtl8125b", &old, "ad:1"), Feature::Gro).decision;
    assert_eq!((decision.verdict, decision.key), (Verdict::Unknown, Some(schema::QINQ_STRIP)));
    assert_eq!(
        row(&nic("rtl8125b", &KernelRules::current(), "ad:1"), Feature::Gro).decision.verdict,
        Verdict::Yes
    );
}

#[test]
fn behind_pppoe_the_kernel_does_the_work() {
    let sent = [Feature::TxChecksum, Feature::ScatterGather, Feature::Tso, Feature::Gso];
    for rules in [KernelRules::v3_10(), KernelRules::v4_7()] {
        for feature in sent {
            let decision = of_nic("i210", &rules, "q:35,pppoe", feature);
            assert_eq!(
                decision,
                (Verdict::No, Some(Rule::PppOffersNot)),
                "{} {}",
                rules.name,
                feature.label()
            );
        }
    }
    // Scatter-gather came to PPP later, and brought late segmentation.
    let current = KernelRules::current();
    for (feature, verdict) in sent.into_iter().zip([Verdict::No, Verdict::Yes, Verdict::No, Verdict::Yes]) {
        assert_eq!(of_nic("i210", &current, "q:35,pppoe", feature).0, verdict, "{}", feature.label());
    }
    for feature in [Feature::Rss, Feature::RxChecksum, Feature::Gro] {
        assert_eq!(of_nic("i210", &current, "pppoe", feature).0, Verdict::No, "{}", feature.label());
    }
    for rules in KernelRules::ALL {
        assert_eq!(kind(DeviceKind::HwCsum, &rules, "pppoe", Feature::Rps), Verdict::Yes);
    }
    // A sum over the frame goes through PPP on 3.10 and is thrown away since.
    let sum = |rules| kind(DeviceKind::HwCsum, &rules, "pppoe", Feature::RxChecksum);
    assert_eq!(KernelRules::ALL.map(sum), [Verdict::Yes, Verdict::No, Verdict::No]);
}

/// The claims of what comes out on the current kernel and the arithmetic agree for every profile.
#[test]
fn profiles_agree_with_the_arithmetic() {
    let current = KernelRules::current();
    let mut compared = 0;
    let claims: [(&str, Feature, Key); 4] = [
        ("q:10", Feature::TxChecksum, schema::TX_CHECKSUM_ONE_TAG),
        ("q:10", Feature::Tso, schema::TSO_ONE_TAG),
        (QINQ, Feature::TxChecksum, schema::TX_CHECKSUM_TWO_TAGS),
        (QINQ, Feature::Tso, schema::TSO_TWO_TAGS),
    ];
    let own = builtin().unwrap();
    let modes = own.iter().flat_map(|p| p.modes().iter().map(|mode| p.with_mode(&mode.name).unwrap()));
    let all: Vec<Profile> = own.iter().cloned().chain(modes).collect();
    for profile in &all {
        for (stack, feature, key) in claims {
            let parsed: Stack = stack.parse().unwrap();
            let adapter = Adapter::of(profile, &current, parsed.tpids(), false);
            let found = row(&answer(&adapter, &current, &parsed), feature).decision.verdict;
            let claimed = profile.tri(key);
            let at = format!("{} {stack} {}", profile.name(), key.path());
            match (found, claimed) {
                (Verdict::Unknown, _) => {}
                (_, None) => {
                    assert!(profile.claim(key).is_none(), "{at}: claimed unknown, worked out {found:?}")
                }
                (found, Some(claimed)) => {
                    assert_eq!(found == Verdict::Yes, claimed, "{at}: {found:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 80, "{compared}");
}

/// Every profile has an answer for every stack and kernel, and an unknown one names the claim that is missing.
#[test]
fn unknown_names_the_claim() {
    for profile in builtin().unwrap() {
        for rules in KernelRules::ALL {
            for stack in ["none", "q:1", "ad:1", QINQ, "q:1,q:2", "ad:1,q:2,q:3", "pppoe", "ad:1,q:2,pppoe"] {
                let parsed: Stack = stack.parse().unwrap();
                let adapter = Adapter::of(profile, &rules, parsed.tpids(), parsed.has_pppoe());
                for row in answer(&adapter, &rules, &parsed) {
                    for decision in [Some(row.decision), row.ipv6].into_iter().flatten() {
                        let at = format!("{} {} {stack} {:?}", profile.name(), rules.name, row);
                        assert!(!matches!(decision.verdict, Verdict::Driver | Verdict::Device), "{at}");
                        let unknown = decision.verdict == Verdict::Unknown;
                        assert_eq!(unknown, decision.rule.is_none(), "{at}");
                        assert!(!unknown || decision.key.is_some(), "{at}");
                    }
                }
            }
        }
    }
}

#[test]
fn stacks_are_parsed_and_others_refused() {
    let stack: Stack = "ad:100,q:200,pppoe".parse().unwrap();
    assert_eq!((stack.tpids(), stack.has_pppoe()), (&[0x88a8, 0x8100][..], true));
    assert_eq!(stack.to_string(), "ad:100,q:200,pppoe");
    assert_eq!(stack.frame(1492), 14 + 8 + 8 + 1492);
    for (text, problem) in [
        ("q:1,mpls:16", "MPLS labels are put on by routes"),
        (
            "0x9100:1",
            "Linux makes VLAN devices of TPID 0x8100 (q:VID) and 0x88a8 (ad:VID) alone, not of 0x9100",
        ),
        ("q:1,vxlan:2", "`q:1,vxlan:2` is no stack: word 2 is none of q:VID"),
        ("q:4095", "`q:4095` is no stack"),
        ("pppoe,q:1", "`pppoe,q:1` is no stack"),
    ] {
        let error = text.parse::<Stack>().unwrap_err().to_string();
        assert!(error.starts_with(problem), "{text}: {error}");
    }
}
