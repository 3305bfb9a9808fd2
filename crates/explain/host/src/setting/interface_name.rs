//! Names of network interfaces.

use super::ParseError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a network interface, as the kernel allows it (`dev_valid_name()` in net/core/dev.c) and a command
/// can carry it: 1 to 15 bytes (`IFNAMSIZ` less the final NUL), neither `.` nor `..`, without `/`, `:` and blanks.
/// Control characters and a leading `-`, which a program would take for an option, are refused although the kernel
/// lets them pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InterfaceName(Box<str>);

impl InterfaceName {
    /// Most bytes of a name: `IFNAMSIZ` (16, linux/if.h) less the final NUL.
    pub const LONGEST: usize = 15;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterfaceName {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<InterfaceName, ParseError> {
        let forbidden = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        let why = match name {
            "" => "it is empty",
            "." | ".." => "the kernel has no such name",
            _ if name.len() > InterfaceName::LONGEST => "it is longer than 15 bytes",
            _ if name.starts_with('-') => "a program would take it for an option",
            _ if name.contains(forbidden) => "it has a slash, a colon, a blank or a control character",
            _ => return Ok(InterfaceName(name.into())),
        };
        Err(ParseError::Interface { name: name.to_owned(), why })
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = ParseError;

    fn try_from(name: String) -> Result<InterfaceName, ParseError> {
        name.parse()
    }
}

impl From<InterfaceName> for String {
    fn from(name: InterfaceName) -> String {
        name.0.into()
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_kernel_are_names() {
        for name in ["eth0", "eth0.35", "enp1s0f0np0", "a", "123456789012345", "wan$(id)", "ü0", "..."] {
            assert_eq!(name.parse::<InterfaceName>().map(|name| name.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn what_would_leave_the_folder_or_the_argument_is_no_name() {
        let long = "1234567890123456";
        for name in ["", ".", "..", "../eth0", "a/b", "eth0:1", "a b", "a\n", "a\u{a0}b", "-x", "a\x1b", long]
        {
            let error = name.parse::<InterfaceName>().expect_err(name);
            assert!(matches!(error, ParseError::Interface { .. }), "{error}");
        }
    }
}
