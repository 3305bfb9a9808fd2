//! `rxlane steer up`.

use super::{BOLD, GOOD, POOR, StateArguments, SteeringArguments, check, cpus, item, keep, with_progress};
use super::{persist, prose};
use crate::arguments::seconds;
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use anyhow::bail;
use format::{printable, quoted, thousands};
use serde_json::json;
use service::StateDir;
use service::memory;
use service::signals::Interrupted;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use steer::classes;
use steer::down::{Down, recover};
use steer::error::Error;
use steer::facts::{Fact, Level};
use steer::plan::{QUEUE_SIZE, QUEUE_SIZE_MAX};
use steer::record::Records;
use steer::up::{Done, Options, Resolved, resolve, up};
use xdp::{Attachment, Mode};

#[derive(clap::Args)]
#[command(after_help = "\
Steering stays when the command has ended; `rxlane steer down INTERFACE` stops it and restores every setting. \
With --rebalance or --metrics a process stays in the background, with --foreground this one does.\n\n\
Exit codes: 0 steered, 1 steered already, or not possible as asked, 2 wrong usage, 3 the kernel, the driver or a \
privilege is missing. Nothing is left behind unless it is 0.\n\n\
Examples:\n  \
rxlane steer up enp1s0 --dry-run\n  \
rxlane steer up enp1s0 --persist\n  \
rxlane steer up enp1s0 --cpus 1-3 --disable-rxvlan --rebalance\n  \
rxlane steer up enp1s0 --foreground --metrics 127.0.0.1:9144")]
pub struct UpArguments {
    #[command(flatten)]
    request: SteeringArguments,
    /// Frames that the queue in front of each CPU holds.
    #[arg(long, value_name = "N", default_value_t = QUEUE_SIZE,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(QUEUE_SIZE_MAX)))]
    queue_size: u32,
    /// Move buckets of flows from busy to idle CPUs while it runs.
    #[arg(long)]
    rebalance: bool,
    /// Send both directions of a flow to one CPU.
    #[arg(long)]
    symmetric: bool,
    /// Stay, and stop steering at the end (SIGTERM, SIGINT, SIGHUP) or when the interface is removed.
    #[arg(long)]
    foreground: bool,
    /// Serve metrics in the form of Prometheus at this address; a port alone is one of 127.0.0.1.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics: Option<SocketAddr>,
    /// Steer at every boot, too: enable the unit rxlane-steer@INTERFACE of systemd with these options; `down --undo` disables it.
    #[arg(long, conflicts_with = "foreground")]
    persist: bool,
    /// Show exactly what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON (schema rxlane.steer-up/1).
    #[arg(long, conflicts_with = "foreground")]
    json: bool,
    /// Time to sample counters and traffic before, seconds; 0 for not at all.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value = "1", value_parser = seconds(0.0, 3600.0))]
    seconds: Duration,
    #[command(flatten)]
    state: StateArguments,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port: Result<u16, _> = text.trim_start_matches(':').parse();
    let address = match port {
        Ok(port) => SocketAddr::from(([127, 0, 0, 1], port)),
        Err(_) => text.parse().map_err(|_| {
            format!("`{text}` is no address with a port, such as 127.0.0.1:9144 or [::1]:9144")
        })?,
    };
    match address.port() {
        0 => Err("port 0 is none: name one from 1 to 65535, such as 9144".to_owned()),
        _ => Ok(address),
    }
}

impl UpArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if self.persist && self.state.folder().path() != Path::new(StateDir::DEFAULT) {
            bail!("--persist: the unit keeps its state in {}, and takes no --state-dir", StateDir::DEFAULT);
        }
        if self.persist && self.is_steered() {
            return self.persist_steered(out);
        }
        // Before there is any thread: one that gets no memory ends the process.
        memory::expect(2 * memory::BEGINNING)?;
        let manner = Options { queue_size: self.queue_size, symmetric: self.symmetric };
        let records = self.state.records();
        // A dry run changes nothing. Without root there is nothing to recover, and the loader says what is missing.
        let recovered = if self.dry_run { Vec::new() } else { recover(&records).unwrap_or_default() };
        let resolved = self
            .request
            .request()
            .and_then(|request| with_progress(|progress| resolve(&request, &manner, self.seconds, progress)));
        let mut resolved = resolved.map_err(prose::Worded)?;
        prose::complete(&mut resolved.check);
        let better = prose::better_way(&resolved.check);
        resolved.check.remarks.extend(better);
        if self.rebalance && xdp::kernel().percpu_lookup == Some(false) {
            return Err(Lacks(
                "this kernel cannot rebalance: a bucket moves only when the program may read what other CPUs counted \
                 (bpf_map_lookup_percpu_elem, Linux 5.19); without --rebalance steering works, and buckets keep their CPU"
                    .to_owned(),
            )
            .into());
        }
        let targets: Vec<u32> = resolved.check.targets.iter().map(|row| row.cpu).collect();
        let persisted = match self
            .persist
            .then(|| persist::prepare(&self.request.interface, &self.options(&targets)))
            .transpose()
        {
            Ok(persisted) => persisted,
            Err(end) => return end,
        };
        if self.dry_run {
            match self.json {
                true => {
                    self.print_json(out, &resolved, resolved.plan.mode, &[], &[], (None, persisted.as_ref()))?
                }
                false => {
                    self.print_plan(out, &resolved)?;
                    persisted.iter().try_for_each(|files| files.print(out))?;
                }
            }
            return Ok(Outcome::Success);
        }
        // From here on the machine is changed, and a signal that ended this process would leave it so.
        let (interrupted, stop) = Interrupted::watch()
            .map_err(|error| Lacks(format!("signals cannot be waited for ({error}); nothing was changed")))?;
        let (done, working) = up(&resolved, &records)?;
        if let Some(signal) = interrupted.by() {
            drop(working);
            return taken_back(out, done.attachment, &records, signal);
        }
        let task = keep::Task { rebalance: self.rebalance, metrics: self.metrics };
        if self.foreground {
            drop(working);
            let Done { attachment, mode, changed } = done;
            let ready =
                |out: &mut Output| self.print_done(out, &resolved, (mode, &changed, &recovered), None);
            return keep::in_foreground(out, attachment, &task, &records, stop, ready);
        }
        let keeper = match task
            .is_needed()
            .then(|| keep::in_background(&done.attachment, &task, &records))
            .transpose()
        {
            Ok(keeper) => keeper,
            Err(error) => {
                drop(working);
                if let Some(signal) = interrupted.by() {
                    return taken_back(out, done.attachment, &records, signal);
                }
                down(done.attachment, &records)?;
                return Err(error.into());
            }
        };
        drop(working);
        if let Some(signal) = interrupted.by() {
            return taken_back(out, done.attachment, &records, signal);
        }
        let printed = match self.json {
            true => self.print_json(
                out,
                &resolved,
                done.mode,
                &done.changed,
                &recovered,
                (keeper, persisted.as_ref()),
            ),
            false => self.print_done(out, &resolved, (done.mode, &done.changed, &recovered), keeper),
        };
        match printed.and_then(|()| out.flush()) {
            // A reader that closed the pipe has not requested an end.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                down(done.attachment, &records)?;
                return Err(error.into());
            }
            other => other?,
        }
        if let Some(signal) = interrupted.by() {
            return taken_back(out, done.attachment, &records, signal);
        }
        // Last: what is made persistent is what steers.
        match &persisted {
            Some(persisted) => persisted.write((!self.json).then_some(out), &self.request.interface),
            None => Ok(Outcome::Success),
        }
    }

    /// Whether the interface is steered, as far as this process may know.
    fn is_steered(&self) -> bool {
        let status = steer::status::status(&self.request.interface, Duration::ZERO, &self.state.records());
        status.is_ok_and(|status| matches!(status.mode, "native" | "generic"))
    }

    /// The same as it is steered, at every boot.
    fn persist_steered(&self, out: &mut Output) -> CommandResult {
        let interface = &self.request.interface;
        let status =
            steer::status::status(interface, Duration::ZERO, &self.state.records()).map_err(prose::Worded)?;
        let targets: Vec<u32> = status.cpus.iter().map(|row| row.cpu).collect();
        let prepared = match persist::prepare(interface, &self.options(&targets)) {
            Ok(prepared) => prepared,
            Err(end) => return end,
        };
        if self.json {
            let value =
                json!({"interface": interface, "dry_run": self.dry_run, "persisted": prepared.paths()});
            out.json_of("rxlane.steer-up/1", &value)?;
        } else {
            writeln!(out, "{} is steered already.", printable(interface))?;
            if self.dry_run {
                prepared.print(out)?;
            }
        }
        if self.dry_run {
            return Ok(Outcome::Success);
        }
        prepared.write((!self.json).then_some(out), interface)
    }

    /// The options with which a unit does the same. The CPUs are those that were chosen now: at boot there is no traffic that
    /// would show which ones receive.
    fn options(&self, targets: &[u32]) -> Vec<String> {
        let request = &self.request;
        let mut options = vec!["--cpus".to_owned()];
        options.push(request.cpus.clone().unwrap_or_else(|| steer::facts::list(targets)));
        if request.mode == super::Mode::Generic {
            options.extend(["--mode", "generic"].map(str::to_owned));
        }
        if let Some(classes) = &request.classes {
            let names: Vec<&str> = classes.iter().map(|class| class.name()).collect();
            options.extend(["--classes".to_owned(), names.join(",")]);
        }
        if self.queue_size != QUEUE_SIZE {
            options.extend(["--queue-size".to_owned(), self.queue_size.to_string()]);
        }
        if let Some(metrics) = self.metrics {
            options.extend(["--metrics".to_owned(), metrics.to_string()]);
        }
        let switches = [
            ("--all", request.all),
            ("--disable-rxvlan", request.disable_rxvlan),
            ("--rebalance", self.rebalance),
            ("--symmetric", self.symmetric),
        ];
        options.extend(switches.iter().filter(|(_, is_on)| *is_on).map(|(switch, _)| (*switch).to_owned()));
        options
    }

    /// What is steered, or with --dry-run would be. Fields are added, never renamed.
    fn print_json(
        &self,
        out: &mut Output,
        resolved: &Resolved,
        mode: Mode,
        changed: &[(String, String)],
        recovered: &[String],
        (daemon, persisted): (Option<u32>, Option<&persist::Prepared>),
    ) -> io::Result<()> {
        let (check, plan) = (&resolved.check, &resolved.plan);
        let changed = changed.iter().map(|(command, former)| json!({"command": command, "before": former}));
        let value = json!({
            "interface": plan.interface.name,
            "dry_run": self.dry_run,
            "mode": mode.name(),
            "classes": classes::of_bits(plan.settings.classes),
            "queue_size": self.queue_size,
            "symmetric": self.symmetric,
            "targets": check.targets,
            "left_out": check.left_out,
            "settings": resolved.settings.iter().map(|setting| setting.to_string()).collect::<Vec<_>>(),
            "changed": changed.collect::<Vec<_>>(),
            "pid": daemon,
            "persisted": persisted.map(persist::Prepared::paths).unwrap_or_default(),
            "rebalance": self.rebalance,
            "metrics": self.metrics,
            "remarks": check.remarks.iter().chain(recovered).collect::<Vec<_>>(),
        });
        out.json_of("rxlane.steer-up/1", &value)
    }

    fn print_plan(&self, out: &mut Output, resolved: &Resolved) -> io::Result<()> {
        let (check, plan) = (&resolved.check, &resolved.plan);
        let name = printable(&plan.interface.name);
        let title = out.styled(BOLD, format!("{name} would be steered; nothing is changed now."));
        writeln!(out, "{title}")?;
        item(out, "mode", plan.mode.name())?;
        for fact in check.facts.iter().filter(|fact| fact.about == "attaching" || fact.level != Level::Good) {
            fact_line(out, fact)?;
        }
        item(out, "classes", &classes::of_bits(plan.settings.classes).join(", "))?;
        let queue = format!("{} frames in front of each CPU", thousands(self.queue_size.into()));
        item(out, "queue", &queue)?;
        let flows = match self.symmetric {
            true => "both directions of a flow to one CPU",
            false => "each direction of a flow by itself",
        };
        item(out, "flows", flows)?;
        match resolved.settings.is_empty() {
            true => item(out, "settings", "none is changed")?,
            false => {
                for setting in &resolved.settings {
                    item(
                        out,
                        "settings",
                        &printable(&format!(
                            "{setting} (`rxlane steer down {quoted_name}` restores it)",
                            quoted_name = quoted(&plan.interface.name)
                        )),
                    )?;
                }
            }
        }
        item(out, "process", &self.process())?;
        check::targets(out, check)?;
        if check.receiving.is_empty() && self.request.cpus.is_none() {
            let text = "Which CPUs receive was not to be seen, so none is excluded: look under load, or name --cpus.";
            out.paragraph("  ", text)?;
        }
        for remark in &check.remarks {
            writeln!(out)?;
            out.paragraph("", &printable(remark))?;
        }
        Ok(())
    }

    /// What the daemon does; empty where it only waits.
    fn tasks(&self) -> String {
        let metrics = self.metrics.map(|address| format!("serves metrics at http://{address}/metrics"));
        let tasks: Vec<String> =
            self.rebalance.then(|| "rebalances".to_owned()).into_iter().chain(metrics).collect();
        tasks.join(" and ")
    }

    fn process(&self) -> String {
        match (self.foreground, self.tasks()) {
            (true, tasks) if tasks.is_empty() => "this one stays until it is ended".to_owned(),
            (true, tasks) => format!("this one stays until it is ended; it {tasks}"),
            (false, tasks) if tasks.is_empty() => "none has to stay".to_owned(),
            (false, tasks) => format!("one stays in the background; it {tasks}"),
        }
    }

    fn print_done(
        &self,
        out: &mut Output,
        resolved: &Resolved,
        (mode, changed, recovered): (Mode, &[(String, String)], &[String]),
        keeper: Option<u32>,
    ) -> io::Result<()> {
        let (check, plan) = (&resolved.check, &resolved.plan);
        let name = printable(&plan.interface.name);
        writeln!(out, "{}", out.styled(GOOD, format!("{name} is steered in {} mode.", mode)))?;
        item(out, "classes", &classes::of_bits(plan.settings.classes).join(", "))?;
        let targets: Vec<u32> = check.targets.iter().map(|row| row.cpu).collect();
        let excluded: Vec<u32> = check.left_out.iter().map(|row| row.cpu).collect();
        let excluded = match (&excluded[..], check.left_out.first()) {
            ([_, ..], Some(first)) => format!("; not {} ({})", cpus(&excluded), first.why),
            _ => String::new(),
        };
        item(out, "to", &format!("{}{excluded}", cpus(&targets)))?;
        for fact in &check.facts {
            if fact.about == "attaching" || matches!(fact.level, Level::Note) && fact.about != "driver" {
                fact_line(out, fact)?;
            }
        }
        for (command, former) in changed {
            item(out, "changed", &printable(&format!("{command} (before: {former})")))?;
        }
        match keeper {
            Some(pid) => {
                item(out, "process", &format!("{pid} stays in the background; it {}", self.tasks()))?
            }
            None if self.foreground => item(out, "process", &self.process())?,
            None => {}
        }
        if check.receiving.is_empty() && self.request.cpus.is_none() && !self.rebalance {
            let text = "which CPUs receive was not to be seen, so none is excluded (--rebalance learns it; --cpus names them)";
            item(out, "shares", text)?;
        }
        for remark in check.remarks.iter().chain(recovered) {
            item(out, "note", &printable(remark))?;
        }
        let name = quoted(&resolved.plan.interface.name);
        item(out, "status", &self.state.command(&format!("steer status {name}")))?;
        item(out, "undo", &self.state.command(&format!("steer down {name}")))
    }
}

/// Takes everything back, the daemon included.
fn down(attachment: Attachment, records: &Records) -> Result<Down, Error> {
    let interface = attachment.interface().name.clone();
    drop(attachment);
    steer::down::down(&interface, records)
}

/// The end of a command that a signal interrupted.
fn taken_back(
    out: &mut Output,
    attachment: Attachment,
    records: &Records,
    signal: &'static str,
) -> CommandResult {
    let name = printable(&attachment.interface().name);
    let taken = down(attachment, records)?;
    if taken.is_whole() {
        complain(&format!("interrupted by {signal}: {name} is not steered, and everything is as it was"));
    } else {
        super::down::print(out, &taken)?;
        complain(&format!("interrupted by {signal}: {name} is not steered, but not everything is as it was"));
    }
    Ok(Outcome::Negative)
}

fn fact_line(out: &mut Output, fact: &Fact) -> io::Result<()> {
    let text = printable(&fact.text);
    match fact.level {
        Level::Unknown => {
            let mark = out.styled(POOR, "?");
            item(out, fact.about, &format!("{mark} {text}"))
        }
        _ => item(out, fact.about, &text),
    }
}
