//! Hashes and indirection tables, beside published vectors.
