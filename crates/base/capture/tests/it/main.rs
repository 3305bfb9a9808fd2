//! Captures of every format, damaged and whole, read and written.

mod build;
mod compressed;
mod damage;
mod formats;
mod parallel;
mod real_captures;
