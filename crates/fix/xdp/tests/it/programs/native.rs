//! The C parser, compiled for this machine.

use crate::programs::sys::{Guarded, Parser};
use rxlane_xdp::layout::{Class, Reason, Settings};
use rxlane_xdp::reference::Decision;
use std::path::Path;
use std::process::Command;
use testkit::{Missing, program};

/// The longest frame that tests put into it.
pub const LONGEST: usize = 1 << 17;

pub struct Native {
    parser: Parser,
    memory: Guarded,
}

/// Compiles a source below `bpf/` and loads what `open` finds in it. Error: there is no C compiler.
pub fn compiled<T>(source: &str, open: fn(&Path) -> Result<T, libloading::Error>) -> Result<T, Missing> {
    let compiler = std::env::var_os("CC").map_or_else(|| program("cc"), |cc| Ok(cc.into()))?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf").join(source);
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("native.so");
    let status = Command::new(&compiler)
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"])
        .args([&library, &source])
        .status()
        .map_err(|error| Missing(format!("the C compiler {} does not start: {error}", compiler.display())))?;
    assert!(status.success(), "{} did not compile {}", compiler.display(), source.display());
    Ok(open(&library).expect("the library"))
}

/// Compiles and loads it. Error: there is no C compiler.
pub fn native() -> Result<Native, Missing> {
    let parser = compiled("native.c", Parser::open)?;
    assert_eq!(parser.classes(), Class::ALL.map(|class| class as u32));
    assert_eq!(parser.reasons(), Reason::ALL.map(|reason| reason as u32));
    Ok(Native { parser, memory: Guarded::new(LONGEST).expect("memory") })
}

impl Native {
    /// The kind of a frame by its number, and whether it is refused (`envelope.h`).
    pub fn envelope(&mut self, first: &[u8], length: usize, limit: u32) -> (u32, bool) {
        self.memory.put(first);
        self.parser.envelope(&self.memory, length, limit)
    }

    /// Holds it to the reference's decision about a frame of `length` bytes, of which `first` can be read.
    #[track_caller]
    pub fn agrees(&mut self, first: &[u8], length: usize, settings: &Settings, reference: &Decision) {
        self.memory.put(first);
        let (found, agrees) = self.parser.decide(&self.memory, length, settings);
        let reason = Reason::ALL.get(found.reason as usize).copied();
        let class = Class::ALL.get(found.class as usize).copied();
        assert!(agrees, "the short way and the long one: {found:?}, {length} bytes, of them {first:02x?}");
        let same = reason == Some(reference.reason)
            && match reference.bucket() {
                Some(bucket) => class == reference.class && found.bucket == u32::from(bucket),
                None => true,
            };
        assert!(same, "C: {reason:?} {found:?}, Rust: {reference:?}, {length} bytes, of them {first:02x?}");
    }
}
