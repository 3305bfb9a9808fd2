//! What clap says about wrong usage, where more words than its own are needed.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// The error with what `typed` adds to it.
pub fn to_the_point(error: Error, command: &Command, typed: &[String]) -> Error {
    match error.kind() {
        ErrorKind::ArgumentConflict => without_others(error, typed),
        ErrorKind::UnknownArgument => negative(&error, command, typed).unwrap_or(error),
        _ => error,
    }
}

/// A negative number behind an option, which clap takes for an option of its own. None may be negative.
fn negative(error: &Error, command: &Command, typed: &[String]) -> Option<Error> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_number = |word: &str| {
        word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let (option, value) = typed.iter().zip(typed.iter().skip(1)).find(|(option, value)| {
        is_number(value)
            && value.starts_with(unknown.as_str())
            && option.strip_prefix("--").is_some_and(|name| takes_value(command, name))
    })?;
    let message = format!(
        "invalid value '{value}' for '{option}': it cannot be negative\n\nFor more information, try '--help'.\n"
    );
    Some(Error::raw(ErrorKind::ValueValidation, message))
}

/// Whether this option of a command, or of one below it, has a value.
fn takes_value(command: &Command, name: &str) -> bool {
    command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(name) && argument.get_action().takes_values())
        || command.get_subcommands().any(|below| takes_value(below, name))
}

/// Where an argument conflicts with a group of others, clap names the whole group. What is left of it is what `typed` has, so
/// that whoever reads the error sees which two do not go together.
fn without_others(mut error: Error, typed: &[String]) -> Error {
    let Some(ContextValue::Strings(others)) = error.get(ContextKind::PriorArg) else { return error };
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
