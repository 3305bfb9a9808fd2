//! A snapshot with the questions that several rules put to it.

use crate::device::Device;
use crate::facts::{Modelled, Since};
use crate::modelled::{self, By};
use crate::traffic::Traffic;
use crate::vectors::Machine;
use explain::Report as Mix;
use explain::report::Steered;
use host::{Basis, Counter, Feature, Interface, Interrupt, Kind, Quote, Shares, Snapshot, System};
use nic::Profile;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

/// Frames since the counters were started below which their distribution says nothing.
pub const ENOUGH_SINCE_START: u64 = 10_000;
/// The same between two samples.
pub const ENOUGH_BETWEEN: u64 = 1_000;

/// Part of the busiest vector's interrupts from which another vector of the same name is in use.
const USED: f64 = 0.01;

/// Frames, or interrupts, below which their distribution says nothing.
pub(crate) const fn enough(basis: Basis) -> u64 {
    match basis {
        Basis::Between(_) => ENOUGH_BETWEEN,
        Basis::SinceStart => ENOUGH_SINCE_START,
    }
}

/// The name of what counts were taken over.
pub(crate) const fn since(basis: Basis) -> Since {
    match basis {
        Basis::Between(_) => Since::Sample,
        Basis::SinceStart => Since::Start,
    }
}

/// How many frames each receive queue of a device took.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Queue numbers, in the order of the shares.
    pub queues: Vec<u32>,
    /// What they counted.
    pub shares: Shares,
    /// The line of each queue.
    pub quotes: Vec<Quote>,
}

impl Spread {
    /// Whether enough frames were counted to speak of a distribution.
    pub fn is_enough(&self) -> bool {
        self.shares.total() >= enough(self.shares.basis)
    }

    /// Queues that took at least one frame in a hundred of an even share.
    pub fn used(&self) -> usize {
        let even = self.shares.total() as f64 / self.queues.len().max(1) as f64;
        self.shares.counts.iter().filter(|&&count| count > 0 && count as f64 >= even / 100.0).count()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Carries {
    pub quotes: Vec<Quote>,
    /// Part of the frames of the traffic sample, 0 to 1, where there is one.
    pub share: Option<f64>,
}

impl Carries {
    fn of(quotes: Vec<Quote>, share: Option<f64>) -> Option<Carries> {
        (!quotes.is_empty() || share.is_some_and(|share| share > 0.0)).then_some(Carries { quotes, share })
    }
}

/// Everything that rules look at.
pub struct Case<'a> {
    snapshot: &'a Snapshot,
    traffic: Option<&'a Traffic>,
    only: Option<&'a str>,
    profiles: &'a [Profile],
    /// By interface; and whether the device is known well enough to say which queue a frame lands on.
    mixes: OnceCell<BTreeMap<String, (Mix, bool)>>,
    /// By interface and number of CPUs; each takes reading the sample once.
    steered: RefCell<BTreeMap<(String, u16), Option<Steered>>>,
    /// What the model expects, by interface, queue and means; each takes some hundred thousand simulated frames.
    modelled: RefCell<BTreeMap<(String, u32, By), Option<Modelled>>>,
    asks_model: bool,
    /// Names by name: no borrows, which would fix the lifetime of the case.
    physical: OnceCell<BTreeMap<String, String>>,
    interrupts: OnceCell<BTreeMap<String, Vec<usize>>>,
    machine: OnceCell<Machine>,
}

impl<'a> Case<'a> {
    /// `only` restricts the case to an interface, the device below it and what stands on that device.
    /// Errors: a built-in profile that does not load, which a test of crate `nic` rules out.
    pub fn new(
        snapshot: &'a Snapshot,
        traffic: Option<&'a Traffic>,
        only: Option<&'a str>,
    ) -> Result<Case<'a>, nic::FileError> {
        Ok(Case {
            snapshot,
            traffic,
            only,
            profiles: nic::builtin()?,
            mixes: OnceCell::new(),
            steered: RefCell::default(),
            modelled: RefCell::default(),
            asks_model: true,
            physical: OnceCell::new(),
            interrupts: OnceCell::new(),
            machine: OnceCell::new(),
        })
    }

    /// Without what the model expects of remedies, which takes most of the time of a diagnosis.
    pub fn without_model(self) -> Case<'a> {
        Case { asks_model: false, ..self }
    }

    /// What was read.
    pub fn snapshot(&self) -> &'a Snapshot {
        self.snapshot
    }

    /// Linux, where the text says or only Linux prints such output.
    pub fn system(&self) -> Option<System> {
        self.snapshot.system.as_ref().map(|fact| fact.value)
    }

    /// The kernel's version, `(6, 12)` of `6.12.9`, where the text says it and it is Linux.
    pub(crate) fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.snapshot.kernel.as_ref().filter(|_| !self.is_bsd())?;
        let mut numbers = release.value.split(['.', '-']).map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    }

    /// Whether the model's costs of a frame, which were counted on x86, are this machine's; where nothing says the architecture,
    /// it is taken for x86.
    pub fn has_known_costs(&self) -> bool {
        self.snapshot.architecture.as_ref().is_none_or(|known| known.value == host::Architecture::X86)
    }

    /// Whether the text comes from FreeBSD or NetBSD.
    pub(crate) fn is_bsd(&self) -> bool {
        matches!(self.system(), Some(System::FreeBsd | System::NetBsd))
    }

    /// Whether the text comes from that system, or may.
    pub(crate) fn may_be(&self, system: System) -> bool {
        self.system().is_none_or(|known| known == system)
    }

    /// What is so on the text's system; where that is not known, it is taken for Linux.
    pub(crate) fn by_system<T>(&self, linux: T, freebsd: T, netbsd: T) -> T {
        match self.system() {
            Some(System::FreeBsd) => freebsd,
            Some(System::NetBsd) => netbsd,
            Some(System::Linux) | None => linux,
        }
    }

    /// The number that a sysctl shows, with its line.
    pub(crate) fn sysctl(&self, name: &str) -> Option<(u64, &'a Quote)> {
        let seen = self.snapshot.sysctls.get(name)?;
        Some((seen.get().trim().parse().ok()?, seen.quote()))
    }

    /// Counters compared with each other.
    pub(crate) fn shares<'c>(&self, counters: impl IntoIterator<Item = &'c Counter>) -> Option<Shares> {
        Shares::of(counters, self.snapshot.interval)
    }

    /// Interfaces whose receive path is judged: network cards and virtual machines' devices, not what is stacked
    /// on them, nor loopback.
    pub(crate) fn devices<'c>(&'c self) -> impl Iterator<Item = Device<'c>> + 'c {
        let devices = self.snapshot.interfaces.iter().filter(|i| self.is_judged(i) && is_device(i));
        devices.map(|interface| Device { case: self, interface })
    }

    pub(crate) fn stacked(&self) -> impl Iterator<Item = &'a Interface> + '_ {
        let is_stacked =
            |kind: Option<&Kind>| matches!(kind, Some(Kind::Vlan { .. } | Kind::Ppp | Kind::Bridge { .. }));
        self.snapshot.interfaces.iter().filter(move |i| self.is_judged(i) && is_stacked(kind(i)))
    }

    fn is_judged(&self, interface: &Interface) -> bool {
        self.only.is_none_or(|only| self.physical(&interface.name) == self.physical(only))
    }

    /// [`Snapshot::physical`], looked up once for each interface: machines with a thousand of them exist.
    pub fn physical<'n>(&'n self, name: &'n str) -> &'n str {
        let all = self.physical.get_or_init(|| {
            let names = self.snapshot.interfaces.iter().map(|interface| &interface.name);
            names.map(|name| (name.clone(), self.snapshot.physical(name).to_owned())).collect()
        });
        all.get(name).map_or(name, String::as_str)
    }

    fn interrupts_of(&self, interface: &str) -> impl Iterator<Item = &'a Interrupt> {
        let all = self.interrupts.get_or_init(|| {
            let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (place, interrupt) in self.snapshot.interrupts.iter().enumerate() {
                if let Some(name) = &interrupt.interface {
                    all.entry(name.clone()).or_default().push(place);
                }
            }
            all
        });
        let places = all.get(interface).map_or(&[][..], Vec::as_slice);
        let snapshot = self.snapshot;
        places.iter().filter_map(move |place| snapshot.interrupts.get(*place))
    }

    /// The requirements on the interrupts of all devices together.
    pub(crate) fn machine(&self) -> &Machine {
        self.machine.get_or_init(|| Machine::of(self))
    }

    /// Profiles that fit the device: one where its PCI id or model is known, all of its driver's otherwise, none
    /// where nothing fits.
    pub fn profiles(&self, interface: &Interface) -> Vec<&'a Profile> {
        if let Some(pci) = &interface.pci
            && let Some(profile) = self.profiles.iter().find(|profile| profile.pci.contains(&pci.value))
        {
            return vec![profile];
        }
        if let Some(model) = &interface.model
            && let Some(profile) = self.by_model(&model.value)
        {
            return vec![profile];
        }
        let Some(driver) = &interface.driver else { return Vec::new() };
        let system = self.system().unwrap_or(System::Linux).name();
        self.profiles
            .iter()
            .filter(|profile| profile.drivers(system).any(|known| known == driver.value))
            .collect()
    }

    /// Any profile, for what does not depend on the device.
    pub(crate) fn any_profile(&self) -> Option<&'a Profile> {
        self.profiles.first()
    }

    /// The profile whose name is a word of the model's text (`I210 Gigabit Network Connection`).
    fn by_model(&self, model: &str) -> Option<&'a Profile> {
        let mut words = model.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.find_map(|word| self.profiles.iter().find(|profile| profile.is_called(word)))
    }

    /// What all profiles that fit say alike of a claim; `None` where one of them says nothing or another thing, or
    /// no profile fits.
    pub fn agreed<T: PartialEq>(
        &self,
        interface: &Interface,
        claim: impl Fn(&'a Profile) -> Option<T>,
    ) -> Option<T> {
        let mut profiles = self.profiles(interface).into_iter();
        let said = claim(profiles.next()?)?;
        profiles.all(|profile| claim(profile).as_ref() == Some(&said)).then_some(said)
    }

    /// Whether the driver of an interface runs XDP programs itself, as all profiles that fit say.
    pub fn native_xdp(&self, interface: &Interface) -> Option<bool> {
        self.agreed(interface, |profile| profile.tri(nic::schema::XDP_NATIVE))
    }

    /// Whether a driver answered the command that it does not have what that shows.
    pub(crate) fn is_refused(&self, command: &str) -> bool {
        let is_refused = |why: &str| {
            let why = why.to_ascii_lowercase();
            why.contains("not supported") || why.contains("unsupported")
        };
        self.snapshot.unread.iter().any(|unread| unread.what == command && is_refused(&unread.why))
    }

    /// Frames by receive queue; `None` where no queue's frames are known.
    pub fn spread(&self, interface: &Interface) -> Option<Spread> {
        let counted: Vec<(u32, &Counter)> = interface
            .queues
            .iter()
            .filter_map(|(&number, queue)| Some((number, queue.packets.as_ref()?)))
            .collect();
        let shares = Shares::of(counted.iter().map(|(_, counter)| *counter), self.snapshot.interval)?;
        Some(Spread {
            queues: counted.iter().map(|(number, _)| *number).collect(),
            shares,
            quotes: counted.iter().map(|(_, counter)| counter.quote().clone()).collect(),
        })
    }

    /// Interrupts of the device that serve receive traffic, alone or with transmit; vectors for link changes,
    /// mailboxes and transmit alone are left out.
    pub fn receive_interrupts(&self, interface: &Interface) -> Vec<&'a Interrupt> {
        let all: Vec<&Interrupt> = self.interrupts_of(&interface.name).collect();
        let receiving: Vec<&Interrupt> =
            all.iter().copied().filter(|interrupt| interrupt.receives == Some(true)).collect();
        // One vector without a queue in its name serves everything.
        if !receiving.is_empty() {
            return receiving;
        }
        let mut open: Vec<&Interrupt> =
            all.into_iter().filter(|interrupt| interrupt.receives.is_none()).collect();
        // Several of one name and no number. Of a system on a chip's device one receives, another transmits
        // (mtk_eth_soc), and the name does not say which: the busiest is taken for it. Where they have the interface's name,
        // each is a queue's or a CPU's (macb, mvpp2), or serves a ring without traffic (bcmgenet).
        let is_one_name = open.array_windows().all(|[one, next]| one.action == next.action);
        if is_one_name && open.iter().all(|interrupt| interrupt.queue.is_none()) {
            let total = |interrupt: &&Interrupt| {
                interrupt.counts.values().map(host::Counter::value).fold(0, u64::saturating_add)
            };
            let most = open.iter().map(total).max().unwrap_or(0);
            if open.iter().any(|interrupt| interrupt.network_device().is_some()) {
                open = open.into_iter().max_by_key(total).into_iter().collect();
            } else {
                open.retain(|interrupt| total(interrupt) as f64 >= USED * most as f64);
            }
        }
        open
    }

    /// Receive queues in use: by channels, by queue counters, by the table's heading, by vectors, or by the files of
    /// sysfs, in this order.
    pub fn queue_count(&self, interface: &Interface) -> Option<u32> {
        if let Some(count) = interface.channel_count() {
            return Some(count);
        }
        let counted = interface.queues.values().filter(|queue| queue.packets.is_some()).count();
        if counted > 0 {
            return u32::try_from(counted).ok();
        }
        if let Some(reta) = &interface.reta {
            return Some(reta.get().rings);
        }
        let vectors = self.receive_interrupts(interface);
        let queues = vectors.iter().filter(|interrupt| interrupt.queue.is_some()).count();
        match (queues, vectors.len()) {
            (0, 1) => Some(1),
            // One file of sysfs may be all that somebody looked at.
            (0, _) => u32::try_from(interface.queues.len()).ok().filter(|&queues| queues > 1),
            (queues, _) => u32::try_from(queues).ok(),
        }
    }

    /// What says that PPPoE arrives on this device: the kernel's sessions, a PPP interface on it, a traffic
    /// sample. `None` where nothing does; that is not to say that there is none.
    pub(crate) fn carries_pppoe(&self, interface: &Interface) -> Option<Carries> {
        let here = |name: &str| self.physical(name) == interface.name;
        let sessions = self.snapshot.sessions.iter().filter(|s| here(&s.interface)).map(|s| &s.quote);
        let others = self.snapshot.interfaces.iter().filter(|other| other.name != interface.name);
        let stacked = others.filter(|other| kind(other) == Some(&Kind::Ppp) && here(&other.name));
        let quotes = sessions.chain(stacked.filter_map(|other| Some(&other.kind.as_ref()?.quote)));
        let share = self.share_of(interface, |stack| stack.split('/').any(|word| word == "pppoe"));
        Carries::of(quotes.cloned().collect(), share)
    }

    /// Whether the kernel ends PPPoE sessions that arrive on an interface, as `/proc/net/pppoe` or a PPP interface on it shows.
    pub fn ends_pppoe(&self, interface: &Interface) -> bool {
        self.carries_pppoe(interface).is_some_and(|carries| !carries.quotes.is_empty())
    }

    pub(crate) fn carries_qinq(&self, interface: &Interface) -> Option<Carries> {
        let is_vlan = |interface: &Interface| matches!(kind(interface), Some(Kind::Vlan { .. }));
        let on_vlan = |inner: &Interface| {
            let parent = inner.parent.as_ref().and_then(|parent| self.snapshot.interface(&parent.value));
            parent.is_some_and(is_vlan)
        };
        let interfaces = self.snapshot.interfaces.iter();
        let inner = interfaces.filter(|inner| is_vlan(inner) && on_vlan(inner));
        let here = inner.filter(|inner| self.physical(&inner.name) == interface.name);
        let quotes = here.filter_map(|inner| Some(inner.kind.as_ref()?.quote.clone()));
        let share =
            self.share_of(interface, |stack| stack.split('/').filter(|word| *word == "vlan").count() >= 2);
        Carries::of(quotes.collect(), share)
    }

    /// Part of the sample's frames whose stack is such; `None` without a sample.
    pub fn share_of(&self, interface: &Interface, is_such: impl Fn(&str) -> bool) -> Option<f64> {
        let mix = self.sampled(interface)?;
        let such: u64 = mix.stacks.iter().filter(|row| is_such(&row.stack)).map(|row| row.frames).sum();
        let all: u64 = mix.stacks.iter().map(|row| row.frames).sum();
        (all > 0).then(|| such as f64 / all as f64)
    }

    /// The traffic sample as this device, set up as the snapshot says, distributes it. `None` without a sample,
    /// where it was taken on another interface, or where no single profile fits.
    pub(crate) fn mix(&self, interface: &Interface) -> Option<&Mix> {
        self.counted(interface).filter(|(_, is_placed)| *is_placed).map(|(mix, _)| mix)
    }

    /// What the traffic sample of this device is; its queues mean nothing where `Case::mix` has none.
    pub fn sampled(&self, interface: &Interface) -> Option<&Mix> {
        self.counted(interface).map(|(mix, _)| mix)
    }

    fn counted(&self, interface: &Interface) -> Option<&(Mix, bool)> {
        let traffic = self.traffic?;
        let mixes = self.mixes.get_or_init(|| {
            let devices = self.devices().filter(|device| traffic.is_about(device, self));
            devices.filter_map(|device| Some((device.name.clone(), traffic.on(&device, self)?))).collect()
        });
        mixes.get(&interface.name).filter(|(mix, _)| mix.source.frames > 0)
    }

    /// What the model expects where software spreads the frames of a queue; `None`: unknown.
    pub(crate) fn modelled(&self, device: &Device<'_>, queue: u32, by: By) -> Option<Modelled> {
        if !self.asks_model {
            return None;
        }
        let place = (device.name.clone(), queue, by);
        if let Some(known) = self.modelled.borrow().get(&place) {
            return known.clone();
        }
        let modelled = modelled::simulate(device, queue, by);
        self.modelled.borrow_mut().insert(place, modelled.clone());
        modelled
    }

    /// What spreading the sample's flows over so many CPUs would come to; `None` for as many as the sample was taken for.
    pub fn steered(&self, interface: &Interface, cpus: Option<u16>) -> Option<Steered> {
        let mix = self.sampled(interface)?;
        let Some(cpus) = cpus.filter(|&cpus| cpus != mix.steered.cpus) else {
            return Some(mix.steered.clone());
        };
        let place = (interface.name.clone(), cpus);
        if let Some(known) = self.steered.borrow().get(&place) {
            return known.clone();
        }
        let steered = self.traffic?.steered(interface, self, cpus);
        self.steered.borrow_mut().insert(place, steered.clone());
        steered
    }

    /// The traffic sample itself, for a rule that tries other settings ([`Traffic::with`]).
    pub(crate) fn traffic(&self) -> Option<&'a Traffic> {
        self.traffic
    }

    /// A feature of an interface, with the line that shows it.
    pub(crate) fn feature<'i>(&self, interface: &'i Interface, name: &str) -> Option<(Feature, &'i Quote)> {
        interface.features.get(name).map(|seen| (*seen.get(), seen.quote()))
    }
}

/// What an interface is, where the text says.
pub(crate) fn kind(interface: &Interface) -> Option<&Kind> {
    interface.kind.as_ref().map(|kind| &kind.value)
}

fn is_device(interface: &Interface) -> bool {
    const NOT_DEVICES: [&str; 8] = ["lo", "ifb", "dummy", "tun", "tap", "docker", "sit", "wg"];
    let by_kind = match kind(interface) {
        Some(Kind::Device | Kind::Veth) => true,
        Some(Kind::Vlan { .. } | Kind::Ppp | Kind::Bridge { .. } | Kind::Other(_)) => return false,
        None => false,
    };
    let digits = interface.name.trim_end_matches(|c: char| c.is_ascii_digit());
    by_kind || !NOT_DEVICES.contains(&digits)
}
