//! Packs the compiled programs of `bpf/`, a third of a megabyte of ELF and BTF, to a quarter.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo names a folder"));
    println!("cargo::rerun-if-changed=bpf");
    for entry in fs::read_dir("bpf").expect("the programs") {
        let path = entry.expect("an entry").path();
        let Some(name) = path.file_stem().filter(|_| path.extension().is_some_and(|kind| kind == "o")) else {
            continue;
        };
        let object = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&object).expect("memory takes it");
        let packed = packed.finish().expect("memory takes it");
        fs::write(folder.join(name), packed).expect("space");
    }
}
