//! The terminal: taken, drawn on, and given back whatever happens.

use super::app::{Action, App};
use super::gather::{Event, Gatherer};
use super::model::{Material, Model};
use super::traffic::Sampling;
use super::view::{self, Screen, Theme};
use anyhow::Context;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, IsTerminal, Stdout, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// How long a key or a sample waits to be seen at most.
const TICK: Duration = Duration::from_millis(50);
/// How long the thread that draws has after a signal to give the terminal back and end.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the terminal is ours: the panic hook gives back only what was taken.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the terminal: raw mode, its other screen, no cursor.
fn take() -> io::Result<()> {
    enable_raw_mode()?;
    IS_TAKEN.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, Hide)
}

/// Gives the terminal back as it was, once.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // On a closed terminal there is nothing left to restore. Modes first: what is written may have to wait.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    }
}

struct Taken {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Taken {
    fn new() -> anyhow::Result<Taken> {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            former(panic);
        }));
        // From here on a failure gives back what was taken until then.
        let taken = take().and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Taken { terminal }),
            Err(error) => {
                give_back();
                Err(error).context("cannot take the terminal")
            }
        }
    }

    /// Stops this job as Ctrl-Z does elsewhere, and takes the terminal again when it goes on.
    fn suspend(&mut self) -> anyhow::Result<()> {
        give_back();
        rustix::process::kill_current_process_group(Signal::TSTP).context("cannot stop")?;
        take().context("cannot take the terminal again")?;
        self.terminal.clear().context("cannot draw")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether the terminal is closed: the kernel then refuses every question about it, whether or not it sent a signal.
fn is_closed() -> bool {
    !stdin().is_terminal()
}

/// Signals that end the program, recorded here and obeyed when the terminal is restored.
#[derive(Clone)]
struct Ending {
    signal: Arc<AtomicUsize>,
}

impl Ending {
    const SIGNALS: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];

    fn watch() -> anyhow::Result<Ending> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in Ending::SIGNALS {
            let value = usize::try_from(number).unwrap_or(0);
            signal_hook::flag::register_usize(number, Arc::clone(&signal), value)
                .context("cannot watch for signals")?;
        }
        Ok(Ending { signal })
    }

    fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::SeqCst)).ok().filter(|&signal| signal > 0)
    }

    /// Ends the process where the thread that draws cannot: crossterm reads a closed terminal again and again
    /// without ever returning, waits for the rest of a key that came in part, and writing may wait for ever.
    fn guard(&self) {
        let ending = self.clone();
        thread::spawn(move || {
            loop {
                if is_closed() {
                    end_by(SIGHUP);
                }
                if let Some(signal) = ending.signal() {
                    thread::sleep(GRACE);
                    let (restored_in, restored) = channel();
                    thread::spawn(move || {
                        give_back();
                        let _ = restored_in.send(());
                    });
                    let _ = restored.recv_timeout(GRACE);
                    end_by(signal);
                }
                thread::sleep(TICK);
            }
        });
    }
}

/// Ends the process as `signal` does where nobody watches for it.
fn end_by(signal: i32) {
    if signal_hook::low_level::emulate_default_handler(signal).is_err() {
        signal_hook::low_level::exit(128 + signal);
    }
}

struct State {
    interface: String,
    app: App,
    theme: Theme,
    material: Option<Box<Material>>,
    sampling: Sampling,
    model: Option<Model>,
}

impl State {
    /// Takes what the threads have reported. `true`: there is something new.
    fn receive(&mut self, gatherer: &Gatherer) -> anyhow::Result<bool> {
        let mut has_news = false;
        loop {
            match gatherer.events.try_recv() {
                // What was on its way when the screen was paused.
                Ok(Event::Machine(_) | Event::Traffic(_)) if self.app.is_paused => {}
                Ok(Event::Machine(material)) => {
                    self.material = Some(material);
                    has_news = true;
                }
                Ok(Event::Traffic(sampling)) => {
                    self.sampling = sampling;
                    has_news = true;
                }
                Ok(Event::Ended(error)) => return Err(error),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => anyhow::bail!("the threads that sample have ended"),
            }
        }
        if has_news {
            self.model = self.material.as_ref().map(|material| Model::new(material, &self.sampling));
        }
        Ok(has_news)
    }

    fn draw(&self, taken: &mut Taken) -> anyhow::Result<()> {
        // Another thread has failed and its panic gave the terminal back: its last word is on the way.
        if !IS_TAKEN.load(Ordering::SeqCst) {
            return Ok(());
        }
        let screen = Screen {
            app: &self.app,
            model: self.model.as_ref(),
            interface: &self.interface,
            sampling: &self.sampling,
            theme: self.theme,
        };
        taken.terminal.draw(|frame| view::draw(frame, &screen)).context("cannot draw")?;
        Ok(())
    }
}

/// Shows the interface until somebody ends it.
pub fn show(interface: &str, app: App, gatherer: &Gatherer, sampling: Sampling) -> anyhow::Result<()> {
    let theme = Theme { has_colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
    let ending = Ending::watch()?;
    let mut taken = Taken::new()?;
    ending.guard();
    let interface = interface.to_owned();
    let mut state = State { interface, app, theme, material: None, sampling, model: None };
    let result = rounds(&mut state, &mut taken, gatherer, &ending);
    if is_closed() {
        // That it cannot be drawn on any more is nothing to report, and nobody would read it.
        end_by(SIGHUP);
    }
    drop(taken);
    if let Some(signal) = ending.signal() {
        // Whoever waits for this process learns that the signal ended it.
        end_by(signal);
    }
    result
}

fn rounds(state: &mut State, taken: &mut Taken, gatherer: &Gatherer, ending: &Ending) -> anyhow::Result<()> {
    state.draw(taken)?;
    while ending.signal().is_none() {
        let mut is_stale = state.receive(gatherer)?;
        if event::poll(TICK).context("cannot read the terminal")? {
            match event::read().context("cannot read the terminal")? {
                TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => match state.app.key(key) {
                    Action::Quit => return Ok(()),
                    Action::Suspend => {
                        taken.suspend()?;
                        is_stale = true;
                    }
                    Action::Interval(interval) => {
                        gatherer.set_interval(interval);
                        is_stale = true;
                    }
                    Action::Pause(is_paused) => {
                        gatherer.pause(is_paused);
                        is_stale = true;
                    }
                    Action::Redraw => is_stale = true,
                    Action::None => {}
                },
                TerminalEvent::Resize(..) => is_stale = true,
                _ => {}
            }
        }
        if is_stale {
            state.draw(taken)?;
        }
    }
    Ok(())
}
