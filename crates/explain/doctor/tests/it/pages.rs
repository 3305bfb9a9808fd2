//! The pages in `docs/findings/` are those of the rules, and every documented finding has a rule.

use rxlane_doctor::{RULES, page};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Set to write the pages instead of comparing them: `make docs`.
const WRITE: &str = "RXLANE_WRITE_DOCS";

/// Ids that scripts may rely on: new ones are added, none goes.
const IDS: &[&str] = &[
    "single-queue",
    "link-speed",
    "pppoe-unhashed",
    "qinq-unhashed",
    "one-queue-hot",
    "one-flow",
    "udp-two-tuple",
    "reta-uneven",
    "reta-unused-queue",
    "queues-below-cpus",
    "irq-one-cpu",
    "irq-collision",
    "irq-floating",
    "rps-off",
    "rps-same-cpu",
    "softirq-one-cpu",
    "ring-overflow",
    "ring-small",
    "backlog-drop",
    "time-squeeze",
    "moderation-off",
    "moderation-long",
    "frame-oversize",
    "mtu-below-1500",
    "checksum-double-tag",
    "offload-lost",
    "gro-off",
    "tags-hidden",
    "xdp-generic-only",
    "netisr-direct",
    "netisr-unbound",
    "input-queue-shallow",
    "user-space-pppoe",
    "interface-wedged",
    "counter-wrap",
    "insufficient-data",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/findings")
}

fn pages() -> Vec<(String, String)> {
    let mut pages = vec![("README.md".to_owned(), page::index(RULES))];
    pages.extend(RULES.iter().map(|rule| (format!("{}.md", rule.id), page::markdown(rule))));
    pages
}

#[test]
fn the_committed_pages_are_those_of_the_rules() {
    let folder = folder();
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(&folder).expect("docs/findings");
        for (name, text) in pages() {
            fs::write(folder.join(name), text).expect("a page");
        }
    }
    for (name, text) in pages() {
        let committed = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(committed == text, "docs/findings/{name} is not what its rule says; `make docs` writes it");
    }
    let known: BTreeSet<String> = pages().into_iter().map(|(name, _)| name).collect();
    for entry in fs::read_dir(&folder).expect("docs/findings") {
        let name = entry.expect("entry").file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "docs/findings/{name} belongs to no rule");
    }
}

#[test]
fn every_documented_id_has_its_rule_and_every_rule_its_page() {
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(rules.len(), RULES.len(), "an id twice");
    let known: BTreeSet<&str> = IDS.iter().copied().collect();
    assert_eq!(rules, known, "rules, and the ids that are listed here");
    for rule in RULES {
        let page = &rule.page;
        for (part, text) in
            [("means", page.means), ("shows", page.shows), ("fix", page.fix), ("costs", page.costs)]
        {
            assert!(text.trim().len() >= 8, "{}: nothing under {part}", rule.id);
        }
        assert!(!page.title.ends_with('.'), "{}: a title is no sentence", rule.id);
    }
}
