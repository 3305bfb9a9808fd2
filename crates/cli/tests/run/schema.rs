//! Whether a document is as its schema in `docs/schemas` says: the part of JSON Schema 2020-12 that those files use.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Where the schemas are.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// The file of a schema: `rxlane.steer-up/1` is in `steer-up.1.json`.
pub fn file(schema: &str) -> PathBuf {
    let name = schema.strip_prefix("rxlane.").unwrap_or(schema).replace('/', ".");
    folder().join(format!("{name}.json"))
}

/// What a document that names its schema has that it does not allow, and lacks that it requires.
pub fn violations(document: &Value) -> Vec<String> {
    let Some(name) = document["schema"].as_str() else { return Vec::new() };
    let path = file(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut violations = Vec::new();
    check(&schema, document, name, &mut violations);
    violations
}

fn check(schema: &Value, value: &Value, at: &str, violations: &mut Vec<String>) {
    let keywords = schema.as_object().unwrap_or_else(|| panic!("{at}: {schema} is no schema"));
    for (keyword, rule) in keywords {
        let holds = match keyword.as_str() {
            "$schema" | "$id" | "title" => true,
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_kind(kind, value)),
                kind => is_kind(kind, value),
            },
            "const" => rule == value,
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, item, &format!("{at}[{number}]"), violations);
                }
                true
            }
            "required" => {
                let keys = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                let lacks = |key: &&str| value.as_object().is_some_and(|object| !object.contains_key(*key));
                violations.extend(keys.filter(lacks).map(|key| format!("{at}.{key}: missing")));
                true
            }
            // Readers take fields that are added later; here each has to be in the schema.
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    match rule.get(key) {
                        Some(rule) => check(rule, value, &format!("{at}.{key}"), violations),
                        None => violations.push(format!("{at}.{key}: not in the schema")),
                    }
                }
                true
            }
            // Of an object whose keys are names or numbers, and has no properties besides.
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    check(rule, value, &format!("{at}.{key}"), violations);
                }
                true
            }
            other => panic!("{at}: no file has used the keyword {other} before"),
        };
        if !holds {
            violations.push(format!("{at}: {value} is not {keyword} {rule}"));
        }
    }
}

fn is_kind(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => panic!("{kind} is no type"),
    }
}
