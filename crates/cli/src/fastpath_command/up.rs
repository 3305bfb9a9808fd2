//! `rxlane fastpath up`.

use super::check::{self, check};
use super::{BOLD, PortArguments, item, not_restored, status};
use crate::arguments::StateArguments;
use crate::background::{self, DaemonArguments, no_signals, unread};
use crate::output::{CommandResult, Outcome, Output};
use fastpath::status::Status;
use fastpath::{Down, NAME, Request, Running};
use format::{plural, printable};
use service::Kind;
use service::daemon::Ready;
use service::log::Log;
use service::notify;
use service::signals::{HangUp, end_requests};
use std::io::{self, Write};

/// Schema of a fast path that came up: fields are added, never renamed.
const SCHEMA: &str = "rxlane.fastpath-up/1";

#[derive(clap::Args)]
#[command(after_help = "\
The kernel goes on routing, filtering and translating the first packets of every connection; once one is established, its packets \
leave from XDP. They then pass no rule, counter or queueing discipline any more: `rxlane fastpath check` names what that is here. The \
program is on the ports as long as the command runs; SIGTERM, SIGINT or `rxlane fastpath down` ends it, and the kernel takes over.\n\n\
Exit codes: 0 ended on request, 1 something stands in the way (a shaper, another XDP program), 2 wrong usage, 3 a privilege or a feature of kernel or driver is \
missing.\n\n\
Examples:\n  \
rxlane fastpath up eth0 eth1 --daemon\n  \
rxlane fastpath up br-lan ppp0 --disable-rxvlan\n  \
rxlane fastpath up lan0 ppp0 --limit-download 900M --limit-upload 45M --bypass-qdisc")]
pub struct UpArguments {
    #[command(flatten)]
    ports: PortArguments,
    /// Show what would be done, and do nothing.
    #[arg(long, conflicts_with = "daemon")]
    dry_run: bool,
    /// Print JSON, a line for each document: rxlane.fastpath-up/1 and, at the end in the foreground, rxlane.fastpath-down/1.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArguments,
    #[command(flatten)]
    state: StateArguments,
}

impl UpArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let request = self.ports.request(&self.state)?;
        if self.dry_run {
            return self.plan(out, &request);
        }
        if self.daemon.is_caller() {
            self.daemon.expect_no_manager("the fast path")?;
            return background::start(&[]);
        }
        let mut log = None;
        let result = self.forward(out, &request, &mut log);
        background::end(log, out, result)
    }

    fn plan(&self, out: &mut Output, request: &Request) -> CommandResult {
        let checked = fastpath::check(request, &self.state.folder())?;
        let check = check(request, &checked)?;
        if self.json {
            out.json(&check)?;
            return Ok(check.outcome());
        }
        check::print(out, &check)?;
        for setting in &checked.hiding {
            item(out, "changes", &format!("{setting}, until it ends"))?;
        }
        item(out, "flows", &format!("at most {}", plural(request.flows as u64, "connection")))?;
        writeln!(out, "Nothing is changed now.")?;
        Ok(check.outcome())
    }

    /// Has the fast path up until its end.
    fn forward(&self, out: &mut Output, request: &Request, log: &mut Option<Log>) -> CommandResult {
        let (stop, ask) = end_requests(HangUp::Ends).map_err(no_signals)?;
        let leaving = self.daemon.prepare(NAME, &ask)?;
        let instances = self.state.instances(Kind::Fastpath)?;
        let checked = fastpath::check(request, &self.state.folder())?;
        let mut running = Running::up(request, &checked, &instances, stop, ask)?;
        let status = running.status()?;
        let printed = match self.json {
            true => out.json_line(&status::document(SCHEMA, &status)),
            false => started(out, &status, self.daemon.is_daemon(), &self.state),
        };
        unread(printed.and_then(|()| out.flush()))?;
        let mut lines = background::lines("the fast path")?;
        if let Some(leaving) = leaving {
            background::leave(leaving, Ready::Up, &mut lines, out, log)?;
        }
        // Without a service manager there is none to notify.
        let _ = notify::ready("established connections are forwarded in XDP");
        let ended = running.run();
        let _ = notify::stopping();
        let down = running.down();
        if lines.finish()
            && let Ok(Down { last, left }) = &down
        {
            let printed = match self.json && !self.daemon.is_daemon() {
                true => out.json_line(&status::Ended::new(last, left)),
                false => writeln!(out, "The fast path is off.").and_then(|()| status::counted(out, last)),
            };
            unread(printed.and_then(|()| out.flush()))?;
        }
        ended?;
        let left = down?.left;
        not_restored(&left);
        Ok(if left.is_empty() { Outcome::Success } else { Outcome::Negative })
    }
}

fn started(out: &mut Output, status: &Status, in_background: bool, state: &StateArguments) -> io::Result<()> {
    let title = format!("The fast path is up on {}.", printable(&status.ports.join(", ")));
    writeln!(out, "{}", out.styled(BOLD, title))?;
    item(out, "mode", &status.mode)?;
    item(out, "flows", &format!("{} already established", plural(status.flows, "connection")))?;
    if in_background {
        item(out, "daemon", &format!("process {}", status.pid))?;
    }
    item(out, "status", &state.command("fastpath status"))?;
    let interrupt = if in_background { "" } else { ", or SIGINT" };
    item(out, "end", &(state.command("fastpath down") + interrupt))
}
