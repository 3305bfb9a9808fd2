//! The command that makes an indirection table as it is.

use super::{InterfaceName, Setting};
use rss::{IndirectionTable, PrintedTable};

/// The `ethtool -X` command that makes this table. `None` where there is none: ethtool writes the queues in turn or in
/// blocks of ascending queues, and nothing else.
///
/// Where the table is the kernel's default, the command is `default`, which also lets the number of channels be
/// changed freely; whether somebody had set that same table by hand the kernel does not report.
pub fn making(interface: &InterfaceName, rings: u32, table: &IndirectionTable) -> Option<Setting> {
    let interface = interface.clone();
    if is_in_turn(table, 0, rings) {
        return Some(Setting::RetaDefault { interface });
    }
    let start = u32::from(*table.queues().iter().min()?);
    let queues = u32::from(*table.queues().iter().max()?) - start + 1;
    if is_in_turn(table, start, queues) {
        return Some(Setting::RetaEqual { interface, start, queues });
    }
    // Blocks as long as they are: the weights sum up to the number of entries, so every block ends exactly.
    let mut weights = vec![0_u32; usize::try_from(queues).ok()?];
    for queue in table.queues() {
        *weights.get_mut(usize::try_from(u32::from(*queue) - start).ok()?)? += 1;
    }
    let made = IndirectionTable::weight(table.shape(), &weights, start).ok()?;
    (made.queues() == table.queues()).then_some(Setting::RetaWeights { interface, start, weights })
}

/// Whether the table names `queues` queues from `start` on in turn.
fn is_in_turn(table: &IndirectionTable, start: u32, queues: u32) -> bool {
    let made = IndirectionTable::equal(table.shape(), queues, start);
    made.is_ok_and(|made| made.queues() == table.queues())
}

/// Whether the table is the one that the setting makes.
pub(crate) fn is_made_by(setting: &Setting, printed: &PrintedTable) -> bool {
    let table = &printed.table;
    match setting {
        Setting::RetaDefault { .. } => is_in_turn(table, 0, printed.rings),
        Setting::RetaEqual { start, queues, .. } => is_in_turn(table, *start, *queues),
        Setting::RetaWeights { start, weights, .. } => {
            let made = IndirectionTable::weight(table.shape(), weights, *start);
            made.is_ok_and(|made| made.queues() == table.queues())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rss::TableShape;

    fn printed(rings: u32, queues: &[u16]) -> PrintedTable {
        let shape = TableShape::new(queues.len(), 16).expect("a shape");
        let table = IndirectionTable::explicit(shape, queues).expect("a table");
        PrintedTable { interface: "eth0".to_owned(), rings, table, key: None, function: None }
    }

    fn command(rings: u32, queues: &[u16]) -> Option<String> {
        making(&"eth0".parse().expect("a name"), rings, &printed(rings, queues).table)
            .map(|setting| setting.command())
    }

    #[test]
    fn tables_have_the_command_that_makes_them() {
        let case = |rings, queues: &[u16], expected: &str| {
            assert_eq!(command(rings, queues).as_deref(), Some(expected));
        };
        case(4, &[0, 1, 2, 3, 0, 1, 2, 3], "ethtool -X eth0 default");
        case(4, &[0, 1, 0, 1, 0, 1, 0, 1], "ethtool -X eth0 equal 2");
        case(4, &[2, 3, 2, 3, 2, 3, 2, 3], "ethtool -X eth0 start 2 equal 2");
        case(2, &[0, 0, 0, 0, 1, 1, 1, 1], "ethtool -X eth0 weight 4 4");
        case(4, &[1, 1, 1, 1, 1, 3, 3, 3], "ethtool -X eth0 start 1 weight 5 0 3");
        case(4, &[3, 3, 3, 3], "ethtool -X eth0 start 3 equal 1");
        assert_eq!(command(4, &[0, 1, 1, 0, 2, 3, 3, 2]), None);
    }

    proptest! {
        #[test]
        fn the_command_makes_the_table(rings in 1_u32..9, queues in proptest::collection::vec(0_u16..8, 1..130), sorted: bool) {
            let mut queues = queues;
            if sorted {
                queues.sort_unstable();
            }
            let printed = printed(rings, &queues);
            let made = making(&"eth0".parse().expect("a name"), rings, &printed.table);
            prop_assert!(made.is_some() || !sorted);
            if let Some(setting) = made {
                prop_assert!(is_made_by(&setting, &printed));
                prop_assert_eq!(setting.command().parse(), Ok(setting));
            }
        }
    }
}
