//! Hashes and indirection tables, compared with published vectors.

mod paths;
mod unit;
mod vectors;
