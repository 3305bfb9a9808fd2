//! Any text as what people type and `ethtool -x` prints: what is understood is printed, and understood again
//! as the same.

use rxlane_rss::{FlowHash, HashFields, HashKey, HashType, HashTypes, PrintedTable};
use std::fmt::{Debug, Display};
use std::str::FromStr;

fn round_trip<T: FromStr<Err: Display> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>().unwrap_or_else(|error| panic!("{printed}: {error}"));
            assert_eq!(again, value);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    round_trip::<HashKey>(text);
    round_trip::<HashFields>(text);
    round_trip::<FlowHash>(text);
    round_trip::<HashType>(text);
    round_trip::<HashTypes>(text);
    match PrintedTable::parse(text) {
        Ok(printed) => {
            let again = PrintedTable::print(&printed.interface, printed.rings, &printed.table);
            let again = PrintedTable::parse(&again).unwrap_or_else(|error| panic!("{again}: {error}"));
            assert_eq!((again.rings, &again.table), (printed.rings, &printed.table));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
