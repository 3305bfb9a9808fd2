//! Every rule has its page in `docs/findings/`, the index lists all, and ids stay.

use rxlane_doctor::RULES;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Ids that scripts may rely on: new ones are added, none goes.
const IDS: &str = "single-queue link-speed pppoe-unhashed qinq-unhashed one-queue-hot one-flow udp-two-tuple reta-uneven \
                   reta-unused-queue queues-below-cpus irq-one-cpu irq-collision irq-floating cpu-shared irq-little-cpu queue-thread lock-contention mbufs-denied cpus-full napi-thread rps-off rps-same-cpu \
                   softirq-one-cpu ring-overflow ring-small backlog-drop time-squeeze moderation-off moderation-long \
                   frame-oversize mtu-below-1500 checksum-double-tag offload-lost gro-off flowtable-off flowtable-devices flowtable-bypassed fastpath-bypassed hw-offload-off tags-hidden xdp-generic-only \
                   netisr-direct netisr-unbound input-queue-shallow user-space-pppoe interface-wedged counter-wrap transmit-hang cloud-allowance \
                   insufficient-data";
const HEADINGS: [&str; 4] = ["What it means", "How it shows", "How to fix it", "What the fix costs"];

#[test]
fn every_id_has_its_rule_and_every_rule_its_page() {
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(rules.len(), RULES.len(), "an id twice");
    assert_eq!(rules, IDS.split(' ').collect(), "rules, and the ids that are listed here");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/findings");
    let index = fs::read_to_string(folder.join("README.md")).expect("the index");
    for rule in RULES {
        let (id, stage, title) = (rule.id, rule.stage, rule.title());
        assert!(
            rule.page.starts_with(&format!("# {id}\n\n{title}. Stage of the receive path: `{stage}`.\n")),
            "{id}"
        );
        assert!(
            index.contains(&format!("| [{id}]({id}.md) | {stage} | {title} |\n")),
            "docs/findings/README.md lacks {id}"
        );
        let parts: Vec<&str> = rule.page.split("\n## ").skip(1).collect();
        let headings: Vec<&str> = parts.iter().filter_map(|part| part.lines().next()).collect();
        assert_eq!(headings, HEADINGS, "{id}");
        assert!(
            parts.iter().all(|part| part.trim_end().lines().count() > 1),
            "{id}: nothing under a heading"
        );
    }
    for entry in fs::read_dir(&folder).expect("docs/findings") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let id = name.strip_suffix(".md").unwrap_or(&name);
        assert!(id == "README" || rules.contains(id), "docs/findings/{name} belongs to no rule");
    }
}
