//! Fuzz targets, one a parser, in one program: `RXLANE_FUZZ` names the target, arguments are libFuzzer's (`make fuzz`).
#![no_main]

mod capture_reader;
mod dissect;
mod doctor;
mod encapsulation_text;
mod explain;
mod host_text;
mod ipv6_extensions;
mod link_frames;
mod model_scenario;
mod nic_profile;
mod ppp_control;
mod ppp_session;
mod pppoe_client;
mod pppoe_concentrator;
mod pppoe_discovery;
mod pppoe_tags;
mod rss_text;
mod segment_coalesce;
mod steering;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("capture_reader", capture_reader::run),
    ("dissect", dissect::run),
    ("doctor", doctor::run),
    ("encapsulation_text", encapsulation_text::run),
    ("explain", explain::run),
    ("host_text", host_text::run),
    ("ipv6_extensions", ipv6_extensions::run),
    ("link_frames", link_frames::run),
    ("model_scenario", model_scenario::run),
    ("nic_profile", nic_profile::run),
    ("ppp_control", ppp_control::run),
    ("ppp_session", ppp_session::run),
    ("pppoe_client", pppoe_client::run),
    ("pppoe_concentrator", pppoe_concentrator::run),
    ("pppoe_discovery", pppoe_discovery::run),
    ("pppoe_tags", pppoe_tags::run),
    ("rss_text", rss_text::run),
    ("segment_coalesce", segment_coalesce::run),
    ("steering", steering::run),
];

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let target = std::env::var("RXLANE_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let names = TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
    found.unwrap_or_else(|| panic!("RXLANE_FUZZ={target}: no such target; there are {names}")).1
});

fuzz_target!(|bytes: &[u8]| CHOSEN(bytes));
