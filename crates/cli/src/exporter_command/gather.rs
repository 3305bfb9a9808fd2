//! What metrics are made of: this machine as the doctor reads it, and what the processes of rxlane report.

use super::page::{self, Material};
use crate::doctor_command::live::worded_status;
use anyhow::Context;
use doctor::Case;
use fastpath::NAME;
use host::live::{self, Options};
use host::text::Reader;
use serde::de::DeserializeOwned;
use service::metrics::Page;
use service::{Instances, Kind, StateDir};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use steer::record::Records;

/// What findings would call the text; nothing is quoted here.
const TEXT: &str = "this machine";

/// What is read.
pub struct Gatherer {
    /// By name; `None`: all.
    pub interfaces: Option<Vec<String>>,
    pub state: StateDir,
}

impl Gatherer {
    /// Reads the machine twice, with this time between.
    pub fn page(&mut self, between: Duration) -> anyhow::Result<Page> {
        let begin = Instant::now();
        let options = Options { interval: between, interfaces: self.interfaces.clone(), with_hash_key: true };
        let records = Records::new(self.state.path());
        let (mut steering, mut bundle) = (BTreeMap::new(), Vec::new());
        let mut steer_status = |name: &str| {
            let status = steer::status::status(name, Duration::ZERO, &records);
            let text = worded_status(&status);
            // The second sample's takes the place of the first's.
            steering.extend(status.ok().map(|status| (name.to_owned(), status)));
            text
        };
        live::collect_with(&options, &mut steer_status, &mut bundle, &mut |_| ())?;
        let mut reader = Reader::new();
        reader.read(TEXT, bundle.as_slice()).context("what this machine's tools print")?;
        let snapshot = reader.finish();
        let report = doctor::diagnose(&Case::new(&snapshot, None, None)?);
        let mut fastpath = self.answers(Kind::Fastpath, Some(NAME));
        Ok(page::page(&Material {
            took: begin.elapsed().saturating_sub(between),
            steering: steering.into_values().filter(|status| status.mode != "off").collect(),
            fastpath: fastpath.pop(),
            clients: self.answers(Kind::Session, None),
            concentrators: self.answers(Kind::Concentrator, None),
            snapshot,
            report,
        }))
    }

    /// What all instances of a kind report in this network namespace, or the one of this name. Those that do not are left out.
    fn answers<T: DeserializeOwned>(&self, kind: Kind, name: Option<&str>) -> Vec<T> {
        let Ok(instances) = Instances::new(kind, self.state.clone()) else { return Vec::new() };
        let names = match name {
            Some(name) => vec![name.to_owned()],
            None => instances.names().unwrap_or_default(),
        };
        names.iter().filter_map(|name| instances.ask(name, "status").ok()).collect()
    }
}
