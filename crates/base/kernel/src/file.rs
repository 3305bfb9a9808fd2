//! Files of programs that keep state: locks, private folders, files replaced as a whole, bounded reads.

mod lock;
mod private;
mod regular;
mod replacement;
mod trusted;

pub use lock::Lock;
pub use private::{FolderError, is_trusted_folder, private_folder};
pub use regular::Regular;
pub use replacement::{Replacement, replace};
pub use trusted::{TrustError, expect_trusted};

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
