//! Headers of every kind, written and read again, cut off and broken.
