//! From the text of a profile to a [`Profile`], every rule of `profiles/SCHEMA.md` checked.

use crate::claim::{Citation, Claim, Source, SourceKind, Value};
use crate::profile::{Claims, Knob, KnobValue, Mode, Profile};
use crate::schema::{self, Key, Kind, Stage};
use crate::tags::TagPattern;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::{Table, Value as Toml};

/// A profile that breaks a rule: the file, the key and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {key}{problem}", key = if .key.is_empty() { String::new() } else { format!("{}: ", .key) })]
pub struct ProfileError {
    /// The file.
    pub file: String,
    /// The key, with its table: `parse.pppoe`; empty where the file as a whole is meant.
    pub key: String,
    /// What was expected and what was found.
    pub problem: String,
}

impl Profile {
    /// Reads a profile from a file. Errors: the file cannot be read, is no TOML, or breaks a rule of the schema.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let file = path.display().to_string();
        // The longest profile that comes with the program has a hundredth of this.
        const LONGEST: u64 = 1 << 20;
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
        read.map_err(|error| ProfileError {
            file: file.clone(),
            key: String::new(),
            problem: format!("cannot be read: {error}"),
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Profile::parse(&file, &stem, &text)
    }

    /// Reads a profile from its text. `file` is for messages; `stem` is the file's name without `.toml`,
    /// which has to be the name of the profile. Errors as [`Profile::read`].
    pub fn parse(file: &str, stem: &str, text: &str) -> Result<Profile, ProfileError> {
        let mut loader = Loader { file, sources: BTreeMap::new(), used: BTreeSet::new() };
        let table = text
            .parse::<Table>()
            .map_err(|error| loader.error("", format!("is no TOML: {}", error.to_string().trim_end())))?;
        loader.profile(stem, &table)
    }
}

const TOP: &[&str] = &["schema", "name", "title", "vendor", "aliases", "pci", "source", "mode"];

type Checked<T> = Result<T, ProfileError>;

struct Loader<'a> {
    file: &'a str,
    sources: BTreeMap<String, Source>,
    used: BTreeSet<String>,
}

impl Loader<'_> {
    fn error(&self, key: impl Into<String>, problem: impl Into<String>) -> ProfileError {
        ProfileError { file: self.file.to_owned(), key: key.into(), problem: problem.into() }
    }

    fn profile(&mut self, stem: &str, table: &Table) -> Checked<Profile> {
        let stages = Stage::ALL.map(Stage::name);
        self.only(table, "", &[TOP, stages.as_slice()].concat())?;
        match table.get("schema") {
            Some(Toml::Integer(1)) => {}
            other => return Err(self.error("schema", format!("expected 1, found {}", found(other)))),
        }
        let name = self.text(table, "", "name")?;
        if name != stem || !is_name(&name) {
            let rule = "expected the file's name without .toml, in lower case, digits and hyphens";
            return Err(self.error("name", format!("{rule}; found \"{name}\" in {stem}.toml")));
        }
        let pci = self.words(table, "", "pci")?;
        if let Some(id) = pci.iter().find(|id| !is_pci(id)) {
            let rule = "expected vendor:device of four lower-case hex digits each";
            return Err(self.error("pci", format!("{rule}, found \"{id}\"")));
        }
        self.declare_sources(table)?;
        let claims = self.claims(table, "", false)?;
        let knobs = self.knobs(table)?;
        let modes = self.modes(table)?;
        let profile = Profile {
            file: self.file.to_owned(),
            title: self.text(table, "", "title")?,
            vendor: self.text(table, "", "vendor")?,
            aliases: self.words(table, "", "aliases")?,
            name,
            pci,
            sources: self.sources.clone(),
            claims,
            knobs,
            modes,
            mode: None,
        };
        if let Some(unused) = self.sources.keys().find(|name| !self.used.contains(*name)) {
            return Err(self.error(format!("source.{unused}"), "is declared and no claim uses it"));
        }
        self.consistent(&profile)?;
        for mode in &profile.modes {
            if let Ok(changed) = profile.with_mode(&mode.name) {
                self.consistent(&changed)?;
            }
        }
        Ok(profile)
    }

    fn declare_sources(&mut self, table: &Table) -> Checked<()> {
        let Some(declared) = self.table(table, "", "source")? else {
            return Err(self.error("source", "expected at least one [source.KEY] table"));
        };
        for key in declared.keys() {
            let at = format!("source.{key}");
            let Some(source) = self.table(declared, "source", key)? else { continue };
            self.only(source, &at, &["kind", "title", "url"])?;
            let word = self.text(source, &at, "kind")?;
            let kind = SourceKind::WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind);
            let Some(kind) = kind else {
                let words: Vec<_> = SourceKind::WORDS.iter().map(|(word, _)| *word).collect();
                return Err(self.error(
                    format!("{at}.kind"),
                    format!("expected one of {}, found \"{word}\"", words.join(", ")),
                ));
            };
            let title = self.text(source, &at, "title")?;
            let url = self.optional_text(source, &at, "url")?;
            self.sources.insert(key.clone(), Source { kind, title, url });
        }
        Ok(())
    }

    /// The claims of all stage tables in `table`. In a mode `[mode.device]` makes no sense and is refused.
    fn claims(&mut self, table: &Table, within: &str, in_mode: bool) -> Checked<Claims> {
        let mut claims = Claims::new();
        for stage in Stage::ALL.into_iter().skip(usize::from(in_mode)) {
            let Some(entries) = self.table(table, within, stage.name())? else { continue };
            for (name, entry) in entries {
                if stage == Stage::Moderate && name == "knob" && !in_mode {
                    continue;
                }
                let at = join(within, &format!("{stage}.{name}"));
                let Some(key) = schema::find(stage, name) else {
                    return Err(self.unknown_key(stage, name, &at));
                };
                let claim = self.claim(key, entry, &at)?;
                claims.insert((key.stage, key.name), claim);
            }
        }
        Ok(claims)
    }

    fn unknown_key(&self, stage: Stage, name: &str, at: &str) -> ProfileError {
        let elsewhere = schema::KEYS.iter().find(|key| key.name == name);
        let hint = match elsewhere {
            Some(key) => format!("it belongs to [{}]", key.stage),
            None => {
                let names: Vec<&str> =
                    schema::KEYS.iter().filter(|key| key.stage == stage).map(|key| key.name).collect();
                suggestion(name, &names)
            }
        };
        self.error(at, format!("is no key of this stage; {hint}"))
    }

    fn claim(&mut self, key: Key, entry: &Toml, at: &str) -> Checked<Claim> {
        let Toml::Table(table) = entry else {
            let rule = "expected a claim: { is = VALUE, source = \"KEY: place\" }";
            return Err(self.error(at, format!("{rule}, found {}", found(Some(entry)))));
        };
        self.only(table, at, &["is", "source", "note"])?;
        let Some(is) = table.get("is") else {
            return Err(self.error(format!("{at}.is"), format!("is missing; expected {}", key.kind)));
        };
        let value = self.value(key.kind, is, &format!("{at}.is"))?;
        let citations = self.citations(table, at)?;
        let note = self.optional_text(table, at, "note")?;
        if value == Value::Unknown && note.is_none() {
            return Err(self.error(
                format!("{at}.note"),
                "is missing; an explicit \"unknown\" says what was looked for, or the key is left out",
            ));
        }
        Ok(Claim { value, citations, note })
    }

    fn value(&self, kind: Kind, value: &Toml, at: &str) -> Checked<Value> {
        let wrong = |what: String| self.error(at, format!("expected {kind}, found {what}"));
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
                let numbers = items.iter().map(|item| number(item).ok_or_else(|| wrong(found(Some(item)))));
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
                    let word = item.as_str().ok_or_else(|| wrong(found(Some(item))))?;
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
                    let text = item.as_str().ok_or_else(|| wrong(found(Some(item))))?;
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
                    let text = item.as_str().ok_or_else(|| wrong(found(Some(item))))?;
                    stacks
                        .push(text.parse::<TagPattern>().map_err(|error| self.error(at, error.to_string()))?);
                }
                Value::Stacks(stacks)
            }
            _ => return Err(wrong(found(Some(value)))),
        })
    }

    fn citations(&mut self, table: &Table, at: &str) -> Checked<Vec<Citation>> {
        let at = join(at, "source");
        let texts: Vec<&Toml> = match table.get("source") {
            Some(text @ Toml::String(_)) => vec![text],
            Some(Toml::Array(texts)) if !texts.is_empty() => texts.iter().collect(),
            None => return Err(self.error(at, "is missing; every claim names its source: \"KEY: place\"")),
            other => return Err(self.error(at, format!("expected \"KEY: place\", found {}", found(other)))),
        };
        let mut citations = Vec::new();
        for text in texts {
            let parts = text.as_str().and_then(|text| text.split_once(':'));
            let Some((source, place)) =
                parts.map(|(s, p)| (s.trim(), p.trim())).filter(|(_, p)| !p.is_empty())
            else {
                return Err(self.error(at, format!("expected \"KEY: place\", found {}", found(Some(text)))));
            };
            if !self.sources.contains_key(source) {
                let names: Vec<&str> = self.sources.keys().map(String::as_str).collect();
                let hint = suggestion(source, &names);
                return Err(
                    self.error(at, format!("names `{source}`, which no [source.{source}] declares; {hint}"))
                );
            }
            self.used.insert(source.to_owned());
            citations.push(Citation { source: source.to_owned(), place: place.to_owned() });
        }
        Ok(citations)
    }

    fn knobs(&mut self, table: &Table) -> Checked<Vec<Knob>> {
        let Some(moderate) = self.table(table, "", "moderate")? else { return Ok(Vec::new()) };
        let mut knobs = Vec::new();
        for (at, knob) in self.tables(moderate, "moderate", "knob")? {
            self.only(knob, &at, &["name", "default", "values", "source", "note"])?;
            let mut values = Vec::new();
            for (at, value) in self.tables(knob, &at, "values")? {
                self.only(value, &at, &["set", "means"])?;
                values.push(KnobValue {
                    set: self.text(value, &at, "set")?,
                    means: self.text(value, &at, "means")?,
                });
            }
            knobs.push(Knob {
                name: self.text(knob, &at, "name")?,
                default: self.optional_text(knob, &at, "default")?,
                values,
                citations: self.citations(knob, &at)?,
                note: self.optional_text(knob, &at, "note")?,
            });
        }
        Ok(knobs)
    }

    fn modes(&mut self, table: &Table) -> Checked<Vec<Mode>> {
        let mut modes: Vec<Mode> = Vec::new();
        let keys = ["name", "title", "enable", "available", "source"];
        let stages = Stage::ALL.map(Stage::name);
        for (at, mode) in self.tables(table, "", "mode")? {
            self.only(mode, &at, &[keys.as_slice(), stages.get(1..).unwrap_or_default()].concat())?;
            let name = self.text(mode, &at, "name")?;
            if !is_name(&name) || modes.iter().any(|other| other.name == name) {
                let rule = "expected a name of its own in lower case, digits and hyphens";
                return Err(self.error(join(&at, "name"), format!("{rule}, found \"{name}\"")));
            }
            let at = format!("mode {name}");
            let available = match mode.get("available") {
                None => None,
                Some(value) => match self.available(value, &join(&at, "available"))? {
                    Value::Tri(answer) => Some(answer),
                    _ => None,
                },
            };
            modes.push(Mode {
                title: self.text(mode, &at, "title")?,
                enable: self.text(mode, &at, "enable")?,
                available,
                citations: self.citations(mode, &at)?,
                claims: self.claims(mode, &at, true)?,
                name,
            });
        }
        Ok(modes)
    }

    /// Yes or no, under the source of the mode, or a claim with a source of its own.
    fn available(&mut self, value: &Toml, at: &str) -> Checked<Value> {
        let Toml::Table(table) = value else { return self.value(Kind::Tri, value, at) };
        self.only(table, at, &["is", "source", "note"])?;
        self.citations(table, at)?;
        self.value(Kind::Tri, table.get("is").unwrap_or(value), &join(at, "is"))
    }

    /// Claims that contradict each other.
    fn consistent(&self, profile: &Profile) -> Checked<()> {
        let check = |key: Key, holds: bool, problem: String| {
            if holds { Ok(()) } else { Err(self.error(key.path(), problem)) }
        };
        if let (Some(queues), Some(bits)) = (profile.int(schema::RX_QUEUES), profile.int(schema::ENTRY_BITS))
        {
            let fits = bits >= 64 || queues <= 1 << bits;
            check(schema::ENTRY_BITS, fits, format!("{bits} bits cannot name {queues} queues"))?;
        }
        if let (Some(sizes), Some(bits)) =
            (profile.ints(schema::TABLE_SIZES), profile.int(schema::INDEX_BITS))
        {
            let first = sizes.first().copied().unwrap_or_default();
            let fits = bits >= 64 || first == 1 << bits;
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

    fn only(&self, table: &Table, within: &str, allowed: &[&str]) -> Checked<()> {
        match table.keys().find(|key| !allowed.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(self.error(join(within, key), format!("is no key here; {}", suggestion(key, allowed))))
            }
        }
    }

    fn text(&self, table: &Table, within: &str, key: &str) -> Checked<String> {
        match self.optional_text(table, within, key)? {
            Some(text) => Ok(text),
            None => Err(self.error(join(within, key), "is missing; expected a text")),
        }
    }

    fn optional_text(&self, table: &Table, within: &str, key: &str) -> Checked<Option<String>> {
        match table.get(key) {
            None => Ok(None),
            Some(Toml::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            other => Err(self.error(join(within, key), format!("expected a text, found {}", found(other)))),
        }
    }

    fn words(&self, table: &Table, within: &str, key: &str) -> Checked<Vec<String>> {
        let wrong =
            |found: String| self.error(join(within, key), format!("expected a list of texts, found {found}"));
        match table.get(key) {
            Some(Toml::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(found(Some(item)))))
                .collect(),
            other => Err(wrong(found(other))),
        }
    }

    fn table<'t>(&self, table: &'t Table, within: &str, key: &str) -> Checked<Option<&'t Table>> {
        match table.get(key) {
            None => Ok(None),
            Some(Toml::Table(inner)) => Ok(Some(inner)),
            other => Err(self.error(join(within, key), format!("expected a table, found {}", found(other)))),
        }
    }

    fn tables<'t>(&self, table: &'t Table, within: &str, key: &str) -> Checked<Vec<(String, &'t Table)>> {
        let at = join(within, key);
        let items = match table.get(key) {
            None => return Ok(Vec::new()),
            Some(Toml::Array(items)) => items,
            other => return Err(self.error(at, format!("expected [[{key}]] tables, found {}", found(other)))),
        };
        let mut tables = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let at = format!("{at}[{number}]");
            match item {
                Toml::Table(inner) => tables.push((at, inner)),
                other => {
                    return Err(self.error(at, format!("expected a table, found {}", found(Some(other)))));
                }
            }
        }
        Ok(tables)
    }
}

fn join(within: &str, key: &str) -> String {
    if within.is_empty() { key.to_owned() } else { format!("{within}.{key}") }
}

fn found(value: Option<&Toml>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Toml::String(text)) => format!("\"{text}\""),
        Some(Toml::Integer(number)) => format!("the number {number}"),
        Some(Toml::Boolean(answer)) => format!("{answer} (write \"yes\" or \"no\" in quotes)"),
        Some(Toml::Array(_)) => "a list".to_owned(),
        Some(Toml::Table(_)) => "a table".to_owned(),
        Some(Toml::Float(number)) => format!("the number {number}"),
        Some(Toml::Datetime(date)) => format!("the date {date}"),
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
