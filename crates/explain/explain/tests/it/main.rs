//! Inputs that fuzzing found.
