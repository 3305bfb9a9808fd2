//! Captures of every format, damaged and whole, read and written.
