//! How fast a subscriber may be.

use serde::{Deserialize, Serialize};

/// Bits of IP packets a second; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitRates {
    /// To the subscriber.
    pub download: Option<u64>,
    /// From the subscriber.
    pub upload: Option<u64>,
}

impl BitRates {
    /// A rate that is none, where another would hold otherwise.
    pub const UNLIMITED: u64 = u64::MAX;

    /// Those that limit anything.
    pub fn limits(self) -> BitRates {
        let limits = |rate: Option<u64>| rate.filter(|rate| *rate != BitRates::UNLIMITED);
        BitRates { download: limits(self.download), upload: limits(self.upload) }
    }

    /// These, and where there is none, those of `others`.
    pub fn or(self, others: BitRates) -> BitRates {
        BitRates { download: self.download.or(others.download), upload: self.upload.or(others.upload) }
    }
}
