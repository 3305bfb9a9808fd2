//! `rxlane pppoe connect`.

use super::options::{self, Options};
use super::{BOLD, GOOD, POOR, StateArguments, item, status};
use crate::background::{self, DaemonArguments, no_signals, unread};
use crate::output::{CommandResult, Outcome, Output, complain};
use anyhow::anyhow;
use clap::{Arg, Args, Command, FromArgMatches};
use client::connection::{Connection, Event, Over, Start};
use client::network::Request;
use client::script;
use client::status::SessionStatus;
use format::printable;
use format::quoted;
use service::Kind;
use service::daemon::{self, Leaving, Ready};
use service::lines::LineWriter;
use service::log::Log;
use service::memory;
use service::notify;
use service::signals::{HangUp, end_requests, report_others};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
The session comes back whenever it ends, until SIGTERM, SIGINT, SIGQUIT, SIGHUP or `rxlane pppoe disconnect IFNAME` asks for the end; the \
concentrator gets a PADT, and interface, routes and name servers are as before. The interface is there while a session is open. SIGUSR1, \
SIGUSR2 and SIGALRM, which scripts for pppd send, change nothing, and the log has a note.\n\n\
With --daemon the command returns when a session is open, or the first try has failed, whatever came first. After a failure the process \
goes on trying in the background (`rxlane pppoe status IFNAME` shows it), unless --reconnect=false.\n\n\
Exit codes: 0 ended on request; with --daemon a session is open. 1 the name is taken, packets of --mtu do not fit, a \
session or try ended and --reconnect=false, the interface with the line went away, or somebody deleted that of the session; with --daemon \
the first try failed. 2 wrong usage. 3 a privilege or the kernel's TUN driver is missing.\n\n\
Examples:\n  \
rxlane pppoe connect eth0 --user me@provider.example --password-file /etc/rxlane/wan.password --default-route --dns\n  \
rxlane pppoe connect eth0 --vlan 35 --user me --mtu 1500\n  \
rxlane pppoe connect --config /etc/rxlane/pppoe-wan.toml --daemon")]
pub struct ConnectArguments {
    #[command(flatten)]
    options: Options,
    /// File (TOML) with the same options, for those that are not given here.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show what would be done, and send nothing.
    #[arg(long, conflicts_with = "daemon")]
    dry_run: bool,
    #[command(flatten)]
    daemon: DaemonArguments,
    #[command(flatten)]
    state: StateArguments,
}

impl ConnectArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let options = self.all_options()?;
        if self.dry_run {
            return self.plan(out, &options);
        }
        // Before the concentrator gets a request, which may end another one of the same user.
        super::expect_privilege("a session")?;
        if self.daemon.is_caller() {
            self.daemon.expect_no_manager("the session")?;
            // What is wrong with the options is said before anything is started, and a terminal prompts here.
            self.start(&options, Vec::new())?;
            let password = options.password().read()?;
            return background::start(&password);
        }
        let password = if self.daemon.is_daemon() { daemon::secret()? } else { options.password().read()? };
        let start = self.start(&options, password)?;
        let mut log = None;
        let result = self.connect(out, start, &mut log);
        background::end(log, out, result)
    }

    /// Those of the command line, and of the file those that are not there.
    fn all_options(&self) -> anyhow::Result<Options> {
        let Some(file) = &self.config else { return Ok(self.options.clone()) };
        let given: Vec<OsString> =
            std::env::args_os().skip_while(|argument| argument != "pppoe").skip(2).collect();
        let is_given = |option: &Arg| match option.get_long() {
            None => self.options.interface.is_some(),
            Some(_) => options::is_given(option, &given),
        };
        let arguments = options::arguments_of(file, is_given)?.into_iter().chain(given.clone());
        let command = ConnectArguments::augment_args(Command::new("connect").no_binary_name(true));
        let both = command.try_get_matches_from(arguments).and_then(|both| Options::from_arg_matches(&both));
        both.map_err(|error| {
            let text = error.to_string();
            let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            anyhow!("with {}: {why}", file.display())
        })
    }

    /// What the options come to.
    fn start(&self, options: &Options, password: Vec<u8>) -> anyhow::Result<Start> {
        let request = Request {
            name: options.ifname().to_owned(),
            parent: options.interface()?.to_owned(),
            means: options.means.means()?,
            mss_clamp: options.mss_clamp.unwrap_or(true),
            default_route: options.default_route.unwrap_or(false).then(|| options.metric.unwrap_or(0)),
            dns: options.dns.unwrap_or(false),
            up_script: options.up_script.clone().map(absolute),
            down_script: options.down_script.clone().map(absolute),
            state: self.state.folder().path().to_owned(),
        };
        for program in [&request.up_script, &request.down_script].into_iter().flatten() {
            script::check(program).map_err(|error| anyhow!("{error}"))?;
        }
        Ok(Start {
            request,
            tags: options.stack.tags()?,
            has_mtu: options.mtu.is_some(),
            user: options.user.clone(),
            config: options.client(password)?,
        })
    }

    /// Shows what would be done, and that nothing stands in the way as far as it can be seen before.
    fn plan(&self, out: &mut Output, options: &Options) -> CommandResult {
        let mut start = self.start(options, Vec::new())?;
        let narrow = start.check()?;
        let request = &start.request;
        let title = format!(
            "{} would connect over {}; nothing is sent now.",
            printable(&request.name),
            printable(&request.parent)
        );
        writeln!(out, "{}", out.styled(BOLD, title))?;
        item(out, "line", &start.tags.to_string())?;
        let user = match &start.user {
            Some(user) => format!("{}, {}", printable(user), printable(&options.password().place()?)),
            None => "none: --user names one where the provider wants it".to_owned(),
        };
        item(out, "user", &user)?;
        let concentrator = options.ac.as_deref().unwrap_or("any");
        let service = options.service.as_deref().unwrap_or("any service");
        item(out, "concentrator", &printable(&format!("{concentrator}, {service}")))?;
        item(out, "mtu", &format!("{} at most", start.config.discovery.max_payload))?;
        narrow.map_or(Ok(()), |narrow| item(out, "note", &printable(&narrow)))?;
        let route = match request.default_route {
            Some(metric) => format!("default route, metric {metric}"),
            None => "no default route (--default-route)".to_owned(),
        };
        let dns = if request.dns { "name servers of the provider" } else { "no name servers (--dns)" };
        item(out, "machine", &format!("{route}; {dns}"))?;
        for (when, program) in [("up", &request.up_script), ("down", &request.down_script)] {
            if let Some(program) = program {
                item(out, when, &printable(&format!("{} is run", program.display())))?;
            }
        }
        Ok(Outcome::Success)
    }

    fn connect(&self, out: &mut Output, start: Start, log: &mut Option<Log>) -> CommandResult {
        // Before there is any thread: one that gets no memory ends the process.
        memory::expect(memory::BEGINNING)?;
        let (stop, ask) = end_requests(HangUp::Ends).map_err(no_signals)?;
        let requests = ask.try_clone()?;
        let unheeded =
            |name: &str| complain(&format!("{name} changes nothing here; SIGTERM ends the session"));
        report_others(unheeded).map_err(no_signals)?;
        let name = start.request.name.clone();
        let leaving = self.daemon.prepare(&name, &ask)?;
        let sockets = self.state.instances(Kind::Session)?;
        let connection = Connection::begin(start, &sockets, stop, requests)?;
        let mut speaker = Speaker {
            out,
            name,
            lines: background::lines("the session")?,
            state: &self.state,
            leaving,
            before: Vec::new(),
            log,
            ask,
            is_ready: false,
            failure: None,
        };
        let ended = connection.run(&mut |event| speaker.hear(event));
        let _ = notify::stopping();
        speaker.end(ended)
    }
}

/// Scripts run elsewhere, and a daemon goes to another folder.
fn absolute(file: PathBuf) -> PathBuf {
    std::path::absolute(&file).unwrap_or(file)
}

/// Says what happens. A terminal that is held up must not hold up the session, whose other end wants answers.
struct Speaker<'a> {
    out: &'a mut Output,
    state: &'a StateArguments,
    name: String,
    lines: LineWriter,
    /// Until the session is open for the first time.
    leaving: Option<Leaving>,
    /// What was said until then, with which the log begins.
    before: Vec<String>,
    log: &'a mut Option<Log>,
    ask: UnixStream,
    is_ready: bool,
    /// Why it could not go to the background.
    failure: Option<anyhow::Error>,
}

impl Speaker<'_> {
    fn hear(&mut self, event: &Event) {
        let said = self.text(event);
        // An open session is said in other words to the log.
        if self.leaving.is_some() && !matches!(event, Event::Open(_)) {
            self.before.push(said.clone());
        }
        self.lines.write(said);
        let left = match event {
            Event::Open(_) if !std::mem::replace(&mut self.is_ready, true) => {
                // Without a service manager there is none to notify.
                let _ = notify::ready(&format!("{} is open", self.name));
                self.leave(Ready::Up, Some(event))
            }
            Event::Closed(_) if self.leaving.is_some() => {
                self.lines.write(trying(&self.name));
                self.leave(Ready::Trying, None)
            }
            _ => return,
        };
        if let Err(error) = left {
            self.failure = Some(error);
            // It ends already, where nobody listens.
            let _ = self.ask.write_all(&[0]);
        }
    }

    /// Goes to the background, if that was requested; with this for the log.
    fn leave(&mut self, ready: Ready, opened: Option<&Event>) -> anyhow::Result<()> {
        let Some(leaving) = self.leaving.take() else { return Ok(()) };
        background::leave(leaving, ready, &mut self.lines, self.out, self.log)?;
        std::mem::take(&mut self.before).into_iter().for_each(|said| self.lines.write(said));
        if let Some(event) = opened {
            let said = self.text(event);
            self.lines.write(said);
        }
        Ok(())
    }

    fn text(&mut self, event: &Event) -> String {
        let mark = |style, word| self.out.styled(style, word);
        match event {
            Event::Notice(text) => format!("{}: {}\n", mark(POOR, "note"), printable(text)),
            // Who started it into the background reads a terminal, or wants to know what came of it alone.
            Event::Looking { .. } if self.leaving.is_some() && !io::stdout().is_terminal() => String::new(),
            Event::Looking { parent, most } => {
                format!(
                    "looking for a concentrator on {} ({} s at most) …\n",
                    printable(parent),
                    most.as_secs()
                )
            }
            Event::Closed(text) => format!("{}: {}\n", mark(POOR, "closed"), printable(text)),
            Event::Open(status) => {
                // Memory takes it all.
                let known = match (self.is_ready, &self.leaving) {
                    (true, _) => Known::Before,
                    (false, None) => Known::Here,
                    (false, Some(_)) => Known::InBackground,
                };
                self.out.aside(|out| opened(out, status, known, self.state)).unwrap_or_default()
            }
        }
    }

    /// The last words, and the exit code.
    fn end(self, ended: Result<Over, client::Error>) -> CommandResult {
        let is_daemon = self.log.is_some();
        let is_heard = self.lines.finish();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !is_heard && is_daemon {
            // The log takes nothing any more, and would hold up what is said on standard error, too.
            std::process::exit(match ended {
                Ok(Over::Requested) => 0,
                Ok(_) => 1,
                Err(_) => 3,
            });
        }
        match ended {
            Err(error) => Err(error.into()),
            Ok(Over::Requested) => {
                if is_heard {
                    let name = &self.name;
                    let title = match self.is_ready {
                        true => format!("{name} is disconnected."),
                        false => {
                            format!("{name} is over: its end was requested before a session was open.")
                        }
                    };
                    let title = self.out.styled(BOLD, title);
                    unread(writeln!(self.out, "{title}").and_then(|()| self.out.flush()))?;
                }
                Ok(Outcome::Success)
            }
            Ok(over) => {
                complain(&reason(&self.name, &over));
                Ok(Outcome::Negative)
            }
        }
    }
}

/// The first try has failed, and the caller goes without a session.
fn trying(name: &str) -> String {
    format!(
        "{name} is tried again in the background: `rxlane pppoe status {0}` shows how it stands, `rxlane pppoe disconnect {0}` \
         ends it\n",
        quoted(name)
    )
}

fn reason(name: &str, over: &Over) -> String {
    match over {
        Over::Requested => String::new(),
        Over::Closed(why) => why.clone(),
        Over::ParentRemoved => {
            "the interface with the line was removed, or went to another network namespace".to_owned()
        }
        Over::InterfaceDeleted => {
            format!("somebody deleted {name}: the session is over, and `rxlane pppoe connect` begins another")
        }
    }
}

/// What whoever reads that a session is open knows of how to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It was said before.
    Before,
    /// Nothing, and sits before the process.
    Here,
    /// Nothing, and the process goes to the background.
    InBackground,
}

/// A session is open. The first time it is also said how to go on.
fn opened(out: &mut Output, status: &SessionStatus, known: Known, state: &StateArguments) -> io::Result<()> {
    let title = match status::is_useless(status) {
        true => out.styled(POOR, "open, but without addresses"),
        false => out.styled(GOOD, "open"),
    };
    let name = out.styled(BOLD, &status.interface);
    writeln!(out, "{name} over {}: {title}", printable(&status.parent))?;
    status::line(out, status)?;
    if known == Known::Before {
        return Ok(());
    }
    let name = quoted(&status.interface);
    item(out, "status", &state.command(&format!("pppoe status {name}")))?;
    let interrupt = if known == Known::Here { ", or SIGINT" } else { "" };
    item(out, "end", &(state.command(&format!("pppoe disconnect {name}")) + interrupt))
}
