//! What metrics are made of: this machine as the doctor reads it, and what the processes of rxlane report.

use super::page::{self, Material};
use crate::arguments::StateArguments;
use crate::doctor_command::live::OwnPrograms;
use anyhow::Context;
use doctor::Case;
use host::live::{self, Options};
use host::text::Reader;
use serde::de::DeserializeOwned;
use service::Kind;
use service::metrics::Page;
use std::time::{Duration, Instant};

/// What findings would call the text; nothing is quoted here.
const TEXT: &str = "this machine";

/// What is read.
pub struct Gatherer {
    /// By name; `None`: all.
    pub interfaces: Option<Vec<String>>,
    pub state: StateArguments,
}

impl Gatherer {
    /// Reads the machine twice, with this time between.
    pub fn page(&mut self, between: Duration) -> anyhow::Result<Page> {
        let begin = Instant::now();
        let options = Options { interval: between, interfaces: self.interfaces.clone(), with_hash_key: true };
        let (mut own, mut bundle) = (OwnPrograms::of(&self.state), Vec::new());
        live::collect_with(&options, &mut own, &mut bundle, &mut |_| ())?;
        let mut reader = Reader::new();
        reader.read(TEXT, bundle.as_slice()).context("what this machine's tools print")?;
        let snapshot = reader.finish();
        let report = doctor::diagnose(&Case::new(&snapshot, None, None)?);
        Ok(page::page(&Material {
            took: begin.elapsed().saturating_sub(between),
            steering: own.steering.into_values().filter(|status| status.mode != "off").collect(),
            fastpath: own.fastpath,
            clients: self.answers(Kind::Session),
            concentrators: self.answers(Kind::Concentrator),
            snapshot,
            report,
        }))
    }

    /// What all instances of a kind report in this network namespace. Those that do not are left out.
    fn answers<T: DeserializeOwned>(&self, kind: Kind) -> Vec<T> {
        let Ok(instances) = self.state.instances(kind) else { return Vec::new() };
        let names = instances.names().unwrap_or_default();
        names.iter().filter_map(|name| instances.ask(name, "status").ok()).collect()
    }
}
