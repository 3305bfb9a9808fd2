//! From the text of a profile to a [`Profile`], every rule of `profiles/SCHEMA.md` checked.

use crate::claim::{Citation, Claim, Source, Value};
use crate::document::{self, FileError, join, read_value};
use crate::profile::{Claims, DeviceOption, Mode, OptionValue, Profile};
use crate::schema::{self, Key, Kind, Stage};
use crate::tags::TagPattern;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value as Toml};

impl Profile {
    /// Reads a profile from a file. Errors: the file cannot be read, is no TOML, or breaks a rule of the schema.
    pub fn read(path: &Path) -> Result<Profile, FileError> {
        let text = document::text_of(path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Profile::parse(&path.display().to_string(), &stem, &text)
    }

    /// Reads a profile from its text. `file` is for messages; `stem` is the file's name without `.toml`,
    /// which has to be the name of the profile. Errors as [`Profile::read`].
    pub fn parse(file: &str, stem: &str, text: &str) -> Result<Profile, FileError> {
        profile(stem, document::read(file, text)?).map_err(|error| error.in_file(file))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    schema: u32,
    name: Text,
    title: Text,
    vendor: Text,
    aliases: Vec<String>,
    pci: Vec<String>,
    source: BTreeMap<String, Source>,
    #[serde(default)]
    mode: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModeHead {
    name: String,
    title: Text,
    enable: Text,
    #[serde(default)]
    available: Option<Available>,
    source: Citations,
}

/// Yes or no, under the source of the mode, or a claim with a source of its own.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected \"yes\", \"no\" or \"unknown\", or a claim of it")]
enum Available {
    Claim(RawClaim),
    Word(Toml),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    is: Toml,
    source: Citations,
    #[serde(default)]
    note: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOption {
    name: Text,
    #[serde(default)]
    default: Option<Text>,
    #[serde(default)]
    values: Vec<OptionValue>,
    source: Citations,
    #[serde(default)]
    note: Option<Text>,
}

/// A text with something in it.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Text(String);

impl TryFrom<String> for Text {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Text, &'static str> {
        if text.trim().is_empty() { Err("expected a text, found an empty one") } else { Ok(Text(text)) }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected \"KEY: place\", or a list of such texts")]
enum Citations {
    One(Citation),
    Several(Vec<Citation>),
}

type Checked<T> = Result<T, FileError>;

fn error(key: impl Into<String>, problem: impl Into<String>) -> FileError {
    FileError::of(key, problem)
}

fn profile(stem: &str, table: Table) -> Checked<Profile> {
    let (head, stages) = split(table, Stage::all());
    let Head { schema, name: Text(name), title, vendor, aliases, pci, source, mode } =
        read_value("", head).map_err(|mut error: FileError| {
            if error.problem.starts_with("unknown key") {
                let stages: Vec<&str> = Stage::all().map(Stage::name).collect();
                error.problem.push_str(&format!("; or a stage: {}", stages.join(", ")));
            }
            error
        })?;
    if schema != 1 {
        return Err(error("schema", format!("expected 1, found the number {schema}")));
    }
    if name != stem || !is_name(&name) {
        let rule = "expected the file's name without .toml, in lower case, digits and hyphens";
        return Err(error("name", format!("{rule}; found \"{name}\" in {stem}.toml")));
    }
    if let Some(id) = pci.iter().find(|id| !is_pci(id)) {
        let rule = "expected vendor:device of four lower-case hex digits each";
        return Err(error("pci", format!("{rule}, found \"{id}\"")));
    }
    let mut sources = Sources { declared: source, used: BTreeSet::new() };
    let (claims, device_options) = sources.claims(stages, "")?;
    let modes = sources.modes(mode)?;
    let Sources { declared, used } = sources;
    if let Some(unused) = declared.keys().find(|name| !used.contains(*name)) {
        return Err(error(format!("source.{unused}"), "is declared and no claim uses it"));
    }
    let (Text(title), Text(vendor)) = (title, vendor);
    let (sources, mode) = (declared, None);
    let profile = Profile { name, title, vendor, aliases, pci, sources, claims, device_options, modes, mode };
    consistent(&profile)?;
    for mode in &profile.modes {
        if let Ok(changed) = profile.with_mode(&mode.name) {
            consistent(&changed)?;
        }
    }
    Ok(profile)
}

/// The tables of the stages, and the rest.
fn split(mut table: Table, stages: impl Iterator<Item = Stage>) -> (Toml, Vec<(Stage, Toml)>) {
    let taken = stages.filter_map(|stage| Some((stage, table.remove(stage.name())?))).collect();
    (Toml::Table(table), taken)
}

/// The declared sources, and which of them were cited.
struct Sources {
    declared: BTreeMap<String, Source>,
    used: BTreeSet<String>,
}

impl Sources {
    fn claims(&mut self, stages: Vec<(Stage, Toml)>, within: &str) -> Checked<(Claims, Vec<DeviceOption>)> {
        let (mut claims, mut knobs) = (Claims::new(), Vec::new());
        for (stage, table) in stages {
            let entries: Table = read_value(&join(within, stage.name()), table)?;
            for (name, entry) in entries {
                let at = join(within, &format!("{stage}.{name}"));
                if stage == Stage::Moderate && name == "knob" && within.is_empty() {
                    let raw: Vec<RawOption> = read_value(&at, entry)?;
                    knobs = raw.into_iter().map(|knob| self.knob(knob, &at)).collect::<Result<_, _>>()?;
                    continue;
                }
                let key = schema::find(stage, &name).ok_or_else(|| unknown_key(stage, &name, &at))?;
                claims.insert((key.stage, key.name), self.claim(key, entry, &at)?);
            }
        }
        Ok((claims, knobs))
    }

    fn claim(&mut self, key: Key, entry: Toml, at: &str) -> Checked<Claim> {
        let claim = read_value(at, entry).map_err(|mut error: FileError| {
            error.problem.push_str(&format!(
                "; a claim is {{ is = VALUE, source = \"KEY: place\" }}, VALUE {}",
                key.kind
            ));
            error
        });
        let RawClaim { is, source, note } = claim?;
        let value = value(key.kind, &is, &join(at, "is"))?;
        let citations = self.cited(source, at)?;
        if value == Value::Unknown && note.is_none() {
            return Err(error(
                format!("{at}.note"),
                "is missing; an explicit \"unknown\" says what was looked for, or the key is left out",
            ));
        }
        Ok(Claim { value, citations, note: note.map(|Text(note)| note) })
    }

    fn knob(&mut self, knob: RawOption, at: &str) -> Checked<DeviceOption> {
        let RawOption { name: Text(name), default, values, source, note } = knob;
        let text = |text: Option<Text>| text.map(|Text(text)| text);
        Ok(DeviceOption {
            name,
            default: text(default),
            values,
            citations: self.cited(source, at)?,
            note: text(note),
        })
    }

    fn modes(&mut self, tables: Vec<Table>) -> Checked<Vec<Mode>> {
        let mut modes: Vec<Mode> = Vec::new();
        for (number, table) in tables.into_iter().enumerate() {
            // Of a mode `[mode.device]` makes no sense and is refused.
            let (head, stages) = split(table, Stage::all().skip(1));
            let at = format!("mode[{number}]");
            let ModeHead { name, title: Text(title), enable: Text(enable), available, source } =
                read_value(&at, head)?;
            if !is_name(&name) || modes.iter().any(|other| other.name == name) {
                let rule = "expected a name of its own in lower case, digits and hyphens";
                return Err(error(join(&at, "name"), format!("{rule}, found \"{name}\"")));
            }
            let at = format!("mode {name}");
            let available = match available {
                None => None,
                Some(Available::Word(word)) => Some(value(Kind::Tri, &word, &join(&at, "available"))?),
                Some(Available::Claim(claim)) => {
                    self.cited(claim.source, &join(&at, "available"))?;
                    Some(value(Kind::Tri, &claim.is, &join(&at, "available.is"))?)
                }
            };
            let available =
                available.and_then(|value| if let Value::Tri(is) = value { Some(is) } else { None });
            let citations = self.cited(source, &at)?;
            let (claims, _) = self.claims(stages, &at)?;
            modes.push(Mode { name, title, enable, available, citations, claims });
        }
        Ok(modes)
    }

    /// Citations of declared sources; never empty.
    fn cited(&mut self, citations: Citations, at: &str) -> Checked<Vec<Citation>> {
        let citations = match citations {
            Citations::One(citation) => vec![citation],
            Citations::Several(citations) => citations,
        };
        let at = join(at, "source");
        if citations.is_empty() {
            return Err(error(at, "expected \"KEY: place\", found an empty list"));
        }
        for Citation { source, .. } in &citations {
            if !self.declared.contains_key(source) {
                let names: Vec<&str> = self.declared.keys().map(String::as_str).collect();
                let hint = suggestion(source, &names);
                let problem = format!("names `{source}`, which no [source.{source}] declares; {hint}");
                return Err(error(at, problem));
            }
            self.used.insert(source.clone());
        }
        Ok(citations)
    }
}

fn unknown_key(stage: Stage, name: &str, at: &str) -> FileError {
    let elsewhere = schema::KEYS.iter().find(|key| key.name == name);
    let hint = match elsewhere {
        Some(key) => format!("it belongs to [{}]", key.stage),
        None => {
            let names: Vec<&str> =
                schema::KEYS.iter().filter(|key| key.stage == stage).map(|key| key.name).collect();
            suggestion(name, &names)
        }
    };
    error(at, format!("is no key of this stage; {hint}"))
}

fn value(kind: Kind, value: &Toml, at: &str) -> Checked<Value> {
    let wrong = |what: String| error(at, format!("expected {kind}, found {what}"));
    if value.as_str() == Some("unknown") {
        return Ok(Value::Unknown);
    }
    Ok(match (kind, value) {
        (Kind::Tri, Toml::String(word)) if word == "yes" || word == "no" => Value::Tri(word == "yes"),
        (Kind::Int, Toml::Integer(number)) => {
            Value::Int(u64::try_from(*number).map_err(|_| wrong(number.to_string()))?)
        }
        (Kind::Ints, Toml::Array(items)) => {
            let number = |item: &Toml| item.as_integer().and_then(|n| u64::try_from(n).ok());
            let numbers = items.iter().map(|item| number(item).ok_or_else(|| wrong(found(item))));
            Value::Ints(numbers.collect::<Result<_, _>>()?)
        }
        (Kind::Text, Toml::String(text)) => Value::Text(text.clone()),
        (Kind::OneOf(allowed), Toml::String(word)) if allowed.contains(&word.as_str()) => {
            Value::Text(word.clone())
        }
        (Kind::Fields, Toml::String(text)) if is_fields(text) => Value::Text(text.clone()),
        (Kind::Words(allowed), Toml::Array(items)) => {
            let mut words = Vec::new();
            for item in items {
                let word = item.as_str().ok_or_else(|| wrong(found(item)))?;
                if !allowed.is_empty() && !allowed.contains(&word) {
                    return Err(wrong(format!("\"{word}\"")));
                }
                words.push(word.to_owned());
            }
            Value::Words(words)
        }
        (Kind::Versions(allowed) | Kind::VersionSets(allowed), Toml::Array(items)) => {
            let several = matches!(kind, Kind::VersionSets(_));
            let mut words: Vec<String> = Vec::new();
            for item in items {
                let text = item.as_str().ok_or_else(|| wrong(found(item)))?;
                let version = text.split(':').next().unwrap_or_default();
                let twice = words.iter().any(|word| word.split(':').next() == Some(version));
                if twice || !is_version(text, allowed, several) {
                    return Err(wrong(format!("\"{text}\"")));
                }
                words.push(text.to_owned());
            }
            Value::Words(words)
        }
        (Kind::Stacks, Toml::Array(items)) => {
            let mut stacks = Vec::new();
            for item in items {
                let text = item.as_str().ok_or_else(|| wrong(found(item)))?;
                stacks.push(text.parse::<TagPattern>().map_err(|wrong| error(at, wrong.to_string()))?);
            }
            Value::Stacks(stacks)
        }
        _ => return Err(wrong(found(value))),
    })
}

/// Claims that contradict each other.
fn consistent(profile: &Profile) -> Checked<()> {
    let check = |key: Key, holds: bool, problem: String| {
        if holds { Ok(()) } else { Err(error(key.path(), problem)) }
    };
    if let (Some(queues), Some(bits)) = (profile.int(schema::RX_QUEUES), profile.int(schema::ENTRY_BITS)) {
        let fits = bits >= 64 || queues <= 1 << bits;
        check(schema::ENTRY_BITS, fits, format!("{bits} bits cannot name {queues} queues"))?;
    }
    if let (Some(sizes), Some(bits)) = (profile.ints(schema::TABLE_SIZES), profile.int(schema::INDEX_BITS)) {
        let first = sizes.first().copied().unwrap_or_default();
        let entries = u32::try_from(bits).ok().and_then(|bits| 1u64.checked_shl(bits));
        let fits = entries == Some(first);
        check(schema::INDEX_BITS, fits, format!("{bits} bits do not index {first} entries"))?;
    }
    if let (Some(all), Some(default)) =
        (profile.words(schema::HASH_TYPES), profile.words(schema::TYPES_DEFAULT))
    {
        let alien = default.iter().find(|word| !all.contains(word));
        let problem = format!("`{}` is not among hash.types", alien.map_or("", String::as_str));
        check(schema::TYPES_DEFAULT, alien.is_none(), problem)?;
    }
    let beyond = profile.text(schema::FRAME_BEYOND);
    let known = beyond != Some("max") || profile.int(schema::FRAME_MAX).is_some();
    check(schema::FRAME_BEYOND, known, "`max` needs admit.frame_max".to_owned())?;
    let rings = [schema::RING_MIN, schema::RING_DEFAULT, schema::RING_MAX].map(|key| profile.int(key));
    let rings: Vec<u64> = rings.into_iter().flatten().collect();
    check(schema::RING_MAX, rings.is_sorted(), "expected ring_min ≤ ring_default ≤ ring_max".to_owned())
}

fn found(value: &Toml) -> String {
    match value {
        Toml::String(text) => format!("\"{text}\""),
        Toml::Integer(number) => format!("the number {number}"),
        Toml::Boolean(answer) => format!("{answer} (write \"yes\" or \"no\" in quotes)"),
        Toml::Array(_) => "a list".to_owned(),
        Toml::Table(_) => "a table".to_owned(),
        Toml::Float(number) => format!("the number {number}"),
        Toml::Datetime(date) => format!("the date {date}"),
    }
}

fn suggestion(name: &str, known: &[&str]) -> String {
    let score = |word: &str| strsim::jaro_winkler(name, word);
    let best = known.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
    match best {
        Some(word) if score(word) > 0.8 => format!("did you mean `{word}`?"),
        _ => format!("known are {}", known.join(", ")),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_pci(id: &str) -> bool {
    let hex = |part: &str| part.len() == 4 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    id.split_once(':').is_some_and(|(vendor, device)| hex(vendor) && hex(device))
}

/// `KERNEL:WORD`, with more words behind `+` where `several` may stand there; `none` stands alone.
fn is_version(text: &str, allowed: &[&str], several: bool) -> bool {
    let Some((version, words)) = text.split_once(':') else { return false };
    let words: Vec<&str> = words.split('+').collect();
    let alone = words.len() == 1 || several && !words.contains(&"none");
    schema::KERNELS.contains(&version)
        && alone
        && words
            .iter()
            .all(|word| allowed.contains(&word.strip_suffix('?').filter(|_| several).unwrap_or(word)))
}

/// Letters of `ethtool -N … rx-flow-hash` that hash units use here, each once, in that order.
fn is_fields(text: &str) -> bool {
    let mut rest = "sdfn".chars();
    text.chars().all(|letter| rest.any(|known| known == letter))
}
