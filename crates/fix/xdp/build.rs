//! Packs the compiled programs of `bpf/`, a third of a megabyte of ELF and BTF, to a quarter.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

const OBJECTS: [&str; 8] = [
    "arrive",
    "arrive_nofrags",
    "envelope",
    "envelope_nofrags",
    "fastpath",
    "steer",
    "steer_nofrags",
    "subscribers",
];

fn main() {
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo names a folder"));
    for name in OBJECTS {
        let path = format!("bpf/{name}.o");
        println!("cargo::rerun-if-changed={path}");
        let object = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&object).expect("memory takes it");
        let packed = packed.finish().expect("memory takes it");
        fs::write(folder.join(name), packed).unwrap_or_else(|error| panic!("{name}, packed: {error}"));
    }
}
