//! How fast a subscriber may be, as the attributes of vendors say it.

use crate::attribute::*;

/// What an attribute says of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bits a second.
    Bits(u64),
    /// As much as there is.
    Unlimited,
    /// That of this name, which the concentrator knows.
    Named(Vec<u8>),
}

/// Both directions; `None`: nothing was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// To the subscriber.
    pub download: Option<Rate>,
    /// From the subscriber.
    pub upload: Option<Rate>,
}

impl Rates {
    /// Takes an attribute of no vendor. Whether it is one of rates.
    pub(crate) fn take(&mut self, kind: u8, value: &[u8]) -> bool {
        if kind == FILTER_ID {
            let named = Rate::Named(value.to_vec());
            self.download.get_or_insert_with(|| named.clone());
            self.upload.get_or_insert(named);
        }
        kind == FILTER_ID
    }

    /// Takes the attributes of a vendor. Whether one is of rates; `None`: the value of one is none.
    pub(crate) fn take_of_vendor(&mut self, value: &[u8]) -> Option<bool> {
        let Some((vendor, mut rest)) =
            value.split_first_chunk().map(|(id, rest)| (u32::from_be_bytes(*id), rest))
        else {
            return Some(false);
        };
        // Others may not even divide theirs in this way.
        if ![MIKROTIK, WISPR, ERX].contains(&vendor) {
            return Some(false);
        }
        let mut is_any = false;
        while let [kind, length, behind @ ..] = rest {
            let (value, others) = behind.split_at_checked(usize::from(*length).checked_sub(2)?)?;
            is_any |= self.take_one(vendor, *kind, value)?;
            rest = others;
        }
        Some(is_any)
    }

    fn take_one(&mut self, vendor: u32, kind: u8, value: &[u8]) -> Option<bool> {
        match (vendor, kind) {
            (MIKROTIK, MIKROTIK_RATE_LIMIT) => {
                let (upload, download) = of_mikrotik(std::str::from_utf8(value).ok()?)?;
                (self.upload, self.download) = (Some(upload), Some(download));
            }
            (WISPR, WISPR_BANDWIDTH_MAX_UP) => self.upload = Some(of_bits(number(value)?)),
            (WISPR, WISPR_BANDWIDTH_MAX_DOWN) => self.download = Some(of_bits(number(value)?)),
            (ERX, ERX_INGRESS_POLICY_NAME) => name(&mut self.upload, value),
            (ERX, ERX_EGRESS_POLICY_NAME) => name(&mut self.download, value),
            _ => return Some(false),
        }
        Some(true)
    }
}

/// What says bits holds before what says a name.
fn name(rate: &mut Option<Rate>, value: &[u8]) {
    if !matches!(rate, Some(Rate::Bits(_) | Rate::Unlimited)) {
        *rate = Some(Rate::Named(value.to_vec()));
    }
}

fn number(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(|bytes| u32::from_be_bytes(bytes).into())
}

const fn of_bits(bits: u64) -> Rate {
    if bits == 0 { Rate::Unlimited } else { Rate::Bits(bits) }
}

/// `10M/50M 12M/60M 8M/40M 10/10 8`: from the subscriber, to the subscriber, then bursts, their thresholds and times, a priority and the
/// least rates, which mean nothing here. One rate alone is that of both.
fn of_mikrotik(text: &str) -> Option<(Rate, Rate)> {
    let first = text.split_whitespace().next()?;
    let (upload, download) = first.split_once('/').unwrap_or((first, first));
    let rate = |text: &str| {
        let (digits, times) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1000),
            None => match text.strip_suffix(['m', 'M']) {
                Some(digits) => (digits, 1_000_000),
                None => match text.strip_suffix(['g', 'G']) {
                    Some(digits) => (digits, 1_000_000_000),
                    None => (text, 1),
                },
            },
        };
        let number = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'))?;
        number.checked_mul(times).map(of_bits)
    };
    Some((rate(upload)?, rate(download)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vendor(id: u32, attributes: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = id.to_be_bytes().to_vec();
        for (kind, value) in attributes {
            bytes.extend([*kind, value.len() as u8 + 2]);
            bytes.extend(*value);
        }
        bytes
    }

    #[test]
    fn rates_are_read_as_each_vendor_writes_them() {
        let bits = |bits| Some(Rate::Bits(bits));
        for (text, upload, download) in [
            ("10M/50M", bits(10_000_000), bits(50_000_000)),
            ("512k", bits(512_000), bits(512_000)),
            ("1000000/2G 2M/4M 1M/2M 10/10 8 64k/64k", bits(1_000_000), bits(2_000_000_000)),
            ("0/8m", Some(Rate::Unlimited), bits(8_000_000)),
        ] {
            let mut rates = Rates::default();
            let value = vendor(MIKROTIK, &[(8, text.as_bytes())]);
            assert_eq!(rates.take_of_vendor(&value), Some(true), "{text}");
            assert_eq!(rates, Rates { upload, download }, "{text}");
        }
        let mut rates = Rates::default();
        // Both in one attribute, as some servers pack them.
        let value = vendor(WISPR, &[(7, &[0, 0x0f, 0x42, 0x40]), (8, &[0, 0x1e, 0x84, 0x80])]);
        assert_eq!(rates.take_of_vendor(&value), Some(true));
        assert_eq!(rates, Rates { upload: bits(1_000_000), download: bits(2_000_000) });
        let mut rates = Rates::default();
        assert!(rates.take(FILTER_ID, b"gold"));
        let named = |name: &[u8]| Some(Rate::Named(name.to_vec()));
        assert_eq!(rates, Rates { upload: named(b"gold"), download: named(b"gold") });
        assert_eq!(rates.take_of_vendor(&vendor(ERX, &[(10, b"up-10m"), (11, b"down-50m")])), Some(true));
        assert_eq!(rates, Rates { upload: named(b"up-10m"), download: named(b"down-50m") });
        // Whatever comes first, bits hold.
        assert_eq!(rates.take_of_vendor(&vendor(MIKROTIK, &[(8, b"1M/2M")])), Some(true));
        assert_eq!(rates.take_of_vendor(&vendor(ERX, &[(10, b"up-10m")])), Some(true));
        rates.take(FILTER_ID, b"gold");
        assert_eq!(rates, Rates { upload: bits(1_000_000), download: bits(2_000_000) });
    }

    #[test]
    fn what_is_none_is_none_and_other_attributes_are_others() {
        for value in [
            vendor(MIKROTIK, &[(8, b"")]),
            vendor(MIKROTIK, &[(8, b"fast")]),
            vendor(MIKROTIK, &[(8, b"10M/")]),
            vendor(MIKROTIK, &[(8, b"+1/1")]),
            vendor(MIKROTIK, &[(8, b"99999999999999G")]),
            vendor(MIKROTIK, &[(8, b"\xff")]),
            vendor(WISPR, &[(7, &[1, 2, 3])]),
            [&vendor(WISPR, &[])[..], &[7, 1]].concat(),
            [&vendor(WISPR, &[])[..], &[7, 9, 0]].concat(),
        ] {
            let mut rates = Rates::default();
            assert_eq!(rates.take_of_vendor(&value), None, "{value:?}");
            assert_eq!(rates, Rates::default());
        }
        let mut rates = Rates::default();
        for value in [&[][..], &[0, 0, 0], &vendor(311, &[(26, b"S=")]), &vendor(MIKROTIK, &[(9, b"x")])] {
            assert_eq!(rates.take_of_vendor(value), Some(false));
        }
        assert!(!rates.take(CLASS, b"gold"));
        assert_eq!(rates, Rates::default());
    }
}
