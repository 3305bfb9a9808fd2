//! A look at the machine under its load: counters twice, and the traffic of the interface meanwhile.

use capture::Capture;
use doctor::Traffic;
use host::Snapshot;
use host::live::{self, Options, Progress};
use host::sample::{self, Limits, Sample};
use host::setting::InterfaceName;
use host::text::Reader;
use std::io;
use std::thread;
use std::time::Duration;

pub struct Observation {
    pub snapshot: Snapshot,
    pub traffic: Option<Traffic>,
    pub sampled: Sampled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sampled {
    Taken(Sample),
    Unrequested,
    NotPermitted,
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Machine(#[from] live::Error),
    #[error("the state of this machine cannot be read")]
    Text(#[source] io::Error),
}

/// CPUs that a prediction distributes to where nothing says how many there are.
const USUAL_CPUS: u16 = 4;

/// Looks for as long as `interval`, zero for one sample of counters and none of traffic.
///
/// # Errors
///
/// [`Error::Machine`]: there is no such interface. That traffic cannot be sampled is no error: the result says why.
pub fn observe(
    interface: &InterfaceName,
    interval: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<Observation, Error> {
    let options =
        Options { interval, interfaces: Some(vec![interface.as_str().to_owned()]), with_hash_key: true };
    let (snapshot, sampled) = thread::scope(|scope| {
        let sampler = (!interval.is_zero()).then(|| scope.spawn(|| take(interface, interval)));
        let snapshot = snapshot(&options, progress);
        let sampled = sampler.map_or(Err(Sampled::Unrequested), |sampler| {
            sampler.join().unwrap_or_else(|_| Err(Sampled::Failed("the sampler failed".to_owned())))
        });
        (snapshot, sampled)
    });
    let snapshot = snapshot?;
    let cpus = snapshot.cpu_count().and_then(|cpus| u16::try_from(cpus).ok()).unwrap_or(USUAL_CPUS);
    let (traffic, sampled) = match sampled {
        Ok((pcap, taken)) => {
            let open = move || Capture::from_reader(io::Cursor::new(pcap.clone()), "live sample");
            let open = move || open().into_iter().collect();
            (Some(Traffic::new(open, Some(interface.as_str().to_owned()), cpus)), Sampled::Taken(taken))
        }
        Err(why) => (None, why),
    };
    Ok(Observation { snapshot, traffic, sampled })
}

fn snapshot(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Snapshot, Error> {
    let mut bundle = Vec::new();
    live::collect(options, &mut bundle, progress)?;
    let mut reader = Reader::new();
    reader.read("this machine", bundle.as_slice()).map_err(Error::Text)?;
    Ok(reader.finish())
}

fn take(interface: &InterfaceName, duration: Duration) -> Result<(Vec<u8>, Sample), Sampled> {
    let mut pcap = Vec::new();
    let limits = Limits { duration, ..Limits::default() };
    match sample::sample(interface, &limits, &mut pcap) {
        Ok(taken) => Ok((pcap, taken)),
        Err(sample::Error::Privilege { .. }) => Err(Sampled::NotPermitted),
        Err(error) => Err(Sampled::Failed(error.to_string())),
    }
}
