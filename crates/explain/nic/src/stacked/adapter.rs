//! What has to be known of a device and its driver, and what becomes of an answer where it is not.

use super::features::Features;
use super::kernel::{CUSTOMER, KernelRules, SERVICE, Walk};
use super::receive::verification_key;
use crate::schema::{self, Key};
use crate::spread::{self, Traffic, Verdict as Spread};
use crate::{Profile, Value};

/// Whether the driver checks features frame by frame (`ndo_features_check`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// It has no check: the stack's limit holds.
    None,
    /// It has one that applies the limit for several tags (`vlan_features_check`).
    Limits,
    /// It has one that takes nothing away for tags.
    Keeps,
}

/// How the driver finds IP, which it has to pass to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// By the kernel's `vlan_get_protocol`.
    Kernel,
    /// By reading one tag of 0x8100 itself.
    OneTag,
    /// By what stands right behind the addresses.
    Untagged,
    /// It needs none: the kernel passes the place, or the device looks for itself.
    Place,
}

impl Lookup {
    /// How far it walks; `None` where it does not.
    pub(crate) const fn walk(self, rules: &KernelRules) -> Option<Walk> {
        match self {
            Lookup::Kernel => Some(rules.protocol_walk),
            Lookup::OneTag => Some(Walk::OneCustomerTag),
            Lookup::Untagged => Some(Walk::Untagged),
            Lookup::Place => None,
        }
    }
}

/// A device with its driver. What is `None` is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// What it offers by default.
    pub features: Option<Features>,
    /// What else some devices of the family offer.
    pub some_offer: Features,
    /// What of that it offers for tagged frames.
    pub vlan_features: Option<Features>,
    /// Its check of features.
    pub check: Option<Check>,
    /// How it finds IP for checksums by IP version; a checksum by place needs no look-up.
    pub checksum_lookup: Option<Lookup>,
    /// How it finds IP for segmentation.
    pub tso_lookup: Option<Lookup>,
    /// It takes an outer tag 0x8100 off received frames.
    pub strips_customer: Option<bool>,
    /// It takes an outer tag 0x88a8 off received frames.
    pub strips_service: Option<bool>,
    /// It gives a sum over the whole received frame.
    pub sums_frames: Option<bool>,
    /// It verifies checksums of received frames of the stack in question.
    pub verifies: Option<bool>,
    /// It spreads frames of that stack over its queues.
    pub spreads: Option<bool>,
    /// Whether it stands for a kind of device, of which nobody can know more, or for a device in a profile.
    pub is_kind: bool,
}

/// A kind of device, as the field report's table has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Checksums by place (`HW_CSUM`), and sums over received frames.
    HwCsum,
    /// Checksums by IP version (`IP_CSUM`), verified on receipt as far as the device parses.
    IpCsum,
}

impl DeviceKind {
    /// Both.
    pub const ALL: [DeviceKind; 2] = [DeviceKind::HwCsum, DeviceKind::IpCsum];

    /// As the kernel calls it.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::HwCsum => "HW_CSUM",
            DeviceKind::IpCsum => "IP_CSUM",
        }
    }
}

impl Adapter {
    /// A device of which no more is known than its kind: it offers checksums, scatter-gather and segmentation, also for
    /// tagged frames, and inserts and strips one tag of 0x8100.
    pub fn of_kind(kind: DeviceKind) -> Adapter {
        let checksum = match kind {
            DeviceKind::HwCsum => Features::HW_CSUM,
            DeviceKind::IpCsum => Features::BY_VERSION,
        };
        let features = checksum | Features::SG | Features::ALL_TSO;
        Adapter {
            features: Some(features | Features::CTAG_TX),
            some_offer: Features::NONE,
            vlan_features: Some(features),
            check: None,
            checksum_lookup: None,
            tso_lookup: None,
            strips_customer: Some(true),
            strips_service: Some(false),
            sums_frames: Some(kind == DeviceKind::HwCsum),
            verifies: None,
            spreads: None,
            is_kind: true,
        }
    }

    /// A device of a profile, of which frames of `tpids` (outermost first), with PPPoE behind them or without, are in question.
    pub fn of(profile: &Profile, rules: &KernelRules, tpids: &[u16], pppoe: bool) -> Adapter {
        let word = |key: Key| word_of(profile, key, rules.version);
        let place = |words: &[&str], key| words.iter().position(|known| Some(*known) == word(key));
        let lookup = |key| LOOKUPS.get(place(schema::LOOKUPS, key)?).copied();
        let check = place(schema::CHECKS, schema::FEATURES_CHECK).and_then(|at| CHECKS.get(at).copied());
        let verification = match verification_key(tpids, pppoe) {
            key if key == schema::RX_CHECKSUM => {
                profile.words(schema::RX_CHECKSUM).map(|words| words.iter().any(|word| word != "none"))
            }
            key => profile.tri(key),
        };
        let features = word(schema::TX_FEATURES).and_then(Features::parse);
        let sums = profile.words(schema::RX_CHECKSUM).map(|words| words.iter().any(|w| w == "frame"));
        Adapter {
            features: features.map(|(all, _)| all),
            some_offer: features.map(|(_, some)| some).unwrap_or_default(),
            vlan_features: word(schema::VLAN_FEATURES)
                .and_then(Features::parse)
                .map(|(all, some)| all | some),
            check,
            checksum_lookup: lookup(schema::CHECKSUM_LOOKUP),
            tso_lookup: lookup(schema::TSO_LOOKUP),
            strips_customer: profile.tri(schema::VLAN_STRIP),
            strips_service: profile.tri(schema::QINQ_STRIP),
            // What a driver did in other kernels is not claimed.
            sums_frames: sums.filter(|_| rules.version == KernelRules::current().version),
            verifies: verification,
            spreads: spreads(profile, tpids, pppoe),
            is_kind: false,
        }
    }

    /// The tags that are among the bytes of a received frame; `None` where that is not known.
    pub(crate) fn tags_in_bytes<'t>(&self, tpids: &'t [u16]) -> Option<&'t [u16]> {
        let taken = match tpids.first() {
            Some(&CUSTOMER) => self.strips_customer?,
            Some(&SERVICE) => self.strips_service?,
            _ => false,
        };
        tpids.get(usize::from(taken)..)
    }
}

/// What a profile says of that kernel version: the word behind `VERSION:`.
fn word_of<'p>(profile: &'p Profile, key: Key, version: &str) -> Option<&'p str> {
    let Value::Words(words) = &profile.claim(key)?.value else { return None };
    words.iter().find_map(|word| word.strip_prefix(version)?.strip_prefix(':'))
}

fn spreads(profile: &Profile, tpids: &[u16], pppoe: bool) -> Option<bool> {
    let tags: Vec<String> = tpids.iter().map(|tpid| format!("{tpid:04x}")).collect();
    let mut words: Vec<String> = Vec::new();
    words.extend((!tags.is_empty()).then(|| tags.join(".")));
    words.extend(pppoe.then(|| "pppoe".to_owned()));
    let traffic: Traffic =
        if words.is_empty() { Traffic::default() } else { words.join(",").parse().ok()? };
    match spread::answer(profile, &traffic).verdict {
        Spread::Yes(_) => Some(true),
        Spread::No(_) => Some(false),
        Spread::Unknown(_) => None,
    }
}

/// The values of facts that may be missing, in the order of their words in the schema.
pub(crate) const CHECKS: [Check; 3] = [Check::None, Check::Limits, Check::Keeps];
pub(crate) const LOOKUPS: [Lookup; 4] = [Lookup::Kernel, Lookup::OneTag, Lookup::Untagged, Lookup::Place];
