//! What findings state and what remedies bring about, as data: the command makes the sentences (`render/prose` there).

#![expect(missing_docs, reason = "the sentence that the command makes of each is its documentation")]

mod fast;
mod flow;

use crate::pppoe_gro::PppoeGro;
pub use fast::{FastEffect, FastFact};
pub use flow::{Bypass, FlowEffect, FlowFact, LookedUp};
use serde::Serialize;

/// A statement of a finding. Shares are parts of 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    // Of several rules.
    Load(CpuLoad),
    LoadIsOneFlow,
    SameFor { names: Vec<String> },
    InSample { what: Carried, share: f64 },
    QueueTook { queue: u32, share: f64 },
    NoneSince,
    SoFewInterrupts,
    // Software that spreads frames already.
    SteeredAlready(Steering),
    TargetTakes { cpu: u32, share: f64 },
    OneTarget,
    TargetLoses { cpu: u32 },
    TargetBusy { cpu: u32, idle: f64 },
    DriverAndTarget { cpu: u32 },
    DriverWorkRemains { cpu: u32 },
    RpsAgain { cpus: Vec<u32> },
    SteeringPasses { steering: Steering, share: Option<f64>, reason: Option<String> },
    SteersOtherClasses { classes: Vec<String> },
    RpsSpreads { cpus: Vec<u32> },
    ProgramUnread { why: String },
    NetisrSpreads { threads: u32 },
    // link-speed
    HalfDuplex { mbps: u32 },
    SlowLink { mbps: u32, device: u32 },
    SlowLinkCause(LinkCause),
    LinkWentDown { times: u64 },
    // frame-oversize
    TooLong(Loss),
    TooLongUnknown,
    FullFrame { chain: String, frame: u32, tags: u32, limit: Option<u32> },
    NoneAmong { frames: u64 },
    BelowTooSmall { name: String, packet: u32, below: String, mtu: u32 },
    // tags-hidden
    ProgramWithoutTag { name: String },
    SteeringWithoutTag { name: String },
    StrippedForSteering { name: String },
    // pppoe-unhashed, qinq-unhashed
    PppoeUnhashed { device: String },
    PppoeUnknown { queue: u32, share: f64 },
    PppoeDeviceUnknown { device: String },
    OthersSpread,
    PppoeSomewhere { devices: Vec<String> },
    PppoeOnOneCpu { cpu: u32, frames: u64, packets: u64, workers: Vec<u32>, of: usize },
    QinqUnhashed { device: String },
    QinqUnknown { device: String },
    // udp-two-tuple
    UdpByAddresses { flows: Vec<String> },
    UdpMayBe { queue: u32, share: f64 },
    UdpUsual,
    UdpChanged { flow: String, former: String, now: String },
    // single-queue, one-queue-hot, one-flow
    SingleQueue { cpu: Option<u32> },
    OneQueue { queue: u32, of: usize, share: f64, total: u64, interrupts: bool, since: Since },
    Little(Little),
    CausesKnown { ids: Vec<&'static str> },
    CausesPossible(Vec<Cause>),
    OneFlow { flow: String, protocol: String, share: f64 },
    // reta-uneven, reta-unused-queue, queues-below-cpus
    RetaNamesOne { queue: u32, entries: usize, rings: u32 },
    RetaPrefers { queue: u32, most: usize, entries: usize, queues: usize, mean: f64 },
    RetaSpreadsAllTheSame,
    RetaLeavesOut { queues: Vec<u32>, rings: usize, why: LeftOut },
    FewQueues { used: u32, device: u32, cpus: u32 },
    MoreQueues(MoreQueues),
    // ring-overflow, ring-small, interface-wedged, counter-wrap
    RingFull(Loss),
    RingFullCpu,
    RingFullCause { past: bool },
    LongerRingFills,
    SmallRing { entries: u32, most: u32 },
    Hung { interface: Option<String>, reset: bool, times: u64 },
    MbufsDenied { kind: String, count: u64, since: Since, limit: Option<(u64, u64)> },
    Allowance { counter: String, count: u64, share: Option<f64>, since: Since, of: Allowed },
    TransmitStalled { queue: String },
    TransmitHung { interface: Option<String>, times: u64 },
    Stuck { counter: String, lost: u64 },
    Wrapped { counters: usize, of: usize },
    // moderation-off, moderation-long
    InterruptEach { interrupts: f64, frames: f64 },
    ModerationOff { idle: bool },
    BgeInterrupts { rate: u64 },
    Burst { usecs: u64, mbps: u32, full: u64, small: u64, entries: u64 },
    BurstLost(Loss),
    BurstOfSmall,
    BgeBurst { level: u64, burst: u64, interfaces: u64, together: u64, depth: u64, dropped: Option<u64> },
    // irq-one-cpu, irq-collision, irq-floating, cpu-shared, irq-little-cpu, napi-thread
    // `share`: part of their interrupts that the CPU took.
    VectorsOnOneCpu { vectors: usize, cpu: u32, others: usize, share: f64, since: Since },
    // Of the interrupts of that CPU the owner has such a share, so that these are a minor part.
    MinorPart { cpu: u32, owner: String, share: f64 },
    CpusFull { cpus: Option<usize>, idle: f64, work: f64 },
    SpreadingUseless,
    NapiThread { thread: String, share: Option<f64>, if_cpus: Option<u32> },
    QueueThread { thread: String, share: f64, full: usize },
    InterruptsFull { cpu: u32, share: f64, idle: f64, others: usize },
    LockContention { share: f64, functions: Vec<String>, lock: Option<(Lock, String)> },
    CpuShared(CpuShared),
    // Nearly all of them are those of one device.
    MostlyOne { owner: String },
    // Counts since the start of vectors that several CPUs served.
    MovedSince,
    LittleCpu { cpu: u32, owners: Vec<String>, of_1024: Option<u32>, big: Vec<u32>, since: Since },
    VectorsShare { cpu: u32, names: Vec<String>, free: Vec<u32> },
    VectorsMove { moved: usize, of: usize, since: Since, first: String, cpus: Vec<u32> },
    // softirq-one-cpu, time-squeeze
    OneCpuReceives { cpu: u32, share: f64, others: usize, since: Since },
    WorkIsLittle,
    WorkOverUnknownTime,
    WorkSteered { steering: Steering, uncounted: bool },
    Ksoftirqd { cpu: u32, share: f64 },
    SoftirqFull { cpu: u32, share: f64, idle: f64, others: usize },
    Squeezed { cpu: u32, times: u64, frames: u64, share: f64, per_second: Option<f64> },
    SqueezedLittle { cpu: u32, times: u64, frames: u64, now: bool },
    // rps-off, rps-same-cpu, xdp-generic-only, backlog-drop
    RpsOff { queue: u32, why: Need },
    RpsSameCpu { queue: u32, cpu: u32 },
    GenericXdp { native: Option<bool>, since: Option<String> },
    GenericSteering,
    BacklogFull(Loss),
    BacklogIs,
    TargetFull(Loss),
    TargetShare { share: f64 },
    // FreeBSD's netisr and the IP input queue
    NetisrDirect { pppoe: bool },
    NetisrOneThread,
    NetisrUnbound,
    InputQueue { depth: Option<u64>, drops: u64, new: Option<u64> },
    // flowtable-off, flowtable-devices, flowtable-bypassed, hw-offload-off
    Flow(FlowFact),
    // fastpath-bypassed, flowtable-off, and rules where a fast path is up
    Fast(FastFact),
    // gro-off, mtu-below-1500, user-space-pppoe, checksum-double-tag, offload-lost
    GroOff,
    GroPppoe,
    PppoeGro(Option<PppoeGro>),
    VlanMtu { name: String, mtu: u32 },
    PppMtu { name: String, mtu: u32 },
    FullPppoe { below: Option<(String, u32)>, works: Option<bool> },
    UserSpacePppoe { process: String, cpu: Option<f64> },
    PartialChecksum { times: u64 },
    TwoTags { chain: String },
    OldKernel { chain: String, others: usize, kernel: String },
    OffloadsLost { name: String, lost: Vec<&'static str>, can: Vec<&'static str>, tags: Option<u32> },
    // insufficient-data
    Insufficient(Insufficient),
}

/// Rules that lack data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Insufficient {
    pub ids: Vec<&'static str>,
    pub of: usize,
    pub commands: Vec<String>,
    pub more: usize,
    /// A command whose output the text holds without it, so that nothing says of which interface it is.
    pub unnamed: Option<String>,
}

/// A CPU that serves several busy devices while others serve none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuShared {
    pub cpu: u32,
    pub owners: Vec<String>,
    /// Parts of its interrupts, of each owner.
    pub shares: Vec<f64>,
    /// CPUs that serve none of a busy device.
    pub free: Vec<u32>,
    /// The part of the interrupts that those took.
    pub by_free: f64,
    pub since: Since,
}

/// How near its limit a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuLoad {
    /// It has no time left, and receive work takes most of it.
    Full {
        cpu: u32,
        idle: f64,
    },
    /// The same by the share of its `ksoftirqd`, per cent.
    Ksoftirqd {
        cpu: u32,
        share: f64,
    },
    /// It has no time left, and other work takes most of it: receive work no more than this, per cent.
    OtherWork {
        cpu: u32,
        idle: f64,
        receiving: f64,
    },
    /// It has plenty of time left.
    Room {
        cpu: u32,
        idle: f64,
    },
    Between {
        cpu: u32,
        idle: f64,
    },
    /// Its load is not known, or which CPU it is.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    pub counter: DropCounter,
    pub frames: u64,
    pub when: When,
    pub per_second: Option<f64>,
    /// Part of all frames, where those received are known.
    pub share: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropCounter {
    Named(String),
    Queue(u32),
    Backlog(u32),
    Target { interface: String, cpu: u32 },
}

/// When frames were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    Now,
    /// Before the first of two samples; none since.
    Before,
    /// Since the counters were started; there is one sample.
    SinceStart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    Sample,
    Start,
}

/// What rxlane's XDP program does with a device's frames.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steering {
    pub cpus: Vec<u32>,
    pub generic: bool,
    /// Part of the frames that it steers, and over what that was counted; absent where too few were.
    pub share: Option<(f64, Since)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carried {
    Pppoe,
    Qinq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkCause {
    Partner,
    CableOrSetting,
    PartnerUnknown,
    Any,
}

/// What a cloud's allowance is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowed {
    Received,
    Sent,
    /// Packets of both directions.
    Both,
    Connections,
    LinkLocal,
}

/// Why frames on one queue are no load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Little {
    Rate(f64),
    #[serde(rename = "beside-busiest")]
    NextToBusiest,
    Total,
}

/// What may put all frames on one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Unhashed,
    FlowOrUdp,
    Flow,
    FlowOrUdpUnknown,
    Table,
    FewFlowsInBlocks,
    FormerTable,
    RssOff,
}

/// Why an indirection table that leaves queues out does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    NamesOne,
    Reach,
    FourBits,
    Chosen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoreQueues {
    Useless,
    Useful,
    IfFull,
}

/// Why a device cannot spread its frames.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    SingleQueue,
    OneQueue { queue: u32, share: f64 },
    Unhashed,
}

/// A lock of the kernel, by what it protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lock {
    TransmitQueue,
    Conntrack,
    Iommu,
    Pages,
    Slab,
    Backlog,
    Ppp,
    Socket,
}

/// What a remedy brings about.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// RPS over these CPUs; without them the mask goes into that file.
    Rps {
        cpus: Vec<u32>,
        file: String,
        conditional: bool,
        filter: bool,
    },
    Steer {
        native: bool,
    },
    Netisr,
    NetisrDispatch,
    NetisrThreads,
    SeeWhetherOneFlow,
    Rebalance,
    MoreTargets,
    FreeDriverCpu {
        cpu: u32,
    },
    SeeWhyPassed,
    SteerThese,
    SeeProgram,
    LongerRing {
        entries: u32,
        now: u32,
    },
    RingUnknown,
    FreeBsdRing {
        node: String,
    },
    RingIfLost,
    /// Down and up; after a reset by the driver only where the device stays silent.
    Restart {
        only_if_silent: bool,
    },
    /// What ends hangs of transmit queues: a driver, firmware, settings.
    TransmitCause,
    /// TSO and GSO off, of a driver of which reports say that it ends hangs.
    NoSegmentation,
    RetaInTurn,
    RetaDefault,
    RetaAll {
        queues: usize,
    },
    Channels,
    Negotiate,
    RaiseMtu {
        top: String,
        mtu: u32,
        vlan_mtu: u32,
        follows: Option<String>,
    },
    LowerMtu,
    KeepTags,
    SteerWithTags,
    HashPorts {
        sample: Option<(f64, f64)>,
    },
    Moderation,
    ShorterModeration,
    BgeLevel,
    BgeQueue,
    CpuEach {
        busiest: Option<f64>,
    },
    FreeCpuEach,
    /// Fewer free CPUs than vectors: the part of the interrupts that the busiest CPU has before and after.
    FreeCpus {
        before: f64,
        after: f64,
    },
    FindLock,
    LessContention {
        lock: Lock,
    },
    MoreMbufs {
        sysctl: String,
    },
    BigCpuEach,
    ThreadedNapi,
    /// OpenWrt's setting, for all CPUs or one for each device.
    PacketSteering {
        all: bool,
    },
    FindCause,
    /// Which thread it is that interrupts run in.
    FindThread,
    SpreadPolled,
    RpsAtEach,
    LessWork,
    LargerInstance,
    Budget {
        known: bool,
    },
    RpsOff,
    SteerNative,
    AttachNative,
    Backlog {
        now: Option<u64>,
    },
    SteeredDrops {
        rebalance: bool,
    },
    Flow(FlowEffect),
    Fast(FastEffect),
    /// `pppoe`: what PPPoE carries is coalesced, too.
    Gro {
        pppoe: bool,
    },
    Pppoe1500 {
        raised: Option<RaisedDevice>,
    },
    KernelPppoe {
        limit: bool,
    },
    InputQueue,
    SoftwareChecksums {
        known: bool,
    },
    Offloads {
        fixed: bool,
    },
    DeviceMode {
        title: String,
        enable: String,
        stack: Option<String>,
    },
}

/// A device whose MTU rises to 1508 for PPPoE, and what that lets in besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedDevice {
    pub name: String,
    pub frame: u32,
    /// Whether it takes untagged frames of that length at MTU 1500 already.
    pub already: bool,
    /// What sets its limit, in the profile's words.
    pub follows: Option<String>,
}

/// What spreading flows would come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forecast {
    NoSample,
    OtherSample,
    Sample { cpus: u16, after: f64, before: Option<f64>, effective: f64 },
}

/// What the model of the receive path expects.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// The costs of frames that arrive in socket buffers were not counted.
    Uncounted,
    Expected(Modelled),
}

/// What the model of the receive path expects of a remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Modelled {
    /// How many times as many packets a second as now come through without loss.
    pub times: f64,
    /// Packets a second now and with the remedy; absent where the time that a frame takes is not known.
    pub packets_per_second: Option<(f64, f64)>,
    pub assumptions: Vec<Assumption>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Assumption {
    /// `coalesced`: GRO joins what is in PPPoE.
    WorkDivides {
        forwarded: bool,
        coalesced: bool,
    },
    FlowsAlike,
    SecondsAFrame(f64),
    InterruptsCountFrames,
    CpusAlike,
}
