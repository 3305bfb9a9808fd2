//! Inputs that fuzzing found.

mod found_by_fuzzing;
