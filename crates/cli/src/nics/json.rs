//! `rxlane nics --json`: profiles and answers (schema rxlane.nics/1).

use nic::Profile;
use nic::spread::{Answer, Verdict};
use nic::{Citation, Claim, Stage, Value, schema};
use rss::HashType;
use serde_json::{Map, Value as Json, json};

pub fn answer_json(answer: &Answer) -> Json {
    let modes: Vec<Json> = answer.modes.iter().map(|mode| mode_json(mode)).collect();
    let (hash_type, reason) = match &answer.verdict {
        Verdict::Yes(HashType::None) => (None, None),
        Verdict::Yes(hash_type) => (Some(hash_type.to_string()), None),
        Verdict::No(reason) | Verdict::Unknown(reason) => (None, Some(reason)),
    };
    let key = reason.and_then(|reason| reason.key());
    json!({
        "name": answer.profile.name(),
        "answer": answer.word(),
        "hash_type": hash_type,
        "why": reason.map(ToString::to_string),
        "claim": key.map(|key| key.path()),
        "sources": key.and_then(|key| answer.profile.claim(key)).map(|claim| citations(answer.profile, &claim.citations)),
        "modes": modes,
    })
}

fn mode_json(mode: &nic::Mode) -> Json {
    json!({"name": mode.name, "title": mode.title, "enable": mode.enable, "available": tri(mode.available)})
}

fn tri(answer: Option<bool>) -> &'static str {
    match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

pub fn profiles_json(profiles: &[Profile]) -> Vec<Json> {
    profiles.iter().map(profile_json).collect()
}

fn profile_json(profile: &Profile) -> Json {
    let mut stages = Map::new();
    for stage in Stage::all() {
        let keys = schema::KEYS.iter().filter(|key| key.stage == stage);
        let claims: Map<String, Json> = keys
            .map(|key| {
                (
                    key.name.to_owned(),
                    profile.claim(*key).map_or(Json::Null, |claim| claim_json(profile, claim)),
                )
            })
            .collect();
        stages.insert(stage.name().to_owned(), Json::Object(claims));
    }
    let knobs: Vec<Json> = profile
        .device_options
        .iter()
        .map(|knob| {
            let values: Vec<Json> =
                knob.values.iter().map(|value| json!({"set": value.set, "means": value.means})).collect();
            json!({"name": knob.name, "default": knob.default, "values": values, "note": knob.note,
                   "sources": citations(profile, &knob.citations)})
        })
        .collect();
    json!({
        "name": profile.name(),
        "title": profile.title,
        "vendor": profile.vendor,
        "aliases": profile.aliases,
        "pci": profile.pci,
        "modes": profile.modes().iter().map(mode_json).collect::<Vec<_>>(),
        "claims": stages,
        "knobs": knobs,
    })
}

/// A claim; of an absent one `null` stands, which means unknown too.
fn claim_json(profile: &Profile, claim: &Claim) -> Json {
    let is = match &claim.value {
        Value::Unknown => json!("unknown"),
        Value::Tri(answer) => json!(tri(Some(*answer))),
        Value::Int(number) => json!(number),
        Value::Ints(numbers) => json!(numbers),
        Value::Text(text) => json!(text),
        Value::Words(words) => json!(words),
        Value::Stacks(stacks) => stacks.iter().map(|stack| json!(stack.to_string())).collect(),
    };
    json!({"is": is, "note": claim.note, "sources": citations(profile, &claim.citations)})
}

pub fn citations(profile: &Profile, citations: &[Citation]) -> Json {
    let title = |name: &str| profile.sources.get(name).map(|source| source.title.clone());
    citations
        .iter()
        .map(|c| json!({"source": c.source, "title": title(&c.source), "place": c.place}))
        .collect()
}
