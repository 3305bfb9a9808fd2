//! `rxlane envelope up`.

use super::{BOLD, GOOD, StateArguments, item};
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use envelope::{Request, Resolved, down, recover, resolve, up};
use format::{printable, quoted, thousands};
use serde_json::{Value, json};
use service::memory;
use service::signals::Interrupted;
use std::io::{self, Write};
use steer::record::Records;
use xdp::Mode;
use xdp::envelope::{HEADER_LEAST, HEADER_MOST};

#[derive(clap::Args)]
#[command(after_help = "\
One tag takes 4 bytes, PPPoE 8: `--header 8` is room for two tags or for PPPoE with a full payload, `--header 16` for both. \
The envelope stays when the command has ended; `rxlane envelope down INTERFACE` restores everything.\n\n\
Exit codes: 0 done, 1 there is an envelope or another XDP program already, 2 wrong usage, 3 the kernel, the driver or a \
privilege is missing. Nothing is left behind unless it is 0.\n\n\
Examples:\n  \
rxlane envelope up enp1s0 --header 8 --dry-run\n  \
rxlane envelope up enp1s0 --header 8")]
pub struct UpArguments {
    #[command(flatten)]
    request: RequestArguments,
    /// Show exactly what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON (schema rxlane.envelope-up/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// What is requested: the same for `up` and `check`.
#[derive(clap::Args)]
pub struct RequestArguments {
    /// Interface on which the frames arrive.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// Room for headers behind the MAC header, bytes: 4 for one tag to 482 (IEEE 802.3as).
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(i64::from(HEADER_LEAST)..=i64::from(HEADER_MOST)))]
    header: u32,
    /// Who runs the program: the driver, before there is a socket buffer, or (generic) the kernel, after that.
    #[arg(long, value_enum, default_value_t = ModeArgument::Native)]
    mode: ModeArgument,
}

impl RequestArguments {
    pub fn request(self) -> Request {
        let generic = self.mode == ModeArgument::Generic;
        Request { interface: self.interface, header: self.header, generic }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ModeArgument {
    Native,
    Generic,
}

impl UpArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        // Before there is any thread: one that gets no memory ends the process.
        memory::expect(2 * memory::BEGINNING)?;
        let request = self.request.request();
        let records = self.state.records();
        // A dry run changes nothing. Without root there is nothing to recover, and the loader says what is missing.
        let recovered = if self.dry_run { Vec::new() } else { recover(&records).unwrap_or_default() };
        let resolved = resolve(&request, &records)?;
        if self.dry_run {
            match self.json {
                true => print_json(out, &resolved, resolved.plan.mode, None)?,
                false => planned(out, &resolved)?,
            }
            return Ok(Outcome::Success);
        }
        // From here on the machine is changed, and a signal that ended this process would leave it so.
        let (interrupted, _stop) = Interrupted::watch()
            .map_err(|error| Lacks(format!("signals cannot be waited for ({error}); nothing was changed")))?;
        let done = up(&resolved, &records)?;
        if let Some(signal) = interrupted.by() {
            drop(done);
            return taken_back(out, &resolved.plan.interface.name, &records, signal);
        }
        let printed = match self.json {
            true => print_json(out, &resolved, done.mode, Some(&recovered)),
            false => print_done(out, &resolved, done.mode, &recovered, &self.state),
        };
        match printed.and_then(|()| out.flush()) {
            // A reader that closed the pipe has not requested an end.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                drop(done);
                down(&resolved.plan.interface.name, &records)?;
                Err(error.into())
            }
            other => other.map(|()| Outcome::Success).map_err(Into::into),
        }
    }
}

/// What an interface gets, with the schemas of `check` and `up`: fields are added, never renamed.
pub fn document(resolved: &Resolved, mode: Mode) -> Value {
    let plan = &resolved.plan;
    json!({
        "interface": plan.interface.name,
        "mode": mode.name(),
        "driver": resolved.driver,
        "payload": plan.payload,
        "header": plan.header,
        "mtu": plan.payload.saturating_add(plan.header),
    })
}

/// The document of `up`; without what was recovered nothing was changed.
fn print_json(
    out: &mut Output,
    resolved: &Resolved,
    mode: Mode,
    recovered: Option<&[String]>,
) -> io::Result<()> {
    let mut value = document(resolved, mode);
    value["dry_run"] = recovered.is_none().into();
    value["remarks"] = recovered.unwrap_or_default().into();
    out.json_of("rxlane.envelope-up/1", &value)
}

/// What would be done.
pub fn planned(out: &mut Output, resolved: &Resolved) -> io::Result<()> {
    let name = printable(&resolved.plan.interface.name);
    let title = format!("{name} would get an envelope; nothing is changed now.");
    writeln!(out, "{}", out.styled(BOLD, title))?;
    print(out, resolved, resolved.plan.mode)
}

fn print_done(
    out: &mut Output,
    resolved: &Resolved,
    mode: Mode,
    recovered: &[String],
    state: &StateArguments,
) -> io::Result<()> {
    let name = printable(&resolved.plan.interface.name);
    let title = format!("{name} has an envelope of {} bytes.", resolved.plan.header);
    writeln!(out, "{}", out.styled(GOOD, title))?;
    print(out, resolved, mode)?;
    recovered.iter().try_for_each(|remark| item(out, "note", &printable(remark)))?;
    let name = quoted(&resolved.plan.interface.name);
    item(out, "status", &state.command(&format!("envelope status {name}")))?;
    item(out, "undo", &state.command(&format!("envelope down {name}")))
}

/// The end of a command that a signal interrupted.
fn taken_back(out: &mut Output, interface: &str, records: &Records, signal: &'static str) -> CommandResult {
    let taken = down(interface, records)?;
    let name = printable(interface);
    if taken.is_whole() {
        complain(&format!("interrupted by {signal}: {name} has no envelope, and everything is as it was"));
    } else {
        super::down::print(out, &taken)?;
        complain(&format!(
            "interrupted by {signal}: {name} has no envelope, but not everything is as it was"
        ));
    }
    Ok(Outcome::Negative)
}

fn print(out: &mut Output, resolved: &Resolved, mode: Mode) -> io::Result<()> {
    let plan = &resolved.plan;
    let raised = plan.payload.saturating_add(plan.header);
    item(out, "mode", mode.name())?;
    item(out, "mtu", &format!("{raised}, was {}; raised after the program is attached", plan.payload))?;
    let refused = format!(
        "frames with more than {} bytes behind the MAC header, tags and PPPoE",
        thousands(plan.payload.into())
    );
    item(out, "refused", &refused)?;
    let driver = resolved.driver.as_deref().unwrap_or("this driver");
    let attaching = match (mode, resolved.attaching) {
        (Mode::Generic, _) => {
            "the kernel runs the program; only the MTU may make the driver reset the adapter".to_owned()
        }
        (Mode::Native, Some(attaching)) => format!("{driver} {attaching}; raising the MTU may reset it, too"),
        (Mode::Native, None) => {
            format!("whether {driver} resets the adapter, and loses frames by it, is not known")
        }
    };
    item(out, "attaching", &attaching)?;
    let sending = format!(
        "what is sent is not looked at: where the interface itself has addresses, give their routes `mtu {}`, or longer \
         untagged packets go out by it",
        plan.payload
    );
    item(out, "sending", &sending)
}
