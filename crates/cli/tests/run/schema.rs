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
    let mut check = Check { root: &schema, violations: Vec::new() };
    check.value(&schema, document, name);
    check.violations
}

struct Check<'s> {
    root: &'s Value,
    violations: Vec<String>,
}

impl<'s> Check<'s> {
    fn value(&mut self, schema: &'s Value, value: &Value, at: &str) {
        let Some(keywords) = schema.as_object() else {
            // `true` allows everything, `false` nothing.
            if schema == &Value::Bool(false) {
                self.violations.push(format!("{at}: not in the schema"));
            }
            return;
        };
        for (keyword, rule) in keywords {
            let holds = match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "additionalProperties" => true,
                "$ref" => {
                    let place = rule.as_str().and_then(|place| self.root.pointer(place.strip_prefix('#')?));
                    self.value(place.unwrap_or_else(|| panic!("{at}: {rule} is nowhere")), value, at);
                    true
                }
                "type" => match rule {
                    Value::Array(kinds) => kinds.iter().any(|kind| is_kind(kind, value)),
                    kind => is_kind(kind, value),
                },
                "enum" => rule.as_array().is_some_and(|values| values.contains(value)),
                "const" => rule == value,
                "minimum" => value.as_f64().is_none_or(|value| Some(value) >= rule.as_f64()),
                "maximum" => value.as_f64().is_none_or(|value| Some(value) <= rule.as_f64()),
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(rule, item, &format!("{at}[{number}]"));
                    }
                    true
                }
                "required" => {
                    let keys = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                    let object = value.as_object();
                    self.violations.extend(
                        keys.filter(|key| object.is_some_and(|object| !object.contains_key(*key)))
                            .map(|key| format!("{at}.{key}: missing")),
                    );
                    true
                }
                "properties" => {
                    // Readers take fields that are added later; here each has to be in the schema.
                    let rest = keywords.get("additionalProperties").unwrap_or(&Value::Bool(false));
                    for (key, value) in value.as_object().into_iter().flatten() {
                        self.value(rule.get(key).unwrap_or(rest), value, &format!("{at}.{key}"));
                    }
                    true
                }
                other => panic!("{at}: no file has used the keyword {other} before"),
            };
            if !holds {
                self.violations.push(format!("{at}: {value} is not {keyword} {rule}"));
            }
        }
        if !keywords.contains_key("properties")
            && let (Some(rest), Some(object)) = (keywords.get("additionalProperties"), value.as_object())
        {
            for (key, value) in object {
                self.value(rest, value, &format!("{at}.{key}"));
            }
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
