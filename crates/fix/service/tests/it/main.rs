//! Records and the journal: on a full disk, on a folder that stands for a machine and on the running kernel.

mod full_disk;
mod journal;
mod journal_machine;
mod journal_netns;
