//! The end of a command that failed.

use crate::output::{CommandResult, Lacks, Outcome, complain};
use anyhow::anyhow;
use service::ErrorKind;
use service::memory::MemoryError;
use std::fmt;

/// An error that knows what it means for the exit code.
pub trait Failure: fmt::Display {
    /// What it means.
    fn kind(&self) -> ErrorKind;
}

macro_rules! failures {
    ($($error:ty),*) => {$(
        impl Failure for $error {
            fn kind(&self) -> ErrorKind {
                <$error>::kind(self)
            }
        }
    )*};
}

failures!(link::Error, client::Error, concentrator::Error, steer::error::Error, envelope::Error);

impl Failure for MemoryError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Lacks
    }
}

/// Its exit code, and its sentence on standard error.
pub fn failed(error: impl Failure) -> CommandResult {
    match error.kind() {
        ErrorKind::Usage => Err(anyhow!("{error}")),
        ErrorKind::Lacks => Err(Lacks(error.to_string()).into()),
        ErrorKind::No => {
            complain(&error.to_string());
            Ok(Outcome::Negative)
        }
    }
}
