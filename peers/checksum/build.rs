//! Finds DPDK and compiles the calls into it.

use std::process::exit;

fn main() {
    println!("cargo::rerun-if-changed=src/dpdk.c");
    let dpdk = match pkg_config::Config::new().atleast_version("21.11").probe("libdpdk") {
        Ok(dpdk) => dpdk,
        Err(error) => {
            eprintln!("{error}");
            eprintln!(
                "bench-checksum compares with DPDK 21.11 or newer and did not find it. Debian: apt-get install \
                 libdpdk-dev pkg-config gcc"
            );
            exit(1);
        }
    };
    let mut build = cc::Build::new();
    build.file("src/dpdk.c").includes(&dpdk.include_paths).opt_level(3).std("gnu11");
    build.flag("-include").flag("rte_config.h").flag("-march=native").define("ALLOW_EXPERIMENTAL_API", None);
    if let Err(error) = build.try_compile("dpdk_calls") {
        eprintln!("bench-checksum could not compile the calls into DPDK: {error}");
        exit(1);
    }
}
