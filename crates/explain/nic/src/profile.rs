//! A profile: what is known of one device.

use crate::claim::{Citation, Claim, Source, Value};
use crate::schema::{Key, Stage};
use crate::tags::TagPattern;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Claims by stage and name.
pub(crate) type Claims = BTreeMap<(Stage, &'static str), Claim>;

/// What is known of one device, with the sources.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) vendor: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) pci: Vec<String>,
    pub(crate) sources: BTreeMap<String, Source>,
    pub(crate) claims: Claims,
    pub(crate) knobs: Vec<DeviceOption>,
    pub(crate) modes: Vec<Mode>,
    pub(crate) mode: Option<String>,
}

/// A setting of the interrupt moderation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOption {
    /// As ethtool or the driver spells it.
    pub name: String,
    /// Its default.
    pub default: Option<String>,
    /// What it can be set to, and what that means.
    pub values: Vec<OptionValue>,
    /// Where this is written.
    pub citations: Vec<Citation>,
    /// A sentence that a reader needs.
    pub note: Option<String>,
}

/// A value of a [`DeviceOption`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionValue {
    /// What to set.
    pub set: String,
    /// What it does.
    pub means: String,
}

/// Another way in which the same device can work: what it parses then, and how it is turned on.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Chosen as `device+name`.
    pub name: String,
    /// One line.
    pub title: String,
    /// How it is turned on, or that the usual driver cannot.
    pub enable: String,
    /// Whether an unmodified driver can be told to; `None` where nobody knows.
    pub available: Option<bool>,
    /// Where this is written.
    pub citations: Vec<Citation>,
    pub(crate) claims: Claims,
}

impl Mode {
    /// What the mode says of a key; `None` where it leaves the device as it is.
    pub fn claim(&self, key: Key) -> Option<&Claim> {
        self.claims.get(&(key.stage, key.name))
    }

    /// Whether the mode overrides no claim.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

/// A mode that the device does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    /// No mode of that name.
    #[error("{profile} has no mode `{mode}`; {}", known(.modes))]
    Unknown {
        /// The device.
        profile: String,
        /// What was asked for.
        mode: String,
        /// What there is.
        modes: Vec<String>,
    },
    /// A mode was chosen already.
    #[error("{profile} is in a mode already, and modes do not combine")]
    Twice {
        /// The device with its mode.
        profile: String,
    },
}

fn known(modes: &[String]) -> String {
    if modes.is_empty() { "it has none".to_owned() } else { format!("it has {}", modes.join(", ")) }
}

impl Profile {
    /// The name, with `+mode` where a mode was chosen: `i210`, `i210+double-vlan`.
    pub fn name(&self) -> String {
        match &self.mode {
            None => self.name.clone(),
            Some(mode) => format!("{}+{mode}", self.name),
        }
    }

    /// The name of the device alone.
    pub fn device(&self) -> &str {
        &self.name
    }

    /// The full name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The manufacturer.
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// Other names of the device.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// PCI ids, `vendor:device` in lower-case hexadecimal.
    pub fn pci(&self) -> &[String] {
        &self.pci
    }

    /// The file that the profile was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The declared sources by name.
    pub fn sources(&self) -> &BTreeMap<String, Source> {
        &self.sources
    }

    /// The settings of the interrupt moderation.
    pub fn device_options(&self) -> &[DeviceOption] {
        &self.knobs
    }

    /// The other modes of the device; none once a mode was chosen.
    pub fn modes(&self) -> &[Mode] {
        if self.mode.is_some() { &[] } else { &self.modes }
    }

    /// The mode that was chosen.
    pub fn mode(&self) -> Option<&Mode> {
        let name = self.mode.as_ref()?;
        self.modes.iter().find(|mode| mode.name == *name)
    }

    /// The same device in another mode. Errors: it has no such mode, or is in one already.
    pub fn with_mode(&self, name: &str) -> Result<Profile, ModeError> {
        if self.mode.is_some() {
            return Err(ModeError::Twice { profile: self.name() });
        }
        let Some(mode) = self.modes.iter().find(|mode| mode.name == name) else {
            return Err(ModeError::Unknown {
                profile: self.name.clone(),
                mode: name.to_owned(),
                modes: self.modes.iter().map(|mode| mode.name.clone()).collect(),
            });
        };
        let mut profile = self.clone();
        profile.claims.extend(mode.claims.clone());
        profile.mode = Some(name.to_owned());
        Ok(profile)
    }

    /// What is claimed of a key. `None` is unknown, as is a claim whose value is [`Value::Unknown`].
    pub fn claim(&self, key: Key) -> Option<&Claim> {
        self.claims.get(&(key.stage, key.name))
    }

    fn value(&self, key: Key) -> Option<&Value> {
        self.claim(key).map(|claim| &claim.value)
    }

    /// Yes or no; `None` where unknown.
    pub fn tri(&self, key: Key) -> Option<bool> {
        if let Some(Value::Tri(answer)) = self.value(key) { Some(*answer) } else { None }
    }

    /// A number; `None` where unknown.
    pub fn int(&self, key: Key) -> Option<u64> {
        if let Some(Value::Int(number)) = self.value(key) { Some(*number) } else { None }
    }

    /// Numbers; `None` where unknown.
    pub fn ints(&self, key: Key) -> Option<&[u64]> {
        if let Some(Value::Ints(numbers)) = self.value(key) { Some(numbers) } else { None }
    }

    /// A text or a word; `None` where unknown.
    pub fn text(&self, key: Key) -> Option<&str> {
        if let Some(Value::Text(text)) = self.value(key) { Some(text) } else { None }
    }

    /// Words; `None` where unknown.
    pub fn words(&self, key: Key) -> Option<&[String]> {
        if let Some(Value::Words(words)) = self.value(key) { Some(words) } else { None }
    }

    /// Tag stacks; `None` where unknown.
    pub fn stacks(&self, key: Key) -> Option<&[TagPattern]> {
        if let Some(Value::Stacks(stacks)) = self.value(key) { Some(stacks) } else { None }
    }

    /// Whether `name` is the device's name or one of its aliases, without case.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    /// The driver of that operating system (`linux`, `freebsd`, …), the usual one first.
    pub fn drivers<'a>(&'a self, system: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.words(crate::schema::DRIVERS).unwrap_or_default();
        all.iter()
            .filter_map(|word| word.split_once(':'))
            .filter(move |(os, _)| *os == system)
            .map(|(_, d)| d)
    }
}
