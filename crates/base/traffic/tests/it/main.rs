//! Frames of the generator.

mod frames;
