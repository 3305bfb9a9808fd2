//! Has the linker leave out the tables for unwinding, a ninth of the released program: its panics abort, and nothing reads them.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=no-unwinding.ld");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|it| it == value);
    // What panics do there is in Cargo.toml, and no variable says it (`CARGO_CFG_PANIC` is that of the target).
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!(
            "cargo::rustc-link-arg-bins=-T{}/no-unwinding.ld",
            env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder of the crate")
        );
    }
}
