//! The profiles that come with the program, and how a device is named on a command line.

use crate::document::FileError;
use crate::{Profile, Refusal};
use std::path::Path;
use std::sync::OnceLock;

const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// Why a device cannot be had by the name that was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No profile has that name.
    #[error("no NIC is called `{name}`; {}", suggest(.near))]
    Unknown {
        /// What was looked up.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// The device has no such mode.
    #[error(transparent)]
    Mode(#[from] Refusal),
    /// The profile breaks a rule.
    #[error(transparent)]
    Profile(#[from] FileError),
}

fn suggest(names: &[String]) -> String {
    let list = "`rxlane nics` lists all, and a path such as ./my-nic.toml names a profile of your own";
    if names.is_empty() { list.to_owned() } else { format!("near it are {}; {list}", names.join(", ")) }
}

/// The profiles that come with the program, by name. Errors: a profile breaks a rule (the crate's tests see
/// to it that none does).
pub fn builtin() -> Result<&'static [Profile], FileError> {
    static PROFILES: OnceLock<Result<Vec<Profile>, FileError>> = OnceLock::new();
    let load =
        || FILES.iter().map(|(stem, text)| Profile::parse(&format!("{stem}.toml"), stem, text)).collect();
    PROFILES.get_or_init(load).as_deref().map_err(Clone::clone)
}

/// The device of that name: `i210`, an alias, a PCI id as `lspci -nn` prints it (`8086:1533`, brackets and all
/// or without), a path (with a slash or ending in `.toml`), each with `+mode`
/// behind it where another mode is meant. Errors: there is no such device or mode, or the file is no profile.
pub fn lookup(name: &str) -> Result<Profile, LookupError> {
    let (device, mode) = match name.rsplit_once('+') {
        Some((device, mode)) if !mode.contains('/') => (device, Some(mode)),
        _ => (name, None),
    };
    let is_path = device.contains('/') || device.ends_with(".toml");
    let profile = if is_path { Profile::read(Path::new(device))? } else { by_name(device)? };
    Ok(match mode {
        Some(mode) => profile.with_mode(mode)?,
        None => profile,
    })
}

fn by_name(name: &str) -> Result<Profile, LookupError> {
    // The file of that name alone, where there is one: reading all of them takes milliseconds.
    if let Some((stem, text)) = FILES.iter().find(|(stem, _)| stem.eq_ignore_ascii_case(name)) {
        return Ok(Profile::parse(&format!("{stem}.toml"), stem, text)?);
    }
    let profiles = builtin()?;
    let id = name.trim_start_matches('[').trim_end_matches(']');
    let has_id = |profile: &Profile| profile.pci.iter().any(|pci| pci.eq_ignore_ascii_case(id));
    let found = profiles.iter().find(|profile| profile.is_called(name) || has_id(profile));
    found
        .cloned()
        .ok_or_else(|| LookupError::Unknown { name: name.to_owned(), near: near_names(profiles, name) })
}

fn near_names(profiles: &[Profile], name: &str) -> Vec<String> {
    let query = name.to_ascii_lowercase();
    let mut scored: Vec<(f64, String)> = Vec::new();
    for profile in profiles {
        let names = profile.aliases.iter().map(String::as_str).chain([profile.device()]);
        let drivers =
            ["linux", "freebsd", "netbsd", "openbsd"].into_iter().flat_map(|os| profile.drivers(os));
        let score = |word: &str| {
            let word = word.to_ascii_lowercase();
            if word.contains(&query) || query.contains(&word) {
                1.0
            } else {
                strsim::jaro_winkler(&query, &word)
            }
        };
        let best = names.map(score).fold(0.0, f64::max);
        let driven = drivers.into_iter().any(|driver| driver == query);
        if best > 0.8 || driven {
            scored.push((if driven { 1.0 } else { best }, profile.device().to_owned()));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(6).map(|(_, name)| name).collect()
}
