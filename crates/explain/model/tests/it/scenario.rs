//! Scenario files: what they say is simulated, what nobody knows is refused with its place.

use rxlane_model::measure::{NAMES, measure};
use rxlane_model::{Answer, FileError, Scenario, run};

const ROUTER: &str = include_str!("../../../../../docs/model/router.toml");

fn simulate(text: &str) -> Result<Answer, FileError> {
    let scenario = Scenario::parse("test.toml", text)?;
    Ok(run(scenario.plan(&mut |_, _, _, _| Err("no captures here".to_owned()))?))
}

fn refused(text: &str) -> String {
    simulate(text).err().unwrap_or_else(|| panic!("taken:\n{text}")).to_string()
}

#[test]
fn the_documented_router_has_one_busy_queue() {
    let answer = simulate(ROUTER).unwrap();
    assert!(answer.conserves());
    // A profile's answer: an I210 puts all PPPoE on queue 0.
    assert_eq!(measure(&answer, "queue.wan.0.share_percent"), Ok(100.0));
    assert!(measure(&answer, "cpu.0.busy_percent").unwrap() > 90.0);
    assert_eq!(measure(&answer, "cpu.3.busy_percent"), Ok(0.0));
    let untagged = simulate(&ROUTER.replace("encap = \"pppoe\"", "")).unwrap();
    let busiest = measure(&untagged, "queue.wan.0.share_percent").unwrap();
    assert!((20.0..30.0).contains(&busiest), "{busiest}");
    assert!(measure(&untagged, "received_kpps").unwrap() > measure(&answer, "received_kpps").unwrap());
}

#[test]
fn what_nobody_knows_is_refused_with_its_line() {
    let typo = ROUTER.replace("ring = 256", "rign = 256");
    let line = 1 + typo.lines().position(|line| line.starts_with("rign")).unwrap();
    let error = refused(&typo);
    assert!(
        error.starts_with(&format!("test.toml: line {line}: interface.wan: unknown key `rign`")),
        "{error}"
    );
    for (from, to, expected) in [
        ("cpus = 4", "cpus = \"four\"", "cpus: expected a whole number from 0 to 4294967295, found \"four\""),
        (
            "ring = 256",
            "ring = -1",
            "interface.wan.ring: expected a whole number from 0 to 4294967295, found -1",
        ),
        ("pps = 300000", "pps = {}", "traffic.download.arrival: expected a number, found a table"),
        (
            "kind = \"poisson\"",
            "kind = \"poison\"",
            "traffic.download.arrival.kind: unknown word `poison`, expected one of",
        ),
    ] {
        let text = ROUTER.replace(from, to);
        let line = 1 + text.lines().position(|line| line.contains(to)).unwrap();
        let (error, expected) = (refused(&text), format!("test.toml: line {line}: {expected}"));
        assert!(error.starts_with(&expected), "{error} is not {expected}");
    }
}

#[test]
fn values_that_cannot_be_are_refused_with_their_key() {
    let refused = |from: &str, to: &str| refused(&ROUTER.replace(from, to));
    for (from, to, expected) in [
        ("pps = 300000", "pps = 0", "traffic.download.arrival.pps: expected 0.001 to 1000000000, found 0"),
        ("pps = 300000", "pps = nan", "traffic.download.arrival.pps: is no number"),
        ("poll = 3000", "poll = -1", "costs.poll: expected 0 to 1000000000, found -1"),
        ("ring = 256", "ring = 0", "interface.wan.ring: expected 1 to 65536, found 0"),
        ("\"i210\"", "\"i2100\"", "interface.wan.nic: no NIC is called `i2100`"),
        (
            "queues = 4\nring",
            "queues = 9\nring",
            "interface.wan: i210 has 1 to 4 receive queues for RSS, not 9",
        ),
        ("\"out:lan\"", "\"lan\"", "traffic.download.to: `lan` is neither an application"),
        (
            "interface = \"wan\"",
            "interface = \"dsl\"",
            "traffic.download.interface: no interface is called `dsl`",
        ),
        ("\"imix\"", "\"big\"", "traffic.download.size: expected imix"),
        (
            "cpus = 4",
            "cpus = 4\ndriver = { kind = \"interrupt\" }",
            "hand_over: the interrupt handler puts packets",
        ),
        ("duration_ms = 500", "duration_ms = 1e300", "found 1e300"),
        ("duration_ms = 500", "duration_ms = 0", "duration_ms: expected more than 0"),
        ("duration_ms = 500", "duration_ms = 1e12", "duration_ms: expected 0 to 3600000"),
        (
            "duration_ms = 500",
            "duration_ms = 3.6e6",
            "duration_ms: expected an hour at most, with warm_up_ms",
        ),
    ] {
        let error = refused(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
    let window = "{ kind = \"window\", frames = 4 }";
    let fast = ROUTER
        .replace("{ kind = \"poisson\", pps = 300000 }", window)
        .replace("speed_mbps = 1000\n", "speed_mbps = 1e6\n");
    let error = simulate(&fast).err().unwrap().to_string();
    assert!(error.contains("traffic.download.arrival: a window fills its line"), "{error}");
    let circle = "\n[application.a]\nnext = \"b\"\n[application.b]\nnext = \"a\"\n";
    let error = simulate(&format!("{ROUTER}{circle}")).err().unwrap().to_string();
    assert!(error.contains("application.a.next: leads back to itself"), "{error}");
}

#[test]
fn changes_are_made_by_key() {
    let with = |changes: &[(&str, toml::Value)]| Scenario::parse_with("test.toml", ROUTER, changes);
    let changed = with(&[("interface.wan.ring", toml::Value::Integer(4096))]).unwrap();
    assert_eq!(changed.interface["wan"].ring, 4096);
    let error = with(&[("interface.wan.rign", toml::Value::Integer(1))]).unwrap_err().to_string();
    assert!(error.contains("interface.wan.rign: unknown key `rign`"), "{error}");
    let error = with(&[("interface.dsl.ring", toml::Value::Integer(1))]).unwrap_err().to_string();
    assert!(error.contains("the scenario has no `interface.dsl`"), "{error}");
    // Of several the one that is to blame; where it is how they go together, all.
    let integer = toml::Value::Integer;
    let kind = ("interface.wan.moderation.kind", toml::Value::String("interval".to_owned()));
    let us = ("interface.wan.moderation.us", integer(20));
    assert!(with(&[kind.clone(), us.clone()]).is_ok());
    let error = with(&[kind.clone(), ("interface.wan.ring", integer(-1)), us]).unwrap_err();
    assert_eq!(error.key, "interface.wan.ring", "{error}");
    let error = with(&[("interface.wan.ring", integer(9)), kind]).unwrap_err();
    assert_eq!(error.key, "interface.wan.moderation.kind", "{error}");
    let text = |text: &str| toml::Value::String(text.to_owned());
    let error = with(&[("seed", integer(3)), ("cpus", text("x")), ("cpus", text("y"))]).unwrap_err();
    assert_eq!(error.key, "cpus", "{error}");
    let error = with(&[("seed", text("x")), ("warm_up_ms", integer(1)), ("cpus", text("y"))]).unwrap_err();
    assert!(["seed", "cpus"].contains(&error.key.as_str()), "{error}");
}

#[test]
fn a_line_is_full_where_more_is_offered_than_it_takes() {
    let of = |pps: &str| {
        let answer = simulate(&ROUTER.replace("pps = 300000", &format!("pps = {pps}"))).unwrap();
        let full: Vec<String> = answer.full_lines().map(str::to_owned).collect();
        (measure(&answer, "line.wan.filled_percent").unwrap(), full)
    };
    let (half, none) = of("161000");
    assert!((half - 50.0).abs() < 1.0 && none.is_empty(), "{half} {none:?}");
    let (whole, full) = of("600000");
    assert!((whole - 100.0).abs() < 0.01 && full == ["wan"], "{whole} {full:?}");
    // A line without limit is never full.
    let answer = simulate(&ROUTER.replace("speed_mbps = 1000", "")).unwrap();
    assert_eq!(answer.full_lines().next(), None);
    assert!(measure(&answer, "line.wan.filled_percent").is_err());
}

#[test]
fn figures_are_had_by_the_names_that_are_listed() {
    let text = format!(
        "{ROUTER}\n[hand_over]\ncpus = [1, 2]\ndepth = 100\n[application.reader]\n[traffic.r]\ninterface = \"wan\"\narrival = {{ kind = \"constant\", pps = 1000 }}\npayload = 20\nto = \"reader\"\n"
    );
    let answer = simulate(&text).unwrap();
    for (name, _) in NAMES {
        let name = match *name {
            "traffic.NAME.…" => "traffic.download.latency_p99_us".to_owned(),
            name => name
                .replace("application.NAME", "application.reader")
                .replace("queue.NAME", "queue.wan")
                .replace("line.NAME", "line.wan")
                .replace(".N.", ".0."),
        };
        assert!(measure(&answer, &name).is_ok(), "{name}");
    }
    for wrong in ["received", "cpu.9.idle_percent", "traffic.x.received_kpps", "queue.wan.7.burst", "", "."] {
        assert!(measure(&answer, wrong).is_err(), "{wrong}");
    }
}
