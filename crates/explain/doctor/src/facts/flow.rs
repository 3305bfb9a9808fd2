//! Statements and remedies of the rules on nftables' flowtables.

#![expect(missing_docs, reason = "the sentence that the command makes of each is its documentation")]

use serde::Serialize;

/// A statement of `flowtable-off`, `flowtable-devices`, `flowtable-bypassed` or `hw-offload-off`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowFact {
    /// Every packet passes all rules; `setting`: OpenWrt's own setting says so.
    Off {
        setting: bool,
    },
    /// Nothing says that the machine forwards.
    ForwardsUnknown,
    /// Counters of the forward chains say how few packets passed them.
    ForwardsLittle {
        packets: u64,
    },
    /// By the rules no connection enters it.
    Unreached {
        flowtable: String,
    },
    /// Packets that arrive there pass all rules.
    LeavesOut {
        flowtable: String,
        devices: Vec<String>,
    },
    /// It names `named`, and this kernel matches packets at `needed`.
    OtherDevice {
        flowtable: String,
        named: String,
        needed: String,
        why: LookedUp,
    },
    /// Of so many established connections of TCP and UDP so few are in the flowtable.
    Bypassed {
        established: u64,
        offloaded: u64,
    },
    Bypass(Bypass),
    /// Idle ones leave it after so many seconds.
    IdleLeave {
        seconds: u64,
    },
    HardwareOff {
        driver: String,
        flowtable: bool,
    },
}

/// Why packets are matched at another device than the one named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LookedUp {
    /// Linux before 5.13 sees through neither VLAN nor PPPoE.
    TooOld,
    /// Linux from 5.13 on without "netfilter: flowtable: incorrect pppoe tuple" misses PPPoE at the physical device.
    MissesPppoe,
    /// Linux finds it through the physical device, which is cheaper.
    Below,
}

/// Why connections are not in the flowtable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bypass {
    NoRule,
    RuleOrder { chain: String },
    OnlyNew { chain: String },
    NeedsMark { chain: String },
    OnlyProtocols { protocols: Vec<String> },
    Helper { connections: u64 },
    Marked { connections: u64 },
    Bridged,
}

/// What a remedy of these rules brings about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowEffect {
    /// A flowtable by nft, in a table of its own; `known`: with the machine's devices.
    Nft {
        known: bool,
    },
    /// OpenWrt's own.
    Uci {
        hardware: bool,
    },
    Devices {
        openwrt: bool,
    },
    /// A rule for all connections; `is_there`: there is one, in another place or for some.
    Rule {
        is_there: bool,
    },
    NoBridgeCalls,
    NoHelper,
    Hardware,
}
