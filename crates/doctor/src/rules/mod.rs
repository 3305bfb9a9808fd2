//! The rules, one a file, in the order of the receive path.

mod insufficient_data;
mod ring_small;

use crate::Rule;

pub(crate) use insufficient_data::insufficient;

/// Every rule.
pub static RULES: &[&Rule] = &[&ring_small::RULE, &insufficient_data::RULE];

/// The rule of that id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}
