//! `rxlane nics --stack --json`: the member `stack` of schema rxlane.nics/1.

use super::admission::{LARGE_MTU, admitted, classes, mtu_needed};
use crate::nics::json::citations;
use nic::Profile;
use nic::admission::USUAL_MTU;
use nic::stacked::{Adapter, Decision, DeviceKind, KernelRules, Row, Stack, answer};
use nic::{Key, admission};
use serde_json::{Value as Json, json};

pub fn kinds(stack: &Stack, kernels: &[KernelRules]) -> Json {
    let kinds: Vec<Json> = kernels
        .iter()
        .flat_map(|rules| DeviceKind::ALL.map(|kind| (rules, kind)))
        .map(|(rules, kind)| {
            let rows = answer(&Adapter::of_kind(kind), rules, stack);
            json!({"kind": kind.name(), "kernel": kernel(rules), "features": features(None, &rows)})
        })
        .collect();
    json!({"stack": stack.to_string(), "kinds": kinds})
}

pub fn devices(stack: &Stack, rules: &KernelRules, profiles: &[Profile]) -> Json {
    let answers: Vec<Json> = profiles
        .iter()
        .map(|profile| {
            let rows = super::rows(profile, rules, stack);
            json!({
                "name": profile.name(),
                "features": features(Some(profile), &rows),
                "admission": frames(stack, profile),
            })
        })
        .collect();
    json!({"stack": stack.to_string(), "kernel": kernel(rules), "answers": answers})
}

fn kernel(rules: &KernelRules) -> Json {
    json!({"name": rules.name, "read": rules.read})
}

fn features(profile: Option<&Profile>, rows: &[Row]) -> Vec<Json> {
    rows.iter()
        .map(|row| {
            let mut feature = decision(profile, &row.decision);
            if let Some(members) = feature.as_object_mut() {
                members.insert("feature".to_owned(), json!(row.feature.name()));
                let ipv6 = row.ipv6.map(|ipv6| decision(profile, &ipv6));
                members.insert("ipv6".to_owned(), json!(ipv6));
            }
            feature
        })
        .collect()
}

fn decision(profile: Option<&Profile>, decision: &Decision) -> Json {
    let place = decision.rule.map(nic::stacked::Rule::place).filter(|place| !place.is_empty());
    json!({
        "answer": decision.verdict.word(),
        "rule": decision.rule.map(nic::stacked::Rule::name),
        "why": decision.rule.map(|rule| rule.to_string()),
        "place": place,
        "claim": decision.key.map(|key| key.path()),
        "sources": sources(profile, decision.key),
    })
}

fn sources(profile: Option<&Profile>, key: Option<Key>) -> Option<Json> {
    let (profile, key) = (profile?, key?);
    profile.claim(key).map(|claim| citations(profile, &claim.citations))
}

fn frames(stack: &Stack, profile: &Profile) -> Vec<Json> {
    let at = |class: &admission::FrameClass, mtu| match admitted(profile, class, mtu) {
        Ok((admitted, limit)) => {
            json!({"mtu": mtu, "answer": if admitted { "yes" } else { "no" }, "limit": limit, "claim": null})
        }
        Err(key) => json!({"mtu": mtu, "answer": "unknown", "limit": null, "claim": key.path()}),
    };
    classes(stack)
        .iter()
        .map(|class| {
            let tags: Vec<String> = class.tpids.iter().map(|tpid| format!("{tpid:#06x}")).collect();
            let key = admission::limit_key(profile, &class.tpids);
            json!({
                "frame": class.name,
                "tags": tags.join(" "),
                "bytes": class.length,
                "admitted": [at(class, USUAL_MTU), at(class, LARGE_MTU)],
                "mtu_needed": mtu_needed(profile, class),
                "claim": key.path(),
                "sources": sources(Some(profile), Some(key)),
            })
        })
        .collect()
}
