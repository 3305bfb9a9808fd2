//! What metrics are made of: this machine as the doctor reads it, and what the processes of rxlane report.

use super::page::{self, Material};
use crate::arguments::StateArguments;
use crate::doctor_command::live::{OwnPrograms, printed};
use anyhow::Context;
use doctor::Case;
use fastpath::NAME;
use host::live::{self, Options, Programs};
use host::text::Reader;
use serde::de::DeserializeOwned;
use service::metrics::Page;
use service::{Instances, Kind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use steer::record::Records;
use steer::status::Status;

/// What findings would call the text; nothing is quoted here.
const TEXT: &str = "this machine";

/// What is read.
pub struct Gatherer {
    /// By name; `None`: all.
    pub interfaces: Option<Vec<String>>,
    pub state: StateArguments,
}

/// What rxlane's programs report while the machine is read, of which steering is kept.
struct Seen {
    own: OwnPrograms,
    records: Records,
    steering: BTreeMap<String, Status>,
}

impl Programs for Seen {
    fn steer_status(&mut self, name: &str) -> Result<String, String> {
        let status = steer::status::status(name, Duration::ZERO, &self.records);
        let text = printed(status.as_ref().map_err(ToString::to_string));
        // The second sample's takes the place of the first's.
        self.steering.extend(status.ok().map(|status| (name.to_owned(), status)));
        text
    }

    fn fastpath_status(&mut self) -> Option<Result<String, String>> {
        self.own.fastpath_status()
    }
}

impl Gatherer {
    /// Reads the machine twice, with this time between.
    pub fn page(&mut self, between: Duration) -> anyhow::Result<Page> {
        let begin = Instant::now();
        let options = Options { interval: between, interfaces: self.interfaces.clone(), with_hash_key: true };
        let own = OwnPrograms::of(&self.state);
        let mut seen = Seen { own, records: self.state.records(), steering: BTreeMap::new() };
        let mut bundle = Vec::new();
        live::collect_with(&options, &mut seen, &mut bundle, &mut |_| ())?;
        let mut reader = Reader::new();
        reader.read(TEXT, bundle.as_slice()).context("what this machine's tools print")?;
        let snapshot = reader.finish();
        let report = doctor::diagnose(&Case::new(&snapshot, None, None)?);
        let mut fastpath = self.answers(Kind::Fastpath, Some(NAME));
        Ok(page::page(&Material {
            took: begin.elapsed().saturating_sub(between),
            steering: seen.steering.into_values().filter(|status| status.mode != "off").collect(),
            fastpath: fastpath.pop(),
            clients: self.answers(Kind::Session, None),
            concentrators: self.answers(Kind::Concentrator, None),
            snapshot,
            report,
        }))
    }

    /// What all instances of a kind report in this network namespace, or the one of this name. Those that do not are left out.
    fn answers<T: DeserializeOwned>(&self, kind: Kind, name: Option<&str>) -> Vec<T> {
        let Ok(instances) = Instances::new(kind, self.state.folder()) else { return Vec::new() };
        let names = match name {
            Some(name) => vec![name.to_owned()],
            None => instances.names().unwrap_or_default(),
        };
        names.iter().filter_map(|name| instances.ask(name, "status").ok()).collect()
    }
}
