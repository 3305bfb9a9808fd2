//! Names of interfaces; names and values of parameters: features, coalescing, sysctls.

use super::ParseError;
use kernel::cpu::CpuSet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What all texts that were checked when they were parsed have in common.
macro_rules! checked_text {
    ($($name:ident)*) => { $(
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )* };
}

checked_text! { InterfaceName Parameter SysctlName SysctlValue }

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
        Err(ParseError(format!("{name:?} is no name of an interface: {why}")))
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

/// The name of a feature or of a coalescing parameter, as ethtool spells it (`rx-gro-hw`, `adaptive-rx`): letters,
/// digits, `-` and `_`, at most 32 bytes with the final NUL (`ETH_GSTRING_LEN` of linux/ethtool.h).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Parameter(Box<str>);

impl FromStr for Parameter {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Parameter, ParseError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 31 || name.starts_with('-') || !name.chars().all(legal) {
            return Err(ParseError::no(name, "name of a parameter of ethtool"));
        }
        Ok(Parameter(name.into()))
    }
}

/// The value of a coalescing parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Microseconds, frames, seconds or packets a second, as the parameter's name says.
    Number(u32),
    Switch(bool),
}

impl FromStr for Amount {
    type Err = ParseError;

    fn from_str(word: &str) -> Result<Amount, ParseError> {
        match super::output::switch(word) {
            Some(on) => Ok(Amount::Switch(on)),
            None => super::parse::number("number, on or off", word).map(Amount::Number),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Number(number) => fmt::Display::fmt(number, f),
            Amount::Switch(on) => f.pad(if *on { "on" } else { "off" }),
        }
    }
}

/// The name of a sysctl, with dots between its parts; a dot within a part, as in the name of a VLAN device, is
/// written `/` (sysctl(8): `net.ipv4.conf.eth0/35.rp_filter`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SysctlName(Box<str>);

impl SysctlName {
    /// The file below `/proc/sys`.
    pub fn file(&self) -> String {
        let swapped = self.0.chars().map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        });
        format!("/proc/sys/{}", swapped.collect::<String>())
    }

    /// Whether the value is a mask of CPUs, which the kernel prints in another form than it was written.
    fn is_mask(&self) -> bool {
        matches!(&*self.0, "net.core.rps_default_mask" | "net.core.flow_limit_cpu_bitmap")
    }

    /// Whether the two values are the same one.
    pub(crate) fn is_same(&self, one: &SysctlValue, other: &SysctlValue) -> bool {
        let masks = || {
            let [one, other] = [one, other].map(|value| CpuSet::parse_mask(value.as_str()).ok());
            self.is_mask() && one.is_some() && one == other
        };
        one == other || masks()
    }
}

impl FromStr for SysctlName {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<SysctlName, ParseError> {
        let error = || ParseError::no(name, "name of a sysctl");
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        if !name.contains('.') || name.len() > 256 || !name.chars().all(legal) || name.starts_with('-') {
            return Err(error());
        }
        // A part that is empty, `.` or `..` once it is a file name would lead elsewhere.
        let leads_elsewhere = |part: &str| part.chars().all(|c| c == '/');
        if name.split('.').any(leads_elsewhere) {
            return Err(error());
        }
        Ok(SysctlName(name.into()))
    }
}

/// The value of a sysctl: one line, with single spaces where the kernel prints tabs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SysctlValue(Box<str>);

impl SysctlValue {
    /// Most bytes: what procfs takes in one write is a page.
    pub const LONGEST: usize = 4095;
}

impl FromStr for SysctlValue {
    type Err = ParseError;

    fn from_str(value: &str) -> Result<SysctlValue, ParseError> {
        let illegal = |c: char| c.is_control() && c != '\t';
        if value.len() > SysctlValue::LONGEST || value.contains(illegal) {
            let found: String = value.chars().take(60).collect();
            return Err(ParseError::no(&found, "value of one line"));
        }
        Ok(SysctlValue(
            value.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").into(),
        ))
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
            let error = name.parse::<InterfaceName>().expect_err(name).to_string();
            assert!(error.contains("is no name of an interface: "), "{error}");
        }
    }

    #[test]
    fn a_sysctl_is_a_file_below_proc_sys() {
        let file = |name: &str| name.parse::<SysctlName>().map(|name| name.file());
        assert_eq!(file("net.core.netdev_budget").as_deref(), Ok("/proc/sys/net/core/netdev_budget"));
        let vlan = file("net.ipv4.conf.eth0/35.rp_filter");
        assert_eq!(vlan.as_deref(), Ok("/proc/sys/net/ipv4/conf/eth0.35/rp_filter"));
        for name in
            ["", "net", ".net.x", "net..x", "net.x.", "net.//.x", "net./.x", "net.a b", "net.x\n", "-w.x"]
        {
            assert!(file(name).is_err(), "{name}");
        }
    }

    #[test]
    fn values_are_one_line_with_single_spaces() {
        let value = |text: &str| text.parse::<SysctlValue>().map(|value| value.to_string());
        assert_eq!(value("4096\t131072\t 6291456 ").as_deref(), Ok("4096 131072 6291456"));
        assert_eq!(value("").as_deref(), Ok(""));
        assert!(value("1\n2").is_err() && value("\x1b[m").is_err() && value(&"1".repeat(5000)).is_err());
    }

    #[test]
    fn masks_are_compared_as_masks() {
        let name: SysctlName = "net.core.rps_default_mask".parse().expect("a name");
        let [short, long, other] =
            ["f", "00000000,0000000f", "e"].map(|value| value.parse::<SysctlValue>().expect("a value"));
        assert!(name.is_same(&short, &long) && !name.is_same(&short, &other));
        let number: SysctlName = "net.core.netdev_budget".parse().expect("a name");
        assert!(!number.is_same(&short, &long));
    }

    #[test]
    fn parameters_are_words_of_ethtool() {
        for name in ["gro", "tx-udp_tnl-segmentation", "rx-usecs-irq"] {
            assert!(name.parse::<Parameter>().is_ok(), "{name}");
        }
        for name in ["", "-K", "a b", "a;b", "a\n", &"x".repeat(32)] {
            assert!(name.parse::<Parameter>().is_err(), "{name}");
        }
        assert_eq!("on".parse(), Ok(Amount::Switch(true)));
        assert_eq!("30".parse(), Ok(Amount::Number(30)));
        assert!("030".parse::<Amount>().is_err() && "-1".parse::<Amount>().is_err());
    }
}
