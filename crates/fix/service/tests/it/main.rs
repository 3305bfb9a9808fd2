//! The journal, on a folder that stands for a machine and on the running kernel.

mod journal;
mod journal_machine;
mod journal_netns;
