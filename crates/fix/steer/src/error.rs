//! Why `up`, `down`, `status` or `check` did not do what was requested.

use crate::facts::Fact;
use crate::{check, observation, plan, record};
use host::setting;
pub use service::ErrorKind as Kind;
use service::StateError;
use service::journal;
use service::record::RecordError;
use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such interface or CPU, or frames do not arrive there.
    #[error("{0}")]
    Usage(String),
    /// There is nothing to steer, or not here.
    #[error("{0}")]
    No(String),
    /// The machine does not give what steering takes.
    #[error("{0}")]
    Lacks(String),
    /// Frames do not arrive on this interface; the fact of a check says what it is.
    #[error("frames do not arrive on {0} with all their headers")]
    Misplaced(String, Box<Fact>),
    /// Something stops steering this interface as requested: one or more facts of a check.
    #[error("steering {0} is not possible as requested")]
    Stopped(String, Vec<Fact>),
    #[error("{0}")]
    Name(#[from] setting::ParseError),
    #[error(transparent)]
    Plan(#[from] plan::PlanError),
    #[error(transparent)]
    Programs(#[from] xdp::Error),
    #[error("{}", with_causes(.0))]
    Setting(#[from] journal::Error),
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error(transparent)]
    Observation(observation::Error),
    #[error(transparent)]
    Check(#[from] check::Error),
    #[error("the process that was to stay with {interface} did not start: {why}; nothing was left behind")]
    Keeper { interface: String, why: String },
}

impl Error {
    pub fn kind(&self) -> Kind {
        match self {
            Error::Usage(_) | Error::Misplaced(..) | Error::Name(_) => Kind::Usage,
            Error::No(_) => Kind::No,
            Error::Plan(plan::PlanError::Offline { .. }) => Kind::Lacks,
            Error::Plan(_) => Kind::Usage,
            Error::Stopped(_, facts)
                if facts.iter().all(|fact| matches!(fact.about, "kernel" | "driver")) =>
            {
                Kind::Lacks
            }
            Error::Stopped(..) => Kind::No,
            Error::Programs(xdp::Error::NoInterface { .. }) => Kind::Usage,
            Error::Programs(error) if error.lacks() => Kind::Lacks,
            Error::Programs(_) => Kind::No,
            Error::Record(
                record::Error::Record(RecordError::Busy(_))
                | record::Error::Kept { .. }
                | record::Error::Changing { .. },
            ) => Kind::No,
            Error::Lacks(_)
            | Error::Keeper { .. }
            | Error::Setting(_)
            | Error::Record(_)
            | Error::Observation(_)
            | Error::Check(_) => Kind::Lacks,
        }
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Error {
        Error::Record(error.into())
    }
}

impl From<StateError> for Error {
    fn from(error: StateError) -> Error {
        Error::Record(error.into())
    }
}

impl From<observation::Error> for Error {
    fn from(error: observation::Error) -> Error {
        match error {
            observation::Error::Machine(host::live::Error::UnknownInterface { name, known }) => {
                unknown(&name, &known)
            }
            other => Error::Observation(other),
        }
    }
}

/// An interface that is not there, with the names that look like it.
pub fn unknown(name: &str, known: &[String]) -> Error {
    let mut near: Vec<(f64, &str)> = known
        .iter()
        .map(|other| (strsim::jaro_winkler(name, other), other.as_str()))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<&str> = near.into_iter().take(3).map(|(_, other)| other).collect();
    let others = match (&near[..], known) {
        ([], []) => "there is none at all".to_owned(),
        ([], known) => format!("there are {}", known.join(", ")),
        (near, _) => format!("near it are {}", near.join(", ")),
    };
    Error::Usage(format!("there is no interface `{name}` in this network namespace; {others}"))
}

/// Why a setting was not changed, and who may.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format::with_causes(error);
    let denied = |error: &(dyn std::error::Error + 'static)| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let mut cause = error.source();
    while let Some(next) = cause {
        if denied(next) {
            text.push_str("; changing settings requires root");
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_interface_gets_those_near_it() {
        let known = ["lo", "enp1s0f0", "enp1s0f1", "br0"].map(str::to_owned).to_vec();
        let near = unknown("enp1sof0", &known);
        assert!(near.to_string().ends_with("near it are enp1s0f0, enp1s0f1"), "{near}");
        assert_eq!(near.kind(), Kind::Usage);
        let far = unknown("xyz", &known).to_string();
        assert!(far.ends_with("there are lo, enp1s0f0, enp1s0f1, br0"), "{far}");
        let none = unknown("xyz", &[]).to_string();
        assert!(none.ends_with("there is none at all"), "{none}");
    }
}
