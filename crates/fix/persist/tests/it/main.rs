//! Files for settings, the machines that they are for, writing and removing them, and what the systems' own tools make of them.

mod files;
mod machines;
mod store;
mod tools;
