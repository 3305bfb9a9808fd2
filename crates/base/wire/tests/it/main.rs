//! Headers of every kind, written and read again, cut off and broken.

mod emit_errors;
mod found_by_fuzzing;
mod frames;
mod panic_contract;
mod round_trip;
mod rules_ip;
mod rules_link;
mod truncation;
mod vectors;
