//! `docs/schemas` has a file for each document that the program prints; what is printed is held to it wherever a test reads a document.

use crate::run::schema;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Schemas that the sources name.
fn named(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            if !entry.ends_with("tests") && !entry.ends_with("examples") {
                named(&entry, names);
            }
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).expect("UTF-8");
            for rest in text.split("\"rxlane.").skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                let version = name.rsplit_once('/').map_or("", |(_, version)| version);
                if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) {
                    names.insert(format!("rxlane.{name}"));
                }
            }
        }
    }
}

#[test]
fn every_document_has_its_schema_and_every_schema_its_document() {
    let mut names = BTreeSet::new();
    named(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates"), &mut names);
    assert!(names.len() > 30, "{names:?}");
    let files: BTreeSet<_> = fs::read_dir(schema::folder())
        .expect("schemas")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    assert_eq!(files, names.iter().map(|name| schema::file(name)).collect());
    for name in names {
        let text = fs::read_to_string(schema::file(&name)).expect("a file");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(schema["properties"]["schema"]["const"].as_str(), Some(name.as_str()));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}

#[test]
fn what_is_not_in_a_schema_is_found() {
    let violations = |document| schema::violations(&document);
    let list = serde_json::json!({"schema": "rxlane.gen-list/1", "kinds": 3});
    assert!(!violations(list).is_empty());
}
