//! Software that deals a queue's frames to other CPUs already, so that nothing is offered twice: rxlane's steering, and
//! RPS. Where it falls short, what to look at.

use crate::heat::{self, Hot};
use crate::report::{Finding, Remedy, Severity};
use crate::steered::{self, Hands, Steered};
use crate::strain::{self, Strain, Strained};
use crate::{Case, steering};
use host::{Interface, Quote, Xdp};

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It deals the frames.
    Deals,
    /// It is on, and leaves them where they arrive.
    Leaves,
    /// An XDP program is attached, and what it does could not be read.
    Unread,
}

/// Software that is on.
#[derive(Clone, Debug)]
pub(crate) struct Dealt {
    /// What it does.
    pub state: State,
    /// The same in sentences, with a blank before them.
    pub sentence: String,
    /// The lines that say so.
    pub quotes: Vec<Quote>,
    /// What to look at, where it falls short.
    pub remedies: Vec<Remedy>,
    /// Whether a CPU that takes frames over has nothing left.
    is_short: bool,
}

/// What deals the frames of a queue. `class` is what a rule is about, as crate `xdp` calls it (`pppoe`, `qinq`); `None` is
/// all of the device's load.
pub(crate) fn of(case: &Case<'_>, interface: &Interface, queue: u32, class: Option<&str>) -> Option<Dealt> {
    if let Some(steered) = steered::of(case, interface) {
        return Some(match steered.hands(class) {
            Hands::On => dealt(case, interface, queue, &steered),
            Hands::Little => left(interface, &steered),
            Hands::OtherClasses(classes) => elsewhere(interface, &steered, &classes),
        });
    }
    by_rps(case, interface, queue).or_else(|| unread(case, interface))
}

/// Steering that deals.
fn dealt(case: &Case<'_>, interface: &Interface, queue: u32, steered: &Steered<'_>) -> Dealt {
    let mut dealt = Dealt {
        state: State::Deals,
        sentence: format!(" Software spreads them already: {}.", steered.clause()),
        quotes: steered.quotes(),
        remedies: Vec::new(),
        is_short: false,
    };
    if let Some((cpu, share)) = steered.lopsided() {
        dealt.sentence.push_str(&format!(
            " CPU {cpu} takes {:.0} % of those: one flow, or flows that one bucket or a few have together.",
            share * 100.0
        ));
        dealt.remedies.push(rebalance(interface, steered));
    } else if steered.cpus().len() == 1 {
        dealt.sentence.push_str(" That is one CPU for all of them.");
        dealt.remedies.push(again(
            interface,
            "deal to more CPUs: take steering off and attach it again with a longer list".to_owned(),
            "--cpus LIST",
            "As many CPUs as there are busy flows can share the work.",
        ));
    }
    let lost: Vec<(u32, crate::loss::Loss)> = steered.losses(case);
    if let Some((cpu, loss)) = lost.iter().min_by_key(|(_, loss)| (loss.severity(), u64::MAX - loss.frames)) {
        dealt
            .sentence
            .push_str(&format!(" CPU {cpu} could not take all that it was given (`backlog-drop`)."));
        dealt.quotes.push(loss.quote.clone());
    }
    let serving = steering::cpu_of_queue(case, interface, queue);
    // The one that also takes the interrupts is spoken of below.
    let full = steered.full_target(case).filter(|(cpu, ..)| Some(*cpu) != serving);
    if let Some((cpu, idle, quote)) = full {
        // So few frames fill no CPU: other work does.
        dealt.is_short = !heat::of(case, interface).hot().is_some_and(Hot::is_little);
        dealt
            .sentence
            .push_str(&format!(" CPU {cpu}, which takes most of them, is idle {idle:.0} % of the time."));
        dealt.quotes.push(quote);
        if dealt.remedies.is_empty() {
            dealt.remedies.push(rebalance(interface, steered));
        }
    }
    full_serving(case, interface, steered, serving, &mut dealt);
    if let Some(rps) = interface.queues.get(&0).and_then(|queue| queue.rps.as_ref())
        && !rps.get().is_empty()
    {
        // A frame that comes out of a cpumap has no receive queue noted, and is the first one's
        // (`get_rps_cpu()` in net/core/dev.c).
        dealt.sentence.push_str(&format!(
            " RPS of queue 0 deals them a second time, to CPUs {}, which only costs.",
            steering::words(rps.get())
        ));
        dealt.quotes.push(rps.quote().clone());
    }
    dealt
}

/// What is left to do where the CPU that takes the interrupts is full all the same.
fn full_serving(
    case: &Case<'_>,
    interface: &Interface,
    steered: &Steered<'_>,
    serving: Option<u32>,
    dealt: &mut Dealt,
) {
    let Some(cpu) = serving.filter(|_| strain::of(case, serving).strain == Strain::Full) else { return };
    let others: Vec<u32> = steered.cpus().into_iter().filter(|target| *target != cpu).collect();
    if !others.is_empty() && steered.cpus().contains(&cpu) {
        dealt.sentence.push_str(&format!(" CPU {cpu} takes the interrupts and is a target besides."));
        let list = steering::words(&others).replace(", ", ",");
        dealt.remedies.push(again(
            interface,
            format!("leave CPU {cpu} to the driver alone"),
            &format!("--cpus {list}"),
            "The CPU that takes the interrupts has only the driver's work left.",
        ));
    } else {
        dealt.sentence.push_str(&format!(
            " What is left on CPU {cpu} is the driver's own work for each frame, which no software takes off it."
        ));
    }
}

/// Steering that is on and leaves the frames.
fn left(interface: &Interface, steered: &Steered<'_>) -> Dealt {
    let left = steered.left().map_or(String::new(), |left| format!(" {left}."));
    let name = steering::name(interface);
    Dealt {
        state: State::Leaves,
        sentence: format!(" Steering is on and leaves most frames where they arrive: {}.{left}", steered.clause()),
        quotes: steered.quotes(),
        remedies: vec![Remedy {
            os: "linux",
            what: "see why steering leaves the frames: the first command counts them by reason, the second says what \
                   this device's frames would need"
                .to_owned(),
            commands: ["status", "check"].map(|action| format!("rxlane steer {action} {name}")).into(),
            expected: "Cannot tell before the reason is known. Tags that the device strips, classes that are not \
                       selected and frames that are no IP stay where they arrive."
                .to_owned(), modelled: None,
}],
        is_short: false,
    }
}

/// Steering that is on for other classes of frames.
fn elsewhere(interface: &Interface, steered: &Steered<'_>, classes: &[String]) -> Dealt {
    let for_what = if classes.is_empty() { "none".to_owned() } else { classes.join(", ") };
    let seen = steered.steering.classes.as_ref().map(|seen| seen.quote().clone());
    Dealt {
        state: State::Leaves,
        sentence: format!(" Steering is on, but for other classes of frames ({for_what})."),
        quotes: steered.quotes().into_iter().chain(seen).collect(),
        remedies: vec![again(
            interface,
            "steer these frames, too: take steering off and attach it again, which looks anew at what the device does \
             not spread"
                .to_owned(),
            "",
            "Flows are dealt to CPUs by their inner header. `--classes` names classes where the look finds others.",
        )],
        is_short: false,
    }
}

fn by_rps(case: &Case<'_>, interface: &Interface, queue: u32) -> Option<Dealt> {
    let serving = steering::cpu_of_queue(case, interface, queue);
    let rps = interface.queues.get(&queue)?.rps.as_ref()?;
    rps.get().iter().any(|cpu| Some(*cpu) != serving).then(|| {
        let cpus = steering::words(rps.get());
        let sentence = format!(" RPS deals the frames on to CPUs {cpus}, after this queue's CPU took them.");
        Dealt::on(sentence, rps.quote().clone())
    })
}

/// A program of which somebody asked what it does, and got no answer.
fn unread(case: &Case<'_>, interface: &Interface) -> Option<Dealt> {
    let xdp = interface.xdp.as_ref().filter(|xdp| *xdp.get() != Xdp::Off)?;
    let unread = case.snapshot().unread.iter().find(|unread| {
        let asked = unread.what.strip_prefix("rxlane steer status ");
        asked.is_some_and(|asked| asked.split_whitespace().any(|word| word == interface.name))
    })?;
    let name = steering::name(interface);
    Some(Dealt {
        state: State::Unread,
        sentence: format!(
            " An XDP program is attached, and whether it deals these frames to other CPUs could not be read ({}).",
            unread.why
        ),
        quotes: vec![xdp.quote().clone()],
        remedies: vec![Remedy {
            os: "linux",
            what: "see as root what the program does with the frames, before anything is changed".to_owned(),
            commands: vec![format!("rxlane steer status {name}")],
            expected: "Where it steers them, nothing else is needed.".to_owned(),
            modelled: None,
        }],
        is_short: false,
    })
}

fn rebalance(interface: &Interface, steered: &Steered<'_>) -> Remedy {
    let name = steering::name(interface);
    if steered.rebalances() {
        return Remedy {
            os: "linux",
            what: "see whether it is one flow: buckets are moved to idle CPUs already, and one flow stays in one bucket"
                .to_owned(),
            commands: vec![format!("rxlane steer status {name}")],
            expected: "One flow stays on one CPU; several that share a bucket do, too.".to_owned(), modelled: None,
};
    }
    let mut remedy = again(
        interface,
        "move flows from busy to idle CPUs; the first command shows whether one bucket has it all, which is one flow as a \
         rule and cannot be divided"
            .to_owned(),
        "--rebalance",
        "Buckets of flows move to idle CPUs while they are drained; one flow stays on one CPU.",
    );
    remedy.commands.insert(0, format!("rxlane steer status {name}"));
    remedy
}

/// Steering taken off and attached again with another option.
fn again(interface: &Interface, what: String, option: &str, expected: &str) -> Remedy {
    let name = steering::name(interface);
    let up = format!("rxlane steer up {name} {option}");
    Remedy {
        os: "linux",
        what,
        commands: vec![format!("rxlane steer down {name}"), up.trim_end().to_owned()],
        expected: format!("{expected} Other options have to be given again."),
        modelled: None,
    }
}

impl Dealt {
    /// Software that deals frames, as one line says.
    pub fn on(sentence: String, quote: Quote) -> Dealt {
        Dealt { state: State::Deals, sentence, quotes: vec![quote], remedies: Vec::new(), is_short: false }
    }

    /// How grave a hot queue is, whose CPU is loaded like this; `unless` where nothing deals its frames.
    pub fn severity(&self, strained: &Strained, unless: Severity) -> Severity {
        match (self.state, strained.strain) {
            (State::Deals, Strain::Full) => Severity::Critical,
            (State::Deals, _) if self.is_short => Severity::Warning,
            (State::Deals, _) => Severity::Info,
            (State::Leaves | State::Unread, _) => unless,
        }
    }

    /// Puts what it says, and what it wants looked at, into a finding that would have offered it.
    pub fn into_finding(self, mut finding: Finding) -> Finding {
        finding.explanation.push_str(&self.sentence);
        let mut finding = finding.and(&self.quotes);
        finding.remedies.extend(self.remedies);
        if self.state == State::Unread { finding.possible() } else { finding }
    }
}
