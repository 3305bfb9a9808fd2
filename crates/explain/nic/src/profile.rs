//! A profile: what is known of one device.

#![expect(missing_docs, reason = "profiles/SCHEMA.md says what each key is")]

use crate::Refusal;
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
    pub(crate) name: String,
    pub title: String,
    pub vendor: String,
    pub aliases: Vec<String>,
    /// PCI ids, `vendor:device` in lower-case hexadecimal.
    pub pci: Vec<String>,
    /// Declared sources by name.
    pub sources: BTreeMap<String, Source>,
    pub(crate) claims: Claims,
    pub device_options: Vec<DeviceOption>,
    pub(crate) modes: Vec<Mode>,
    pub(crate) mode: Option<String>,
}

/// A setting of the interrupt moderation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOption {
    /// As ethtool or the driver spells it.
    pub name: String,
    pub default: Option<String>,
    /// What it can be set to, and what that means.
    pub values: Vec<OptionValue>,
    pub citations: Vec<Citation>,
    pub note: Option<String>,
}

/// A value of a [`DeviceOption`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionValue {
    pub set: String,
    pub means: String,
}

/// Another way in which the same device can work: what it parses then, and how it is turned on.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Chosen as `device+name`.
    pub name: String,
    pub title: String,
    /// How it is turned on, or that the usual driver cannot.
    pub enable: String,
    /// Whether an unmodified driver can be configured to; `None` where nobody knows.
    pub available: Option<bool>,
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
    pub fn with_mode(&self, name: &str) -> Result<Profile, Refusal> {
        if self.mode.is_some() {
            let problem = format!("{} is in a mode already, and modes do not combine", self.name());
            return Err(Refusal(problem));
        }
        let Some(mode) = self.modes.iter().find(|mode| mode.name == name) else {
            let names: Vec<&str> = self.modes.iter().map(|mode| mode.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Refusal(format!("{} has no mode `{name}`; it has {known}", self.name)));
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
