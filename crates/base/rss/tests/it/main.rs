//! Hashes and indirection tables, beside published vectors.

mod paths;
mod unit;
mod vectors;
