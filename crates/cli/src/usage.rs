//! What clap says about wrong usage, where more words than its own are needed.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Where an argument conflicts with a group of others, clap names the whole group. What is left of it is what `typed` has, so
/// that whoever reads the error sees which two do not go together.
pub fn to_the_point(mut error: Error, typed: &[String]) -> Error {
    let Some(ContextValue::Strings(others)) = error.get(ContextKind::PriorArg) else { return error };
    if error.kind() != ErrorKind::ArgumentConflict {
        return error;
    }
    let is_typed = |other: &&String| {
        let name = other.split([' ', '=', '[']).next().unwrap_or_default();
        typed
            .iter()
            .any(|word| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    };
    let left: Vec<String> = others.iter().filter(is_typed).cloned().collect();
    match left.as_slice() {
        // Short names, positional arguments.
        [] => {}
        [one] => drop(error.insert(ContextKind::PriorArg, ContextValue::String(one.clone()))),
        _ => drop(error.insert(ContextKind::PriorArg, ContextValue::Strings(left))),
    }
    error
}
