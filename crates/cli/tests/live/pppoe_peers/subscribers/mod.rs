//! Many subscribers on one line, against `rxlane pppoe serve`: each has its own MAC address, tags, user, method, and habits.

mod books;
mod plan;
mod script;
mod search;
mod session;
mod subscriber;
mod tester;
mod traffic;

use crate::pppoe_live::line::{Line, WAN, code, said, speak_ipv6};
use crate::pppoe_live::process::Process;
use plan::{Dice, Plan};
use serde_json::Value;
use session::{DNS, GATEWAY, Standing};
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use subscriber::{End, Phase, Step};
use tester::Tester;
use testkit::frames::Frames;
use testkit::netns::{Namespace, Veth};
use traffic::{BEHIND4, BEHIND6, Traffic};

/// How many subscribers there are unless `RXLANE_SUBSCRIBERS` says so; `RXLANE_SUBSCRIBERS_SEED` has the seed of a run that is
/// to be repeated.
const SUBSCRIBERS: usize = 500;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

fn seed() -> u64 {
    number("RXLANE_SUBSCRIBERS_SEED").unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_nanos() as u64 & 0xffff_ffff
    })
}

/// The line, and a machine behind the concentrator.
struct Town {
    line: Line,
    behind: Namespace,
}

impl Town {
    fn new() -> Option<Town> {
        let line = Line::new()?;
        let behind = Namespace::new().expect("a namespace");
        speak_ipv6(&behind);
        // Room for whole packets in four tags.
        for namespace in [&line.near, &line.far] {
            namespace.run("ip", &["link", "set", WAN, "mtu", "1516"]).expect("an MTU");
        }
        line.far.veth(&Veth { peer: Some(&behind), ..Veth::pair("core0", "core0") }).expect("a pair");
        let ip = |namespace: &Namespace, arguments: &str| {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            namespace.run("ip", &arguments).unwrap_or_else(|error| panic!("{error}"));
        };
        ip(&line.far, "addr add 198.18.0.1/24 dev core0");
        ip(&line.far, "addr add 2001:db8:ffff::1/64 dev core0");
        ip(&behind, &format!("addr add {BEHIND4}/24 dev core0"));
        ip(&behind, &format!("addr add {BEHIND6}/64 dev core0"));
        ip(&behind, "route add default via 198.18.0.1");
        ip(&behind, "route add default via 2001:db8:ffff::1");
        line.far.inside(|| {
            for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                fs::write(format!("/proc/sys/net/{setting}"), "1").expect("a setting");
            }
        });
        Some(Town { line, behind })
    }

    /// `serve` with as many addresses as there are subscribers.
    fn serve(&self, subscribers: usize, echo: u64, accounts: &str) -> Process {
        let local = GATEWAY.to_string();
        let first = u32::from(GATEWAY) + 256;
        let last = first + subscribers as u32 - 1;
        let pool = format!("{}-{}", Ipv4Addr::from(first), Ipv4Addr::from(last));
        let (secrets, dns, echo) = (self.line.text("secrets"), DNS.to_string(), echo.to_string());
        let usual = ["serve", WAN, "--secrets", &secrets, "--local", &local, "--dns", &dns];
        let more = ["--pool", &pool, "--vlan", "any", "--auth", "chap,pap", "--accounting", accounts];
        let echo = ["--echo-interval", &echo];
        let mut command = self.line.command(&self.line.far, &[&usual[..], &more, &echo].concat());
        let serving = Process::start(&mut command);
        serving.hear("disconnect --concentrator", 1);
        serving
    }

    fn sessions(&self) -> Value {
        let output = self.line.far(&["sessions", WAN, "--json"]);
        assert_eq!(code(&output), 0, "{}", said(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// What the concentrator could not do, told where a test fails.
struct Told<'p>(&'p Process);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.0.said();
            let is_failure = |line: &&str| {
                ["not carried", "does not lead", "no route"].iter().any(|words| line.contains(words))
            };
            said.lines().filter(is_failure).take(20).for_each(|line| eprintln!("{line}"));
        }
    }
}

#[test]
fn many_subscribers_do_what_subscribers_do() {
    let Some(town) = Town::new() else { return };
    let count = number("RXLANE_SUBSCRIBERS").map_or(SUBSCRIBERS, |count| count as usize);
    assert!((1..=60_000).contains(&count), "RXLANE_SUBSCRIBERS={count}: 1 to 60,000");
    let seed = seed();
    eprintln!("{count} subscribers, RXLANE_SUBSCRIBERS_SEED={seed}");
    let plans: Vec<(Plan, Dice)> = (0..count)
        .map(|number| {
            let mut dice = Dice::new(seed, number as u64);
            (Plan::draw(number, &mut dice), dice)
        })
        .collect();
    town.line.write("secrets", &plan::secrets(plans.iter().map(|(plan, _)| plan)));
    let accounts = town.line.text("accounts");
    // So many echoes that each end can answer.
    let echo = 1 + count as u64 / 1_000;
    let serving = town.serve(count, echo, &accounts);
    let told = Told(&serving);
    let address = town.line.far.inside(|| fs::read_to_string(format!("/sys/class/net/{WAN}/address")));
    let concentrator = mac(address.expect("an address").trim());
    let wire = town.line.near.inside(|| Frames::open(WAN)).expect("a socket");
    let traffic = Traffic::new(&town.line.far, &town.behind, Dice::new(seed, u64::MAX));
    let mut tester = Tester::new(wire, concentrator, traffic, plans);

    // What takes long takes longer the more there are.
    let limit = Duration::from_secs(60) + Duration::from_millis(20) * count as u32;
    let begun = Instant::now();
    let wait_to_meet = |tester: &mut Tester| {
        tester.run("all are open", limit, |tester| {
            tester.traffic.is_idle()
                && tester.subscribers.iter().all(|one| {
                    matches!(one.phase, Phase::Session(_))
                        && one.stage == 0
                        && matches!(one.script.front(), Some(Step::Meet))
                        && one.has_met
                })
        });
    };
    wait_to_meet(&mut tester);
    eprintln!("all open after {:.1?}", begun.elapsed());
    tester.compare_list(&town.sessions());

    let begun = Instant::now();
    tester.release();
    tester
        .run("all have left", limit, |tester| tester.subscribers.iter().all(|one| one.phase == Phase::Done));
    tester.run("all sessions are over", limit, |tester| {
        tester.sessions.iter().all(|session| session.standing == Standing::Over)
    });
    eprintln!("all gone after {:.1?}: {}", begun.elapsed(), tester.standing());
    let listed = town.sessions();
    assert_eq!(listed["sessions"], serde_json::json!([]));
    assert_eq!((&listed["count"], &listed["half_open"]), (&0.into(), &0.into()));
    tester.compare_counters(&listed);

    // As many others need every address of the pool.
    let begun = Instant::now();
    tester.come_again();
    wait_to_meet(&mut tester);
    eprintln!("all open again after {:.1?}", begun.elapsed());
    tester.compare_list(&town.sessions());
    tester.release();
    assert!(tester.subscribers.iter().all(|one| matches!(one.script.front(), Some(Step::End(End::Stay)))));
    serving.signal("TERM");
    tester.run("all are told of the end", limit, |tester| {
        tester.sessions.iter().all(|session| session.standing == Standing::Over)
    });
    drop(told);
    let (code, said) = serving.ended();
    assert_eq!(code, 0, "{said}");
    let accounts = fs::read_to_string(&accounts).expect("accounts");
    tester.compare_accounts(&accounts);
    let (carried, forbidden) = (tester.traffic.carried, tester.counts.forbidden);
    eprintln!("{carried} packets carried, {forbidden} held back; ends: {:?}", Tester::causes(&accounts));
}

fn mac(text: &str) -> [u8; 6] {
    let octets: Vec<u8> = text.split(':').map(|octet| u8::from_str_radix(octet, 16).expect("hex")).collect();
    octets.try_into().expect("six octets")
}
