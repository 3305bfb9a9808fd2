//! What the TOML library finds wrong, in the words of whoever wrote the file: keys and kinds of values, no types of Rust.

/// `invalid type: string "four", expected u32` as `expected a whole number from 0 on, found "four"`.
pub(super) fn in_words(message: &str) -> String {
    let message = message.trim().replace('\n', " ");
    if let Some(rest) = message.strip_prefix("unknown field ") {
        // What serde says of a variant without any.
        let rest = rest.replace("there are no fields", "which this `kind` does not have, nor any other");
        return format!("unknown key {rest}");
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown word {rest}");
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(name) = message.strip_prefix("data did not match any variant of untagged enum ") {
        let expected = match name {
            "Size" => "a frame size: 64 to 65535 octets, \"64-1518\" or \"imix\"",
            "IndirectionTable" => "\"equal\" or a list with the queue of each entry",
            "Reported" => "a number or a range of two",
            _ => "a value of another kind",
        };
        return format!("expected {expected}");
    }
    let invalid = ["invalid type: ", "invalid value: "].iter().find_map(|lead| message.strip_prefix(lead));
    match invalid.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("expected {}, found {}", kind(expected), value(found)),
        None => message,
    }
}

/// What serde calls the kinds of values that scenarios have.
fn kind(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "f64" => "a number",
        "a string" | "string" => "text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") || expected.contains("tagged enum") => "a table",
        other => other,
    }
}

/// `string "four"`, `` integer `-5` ``, `map`.
fn value(found: &str) -> String {
    match found.split_once(' ') {
        Some(("string", text)) => text.to_owned(),
        Some(("integer" | "boolean", value)) => value.trim_matches('`').to_owned(),
        Some(("floating", value)) => value.trim_start_matches("point ").trim_matches('`').to_owned(),
        _ => match found {
            "map" => "a table".to_owned(),
            "sequence" => "a list".to_owned(),
            other => other.to_owned(),
        },
    }
}

/// The key whose value begins behind `before`: that of its line, below the last table's name. A key that is written in another
/// way (an inline table's, a dotted one's rest) is told as far as the line has it.
pub(super) fn key(before: &str) -> String {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let Some((own, _)) = line.split_once('=') else { return String::new() };
    let above = before.lines().rev().skip(1).map(str::trim);
    let table = above.clone().find(|line| line.starts_with('[') && line.ends_with(']'));
    let table = table.map(|table| table.trim_matches(['[', ']']).trim()).filter(|table| !table.is_empty());
    match table {
        Some(table) => format!("{table}.{}", own.trim()),
        None => own.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_kinds_of_values() {
        for (message, words) in [
            (
                "invalid type: string \"four\", expected u32",
                "expected a whole number from 0 to 4294967295, found \"four\"",
            ),
            ("invalid value: integer `-5`, expected u64", "expected a whole number from 0 on, found -5"),
            (
                "invalid type: floating point `1.5`, expected u16",
                "expected a whole number from 0 to 65535, found 1.5",
            ),
            ("invalid type: map, expected f64", "expected a number, found a table"),
            ("invalid type: integer `3`, expected struct HandOver", "expected a table, found 3"),
            (
                "unknown field `us`, there are no fields",
                "unknown key `us`, which this `kind` does not have, nor any other",
            ),
            ("missing field `pps`", "the key `pps` is missing"),
            ("unknown variant `x`, expected `a` or `b`", "unknown word `x`, expected `a` or `b`"),
            (
                "data did not match any variant of untagged enum Size",
                "expected a frame size: 64 to 65535 octets, \"64-1518\" or \"imix\"",
            ),
            ("duplicate key", "duplicate key"),
        ] {
            assert_eq!(in_words(message), words);
        }
    }

    #[test]
    fn a_key_is_told_with_its_table() {
        for (before, expected) in [
            ("cpus = ", "cpus"),
            ("title = \"x\"\n[costs]\npoll = ", "costs.poll"),
            ("[interface.wan]\n# ring\nring = ", "interface.wan.ring"),
            ("[interface.wan]\nmoderation = { kind = ", "interface.wan.moderation"),
            ("[costs", ""),
            ("", ""),
        ] {
            assert_eq!(key(before), expected, "{before:?}");
        }
    }
}
