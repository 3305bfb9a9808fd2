//! Values by the dotted name of their key.

use toml::{Table, Value};

/// Why a key cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// A part of the key is no table of the file.
    #[error("the scenario has no `{0}`")]
    Missing(String),
    /// A part of the key is something else than a table.
    #[error("`{0}` is a value and has nothing below it")]
    Value(String),
}

/// Sets the value of a key such as `traffic.line.arrival.poisson_pps`. Tables on the way have to be there; the last part
/// may be new, since most keys have defaults. Errors: they are not.
pub fn set(table: &mut Table, key: &str, value: Value) -> Result<(), SetError> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut at = table;
    for (depth, part) in parts.iter().enumerate() {
        let name = || parts[..=depth].join(".");
        // Tables with defaults may be left out of a file; those with names of their own may not.
        let optional = depth == 0 && ["costs", "driver", "hand_over", "gro"].contains(part);
        let below = match at.contains_key(*part) || !optional {
            true => at.get_mut(*part).ok_or_else(|| SetError::Missing(name()))?,
            false => at.entry((*part).to_owned()).or_insert_with(|| Value::Table(Table::new())),
        };
        at = below.as_table_mut().ok_or_else(|| SetError::Value(name()))?;
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_followed_to_their_value() {
        let mut table: Table = "cpus = 2\n[interface.wan]\nring = 256\n".parse().unwrap();
        set(&mut table, "interface.wan.ring", Value::Integer(4096)).unwrap();
        set(&mut table, "interface.wan.queues", Value::Integer(2)).unwrap();
        set(&mut table, "costs.poll", Value::Float(1.5)).unwrap();
        let text = table.to_string();
        assert!(text.contains("ring = 4096") && text.contains("queues = 2") && text.contains("poll = 1.5"));
        let wrong =
            |table: &mut Table, key: &str| set(table, key, Value::Integer(1)).unwrap_err().to_string();
        assert_eq!(wrong(&mut table, "interface.lan.ring"), "the scenario has no `interface.lan`");
        assert_eq!(wrong(&mut table, "cpus.0"), "`cpus` is a value and has nothing below it");
    }
}
