//! The rules, one a file, in the order of the receive path.

mod backlog_drop;
mod checksum_double_tag;
mod counter_wrap;
mod frame_oversize;
mod gro_off;
mod input_queue_shallow;
mod insufficient_data;
mod interface_wedged;
mod irq_collision;
mod irq_floating;
mod irq_one_cpu;
mod link_speed;
mod moderation_long;
mod moderation_off;
mod mtu_below_1500;
pub(crate) mod netisr;
mod netisr_direct;
mod netisr_unbound;
mod offload_lost;
mod one_flow;
mod one_queue_hot;
mod pppoe_unhashed;
mod qinq_unhashed;
mod queues_below_cpus;
mod reta_uneven;
mod reta_unused_queue;
mod ring_overflow;
mod ring_small;
mod rps_off;
mod rps_same_cpu;
mod single_queue;
mod softirq_one_cpu;
mod tags_hidden;
mod time_squeeze;
mod udp_two_tuple;
mod unhashed;
mod user_space_pppoe;
mod xdp_generic_only;

use crate::Rule;

pub(crate) use insufficient_data::insufficient;

/// Every rule, in the order of the receive path.
pub static RULES: &[&Rule] = &[
    &link_speed::RULE,
    &frame_oversize::RULE,
    &tags_hidden::RULE,
    &pppoe_unhashed::RULE,
    &qinq_unhashed::RULE,
    &udp_two_tuple::RULE,
    &single_queue::RULE,
    &one_queue_hot::RULE,
    &one_flow::RULE,
    &reta_uneven::RULE,
    &reta_unused_queue::RULE,
    &queues_below_cpus::RULE,
    &ring_overflow::RULE,
    &ring_small::RULE,
    &interface_wedged::RULE,
    &counter_wrap::RULE,
    &moderation_off::RULE,
    &moderation_long::RULE,
    &irq_one_cpu::RULE,
    &irq_collision::RULE,
    &irq_floating::RULE,
    &softirq_one_cpu::RULE,
    &time_squeeze::RULE,
    &rps_off::RULE,
    &rps_same_cpu::RULE,
    &xdp_generic_only::RULE,
    &backlog_drop::RULE,
    &netisr_direct::RULE,
    &netisr_unbound::RULE,
    &gro_off::RULE,
    &mtu_below_1500::RULE,
    &user_space_pppoe::RULE,
    &input_queue_shallow::RULE,
    &checksum_double_tag::RULE,
    &offload_lost::RULE,
    &insufficient_data::RULE,
];

/// The rule of that id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}
