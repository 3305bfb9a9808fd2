//! `rxlane exporter`: metrics of this machine, served over HTTP or written once.

mod gather;
mod page;

use crate::arguments::{StateArguments, seconds};
use crate::background::{no_signals, unread};
use crate::output::{CommandResult, Lacks, Outcome, Output, complain, failure};
use crate::output_file::OutputFile;
use anyhow::bail;
use gather::Gatherer;
use kernel::process::inherited_sockets;
use service::event_loop::ready;
use service::metrics::{Address, Format, Publisher, Server, unservable};
use service::notify;
use service::signals::{HangUp, end_requests};
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Where metrics are served unless something else is said.
const LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 9145);
/// Between two samples of what is served.
const INTERVAL: Duration = Duration::from_secs(15);
/// Between the samples of the first page, and of what is written once.
const FIRST: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
#[command(after_help = "\
There is no encryption and no password: metrics are served on the loopback interface, or at a Unix socket, and a reverse proxy gives them \
to other machines. Under systemd's socket activation the socket is the manager's.\n\n\
Exit codes: 0 ended on request, 2 wrong usage or input, 3 a privilege, an address or a feature of the system is missing.\n\n\
Examples:\n  \
rxlane exporter\n  \
rxlane exporter --listen 127.0.0.1:9999 --interval 60\n  \
rxlane exporter --socket /run/rxlane-exporter.sock\n  \
rxlane exporter --once -o /var/lib/prometheus/node-exporter/rxlane.prom")]
pub struct ExporterArguments {
    /// Read these interfaces, what they stand on, and what stands on them [default: all].
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Address and port to serve metrics at, under /metrics [default: 127.0.0.1:9145].
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["socket", "once"], value_parser = listener)]
    listen: Option<SocketAddr>,
    /// Serve them at this Unix socket instead.
    #[arg(long, value_name = "PATH", conflicts_with = "once")]
    socket: Option<PathBuf>,
    /// Time between two samples of the machine, seconds [default: 15; with --once 2].
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = seconds(1.0, 3600.0))]
    interval: Option<Duration>,
    /// Sample once and print the metrics, in the format that the textfile collector of node_exporter reads.
    #[arg(long)]
    once: bool,
    /// Write them to this file, which is replaced at once and whole.
    #[arg(short, long, value_name = "FILE", requires = "once")]
    output: Option<PathBuf>,
    #[command(flatten)]
    state: StateArguments,
}

fn listener(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:9145 or [::1]:9145")
}

impl ExporterArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if self.once { self.write(out) } else { self.serve(out) }
    }

    fn gatherer(&self) -> Gatherer {
        let interfaces = Some(self.interfaces.clone()).filter(|names| !names.is_empty());
        Gatherer { interfaces, state: self.state.clone() }
    }

    fn write(&self, out: &mut Output) -> CommandResult {
        // Before the seconds of sampling, not after.
        let file =
            self.output.as_deref().map(|path| OutputFile::create("--output", path, &[])).transpose()?;
        let page = self.gatherer().page(self.interval.unwrap_or(FIRST))?;
        let text = page.text(Format::Prometheus);
        match file {
            Some(file) => file.write(&text)?,
            None => out.write_all(text.as_bytes())?,
        }
        Ok(Outcome::Success)
    }

    fn serve(&self, out: &mut Output) -> CommandResult {
        let (stop, _ask) = end_requests(HangUp::Ends).map_err(no_signals)?;
        let server = self.server()?;
        let mut gatherer = self.gatherer();
        server.serve(gatherer.page(FIRST)?);
        unread(self.started(out, server.address()).and_then(|()| out.flush()))?;
        // Without a service manager there is none to notify.
        let _ = notify::ready(&format!("metrics are served at {}", server.address()));
        let (interval, publisher) = (self.interval.unwrap_or(INTERVAL), server.publisher());
        // Ends with the process: nothing that it does has to be undone.
        thread::Builder::new()
            .name("gatherer".to_owned())
            .spawn(move || rounds(gatherer, interval, &publisher))?;
        while !ready([Some(stop.as_fd())], None)?[0] {}
        let _ = notify::stopping();
        Ok(Outcome::Success)
    }

    fn server(&self) -> anyhow::Result<Server> {
        let address = match (&self.socket, self.listen) {
            (Some(path), _) => Address::Path(path.clone()),
            (None, Some(address)) => Address::Ip(address),
            (None, None) => {
                let mut inherited = inherited_sockets();
                match (inherited.pop(), inherited.pop()) {
                    (Some(_), Some(_)) => bail!("the service manager gave several sockets: one is served"),
                    (Some(socket), None) => {
                        let failed = |error| Lacks(format!("the service manager's socket: {error}"));
                        return Ok(Server::inherited(socket).map_err(failed)?);
                    }
                    (None, _) => Address::Ip(LISTEN.into()),
                }
            }
        };
        Ok(Server::bind(&address).map_err(|error| Lacks(unservable(&address, &error)))?)
    }

    fn started(&self, out: &mut Output, address: &Address) -> std::io::Result<()> {
        match address {
            Address::Ip(address) => writeln!(out, "Metrics are served at http://{address}/metrics."),
            Address::Path(path) => writeln!(
                out,
                "Metrics are served at {path}: curl --unix-socket {path} http://localhost/metrics",
                path = path.display()
            ),
        }
    }
}

/// Samples and serves, again and again. What fails is said once, until something else does.
fn rounds(mut gatherer: Gatherer, interval: Duration, publisher: &Publisher) {
    let mut last = String::new();
    loop {
        let begin = Instant::now();
        match gatherer.page(interval) {
            Ok(page) => {
                publisher.publish(page);
                last.clear();
            }
            Err(error) => {
                let (_, sentence) = failure(&error);
                publisher.publish(page::failed());
                if sentence != last {
                    complain(&sentence);
                    last = sentence;
                }
                thread::sleep(interval.saturating_sub(begin.elapsed()));
            }
        }
    }
}
