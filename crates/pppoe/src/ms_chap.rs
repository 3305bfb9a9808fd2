//! MS-CHAPv2 (RFC 2759).

use std::fmt;

/// What the code of a failure means (RFC 2759 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code behind `E=`.
    pub code: u32,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            646 => f.write_str("logging on is restricted to certain hours"),
            647 => f.write_str("the account is disabled"),
            648 => f.write_str("the password has expired"),
            649 => f.write_str("the account may not dial in"),
            691 => f.write_str("unknown name or wrong password"),
            709 => f.write_str("the password could not be changed"),
            code => write!(f, "error {code}"),
        }
    }
}
