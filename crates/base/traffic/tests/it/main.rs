//! Frames of the generator.
