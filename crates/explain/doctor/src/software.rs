//! Software that spreads a queue's frames over other CPUs already, so that nothing is offered twice: rxlane's
//! steering, and RPS. Where it falls short, what to look at.

use crate::device::Device;
use crate::facts::{Effect, Fact};
use crate::fast_path;
use crate::finding::{Finding, Remedy, Severity};
use crate::load::Load;
use crate::steered::{self, Handover, Steered};
use host::{Quote, Xdp};
use kernel::cpu::CpuSet;

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It spreads the frames, or forwards them itself.
    Spreads,
    /// It is on, and passes them where they arrive.
    Passes,
    /// An XDP program is attached, and what it does could not be read.
    Unread,
}

/// Software that is on.
#[derive(Clone, Debug)]
pub(crate) struct Software {
    pub state: State,
    facts: Vec<Fact>,
    quotes: Vec<Quote>,
    /// What to look at, where it falls short.
    remedies: Vec<Remedy>,
    /// Whether a CPU that frames are handed to has nothing left.
    is_short: bool,
}

impl Software {
    /// Software that does what the fact says, as these lines say.
    pub fn new<'q>(state: State, fact: Fact, quotes: impl IntoIterator<Item = &'q Quote>) -> Software {
        let quotes = quotes.into_iter().cloned().collect();
        Software { state, facts: vec![fact], quotes, remedies: Vec::new(), is_short: false }
    }

    fn fix(self, remedy: Remedy) -> Software {
        Software { remedies: vec![remedy], ..self }
    }

    /// How grave a busy queue is, whose CPU is loaded like this; `unless` where nothing spreads its frames.
    pub fn severity(&self, load: &Load, unless: Severity) -> Severity {
        match self.state {
            State::Spreads if load.is_full() => Severity::Critical,
            State::Spreads if self.is_short => Severity::Warning,
            State::Spreads => Severity::Info,
            State::Passes | State::Unread => unless,
        }
    }

    /// Puts what it does, and what to look at, into a finding that would have offered it.
    pub fn into_finding(self, finding: Finding) -> Finding {
        let finding = finding.says(self.facts).quotes(&self.quotes).fix(self.remedies);
        finding.possible_if(self.state == State::Unread)
    }
}

impl Device<'_> {
    /// What spreads the frames of a queue. `class` is what a rule is about, as crate `xdp` calls it (`pppoe`, `qinq`);
    /// `None` is all of the device's load.
    pub fn software(&self, queue: u32, class: Option<&str>) -> Option<Software> {
        if let Some(steered) = steered::of(self) {
            return Some(match steered.handover(class) {
                Handover::On => spreads(self, queue, &steered),
                Handover::Little => passes(self, &steered),
                Handover::OtherClasses(classes) => other_classes(self, &steered, classes),
            });
        }
        fast_path::software(self).or_else(|| rps(self, queue)).or_else(|| unread(self))
    }
}

/// Steering that spreads.
fn spreads(device: &Device<'_>, queue: u32, steered: &Steered<'_>) -> Software {
    let mut software = Software::new(State::Spreads, Fact::SteeredAlready(steered.fact()), steered.quotes());
    if let Some((cpu, share)) = steered.uneven() {
        software.facts.push(Fact::TargetTakes { cpu, share });
        software.remedies.push(rebalance(device, steered));
    } else if steered.cpus().len() == 1 {
        software.facts.push(Fact::OneTarget);
        software.remedies.push(steer_again(device, Effect::MoreTargets, "--cpus LIST"));
    }
    let losses = steered.losses(device.case);
    if let Some(lost) = losses.iter().min_by_key(|lost| (lost.severity(), u64::MAX - lost.loss.frames))
        && let crate::facts::DropCounter::Target { cpu, .. } = lost.loss.counter
    {
        software.facts.push(Fact::TargetLoses { cpu });
        software.quotes.push(lost.quote.clone());
    }
    let serving = device.cpu_of(queue);
    // Of the one that also takes the interrupts more is said below.
    if let Some((cpu, idle, quote)) =
        steered.full_target(device.case).filter(|(cpu, ..)| Some(*cpu) != serving)
    {
        // So few frames fill no CPU: other work does.
        software.is_short = device.distribution().one_queue().is_none_or(|busy| busy.little.is_none());
        software.facts.push(Fact::TargetBusy { cpu, idle });
        software.quotes.push(quote.clone());
        if software.remedies.is_empty() {
            software.remedies.push(rebalance(device, steered));
        }
    }
    if let Some(cpu) = serving.filter(|_| device.load_of(queue).is_full()) {
        driver_cpu(device, steered, cpu, &mut software);
    }
    if let Some(rps) = device.queues.get(&0).and_then(|queue| queue.rps.as_ref())
        && !rps.get().is_empty()
    {
        // A frame that comes out of a cpumap has no receive queue recorded, and is the first one's
        // (`get_rps_cpu()` in net/core/dev.c).
        software.facts.push(Fact::RpsAgain { cpus: rps.get().clone() });
        software.quotes.push(rps.quote().clone());
    }
    software
}

/// What remains to do where the CPU that takes the interrupts is full all the same.
fn driver_cpu(device: &Device<'_>, steered: &Steered<'_>, cpu: u32, software: &mut Software) {
    let others: Vec<u32> = steered.cpus().into_iter().filter(|target| *target != cpu).collect();
    match CpuSet::new(others) {
        Ok(others) if steered.cpus().contains(&cpu) && !others.list().is_empty() => {
            software.facts.push(Fact::DriverAndTarget { cpu });
            let option = format!("--cpus {}", others.list());
            software.remedies.push(steer_again(device, Effect::FreeDriverCpu { cpu }, &option));
        }
        _ => software.facts.push(Fact::DriverWorkRemains { cpu }),
    }
}

/// Steering that is on and leaves the frames.
fn passes(device: &Device<'_>, steered: &Steered<'_>) -> Software {
    let (share, reason) = steered.passed().unzip();
    let fact = Fact::SteeringPasses { steering: steered.fact(), share, reason };
    let name = device.word();
    let commands = ["status", "check"].map(|action| format!("rxlane steer {action} {name}"));
    Software::new(State::Passes, fact, steered.quotes()).fix(Remedy::linux(Effect::SeeWhyPassed, commands))
}

/// Steering that is on for other classes of frames.
fn other_classes(device: &Device<'_>, steered: &Steered<'_>, classes: &[String]) -> Software {
    let seen = steered.steering.classes.as_ref().map(host::Observed::quote);
    let fact = Fact::SteersOtherClasses { classes: classes.to_vec() };
    Software::new(State::Passes, fact, steered.quotes().chain(seen)).fix(steer_again(
        device,
        Effect::SteerThese,
        "",
    ))
}

fn rps(device: &Device<'_>, queue: u32) -> Option<Software> {
    let serving = device.cpu_of(queue);
    let rps = device.queues.get(&queue)?.rps.as_ref()?;
    let fact = Fact::RpsSpreads { cpus: rps.get().clone() };
    let is_spread = rps.get().iter().any(|cpu| Some(*cpu) != serving);
    is_spread.then(|| Software::new(State::Spreads, fact, [rps.quote()]))
}

/// A program of which somebody queried what it does, and got no answer.
fn unread(device: &Device<'_>) -> Option<Software> {
    let xdp = device.xdp.as_ref().filter(|xdp| *xdp.get() != Xdp::Off)?;
    let unread = device.case.snapshot().unread.iter().find(|unread| {
        let queried = unread.what.strip_prefix("rxlane steer status ");
        queried.is_some_and(|names| names.split_whitespace().any(|word| word == device.name))
    })?;
    let fact = Fact::ProgramUnread { why: unread.why.clone() };
    Some(Software::new(State::Unread, fact, [xdp.quote()]).fix(status(device, Effect::SeeProgram)))
}

fn rebalance(device: &Device<'_>, steered: &Steered<'_>) -> Remedy {
    if steered.rebalances() {
        return status(device, Effect::SeeWhetherOneFlow);
    }
    let mut remedy = steer_again(device, Effect::Rebalance, "--rebalance");
    remedy.commands.insert(0, format!("rxlane steer status {}", device.word()));
    remedy
}

/// What `rxlane steer status` shows.
pub(crate) fn status(device: &Device<'_>, effect: Effect) -> Remedy {
    Remedy::linux(effect, [format!("rxlane steer status {}", device.word())])
}

/// Steering detached and attached again with another option.
pub(crate) fn steer_again(device: &Device<'_>, effect: Effect, option: &str) -> Remedy {
    let name = device.word();
    let up = format!("rxlane steer up {name} {option}");
    Remedy::linux(effect, [format!("rxlane steer down {name}"), up.trim_end().to_owned()])
}
