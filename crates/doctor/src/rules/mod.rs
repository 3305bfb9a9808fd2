//! The rules, one a file, in the order of the receive path.

mod counter_wrap;
mod input_queue_shallow;
mod insufficient_data;
mod interface_wedged;
mod link_speed;
mod netisr;
mod netisr_direct;
mod netisr_unbound;
mod ring_small;
mod user_space_pppoe;

use crate::Rule;

pub(crate) use insufficient_data::insufficient;

/// Every rule, in the order of the receive path.
pub static RULES: &[&Rule] = &[
    &link_speed::RULE,
    &ring_small::RULE,
    &interface_wedged::RULE,
    &counter_wrap::RULE,
    &netisr_direct::RULE,
    &netisr_unbound::RULE,
    &user_space_pppoe::RULE,
    &input_queue_shallow::RULE,
    &insufficient_data::RULE,
];

/// The rule of that id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}
