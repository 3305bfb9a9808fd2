//! `moderation-off` and `moderation-long`.

use super::*;

fn coalesce(name: &str, adaptive: &str, usecs: u32, frames: u32) -> String {
    format!(
        "$ ethtool -c {name}\nCoalesce parameters for {name}:\nAdaptive RX: {adaptive}  TX: off\nstats-block-usecs: 0\n\
         sample-interval: 0\npkt-rate-low: 0\npkt-rate-high: 0\n\nrx-usecs: {usecs}\nrx-frames: {frames}\nrx-usecs-irq: 0\n\
         rx-frames-irq: 0\n\ntx-usecs: 0\ntx-frames: 0\ntx-usecs-irq: 0\ntx-frames-irq: 0\n"
    )
}

/// Two samples of a device with one queue: frames and interrupts in two seconds.
fn loaded(driver_name: &str, usecs: u32, frames: u64, served: u64) -> String {
    samples(
        &(driver("eth0", driver_name)
            + &coalesce("eth0", "off", usecs, 0)
            + &interrupts("eth0", &[1000, 0])
            + &statistics("eth0", &[("rx_packets", 5000)])),
        &(interrupts("eth0", &[1000 + served, 0]) + &statistics("eth0", &[("rx_packets", 5000 + frames)])),
    )
}

#[test]
fn an_interrupt_for_every_frame() {
    // As measured on an i211 at rx-usecs 0: about 50,000 frames a second, as many interrupts.
    let finding = one(&loaded("igb", 0, 100_000, 98_000), "moderation-off");
    assert_eq!(about(&finding), (LIMITS, "eth0"));
    states(&finding, "InterruptEach { interrupts: 49000.0, frames: 50000.0 }");
    quotes(&finding, "rx-usecs: 0");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -C eth0 rx-usecs 3"]);
    // A driver without a profile: what 0 means to it is not known, and no command.
    let finding = one(&loaded("e1000", 0, 100_000, 98_000), "moderation-off");
    assert_eq!((weight(&finding), finding.remedies.len()), (MAYBE, 0));
}

#[test]
fn moderation_that_works_or_does_not_matter() {
    // 160,000 frames a second at rx-usecs 3 took about 16,000 interrupts.
    came_to(&loaded("igb", 3, 320_000, 32_000), "moderation-off", Outcome::Clear);
    // Few frames: each has its interrupt whatever the setting.
    let idle = one(&loaded("igb", 0, 4000, 4000), "moderation-off");
    assert_eq!((idle.severity, idle.remedies.len()), (Severity::Info, 0));
    // virtio's default is 0.
    let default = driver("eth0", "virtio_net") + &coalesce("eth0", "off", 0, 0);
    came_to(&default, "moderation-off", Outcome::Clear);
}

#[test]
fn zeros_of_an_emulated_card_are_unknown() {
    let zeros = driver("eth0", "e1000") + &coalesce("eth0", "off", 0, 0);
    let (outcome_of, lacks) = outcome(&zeros, "moderation-off");
    assert_eq!(outcome_of, Outcome::InsufficientData);
    assert_eq!(lacks, ["cat /proc/interrupts (twice)", "ethtool -S eth0 (twice)"]);
    insufficient(&driver("eth0", "igb"), "moderation-off", &["ethtool -c eth0"]);
}

fn held_back(driver_name: &str, adaptive: &str, usecs: u32, frames: u32, ring: u32) -> String {
    driver("eth0", driver_name)
        + &coalesce("eth0", adaptive, usecs, frames)
        + &rings("eth0", 4096, ring)
        + "$ ethtool eth0\nSettings for eth0:\n\tSupported link modes:   100baseT/Full\n\t                        1000baseT/Full\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n"
}

#[test]
fn interrupts_held_back_for_longer_than_the_ring() {
    // 1 Gbit/s for 10 ms: 812 frames of 1518 bytes, 14880 of 64.
    let finding = weighed(&held_back("igb", "off", 10_000, 0, 256), "moderation-long", MAYBE);
    states(&finding, "Burst { usecs: 10000, mbps: 1000, full: 812, small: 14880, entries: 256 }");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -C eth0 rx-usecs 3"]);
    quotes(&finding, "rx-usecs: 10000");
    quotes(&finding, "Speed: 1000Mb/s");
    // Only floods of small frames: a remark.
    let small = one(&held_back("igb", "off", 250, 0, 256), "moderation-long");
    assert_eq!((small.severity, small.remedies.len()), (Severity::Info, 0));
}

#[test]
fn intervals_that_fit_or_are_none() {
    for (driver_name, adaptive, usecs, frames, ring) in [
        ("igb", "off", 3, 0, 256),
        ("igb", "off", 100, 0, 256),
        ("i40e", "on", 8000, 0, 64),
        ("tg3", "off", 1000, 5, 200),
    ] {
        let text = held_back(driver_name, adaptive, usecs, frames, ring);
        came_to(&text, "moderation-long", Outcome::Clear);
    }
    insufficient(
        &(driver("eth0", "igb") + &coalesce("eth0", "off", 500, 0)),
        "moderation-long",
        &["ethtool -g eth0", "ethtool eth0"],
    );
}

/// `vmstat -i` and sysctls as NetBSD prints them (usr.bin/vmstat/vmstat.c, dointr; sys/dev/pci/if_bge.c,
/// bge_sysctl_init).
fn netbsd(level: u32, depth: u32, drops: u32, rate: u32) -> String {
    format!(
        "$ uname -sr\nNetBSD 10.1\n$ ifconfig bge0\nbge0: flags=0x8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n\t\
         address: 02:00:00:00:00:01\n\tmedia: Ethernet autoselect (1000baseT full-duplex)\n\tstatus: active\n$ vmstat -i\ninterrupt                                     total     rate\n\
         cpu0 timer                                 59000000      100\nmsi0 vec 0                               {}     {rate}\n\
         Total                                      60000000      102\n$ sysctl hw.bge\nhw.bge.rx_lvl = {level}\n\
         $ sysctl net.inet.ip.ifq\nnet.inet.ip.ifq.len = 0\nnet.inet.ip.ifq.maxlen = {depth}\nnet.inet.ip.ifq.drops = {drops}\n",
        u64::from(rate) * 1000
    )
}

#[test]
fn levels_of_bge() {
    let busy = report(&netbsd(0, 256, 0, 14_000));
    let finding = one(&busy, "moderation-off");
    assert_eq!(about(&finding), (MAYBE, "bge0"));
    assert_eq!(
        commands(&finding, System::NetBsd),
        ["sysctl -w net.inet.ip.ifq.maxlen=512", "sysctl -w hw.bge.rx_lvl=4"]
    );
    came_to(&netbsd(4, 512, 0, 14_000), "moderation-off", Outcome::Clear);
    came_to(&netbsd(0, 256, 0, 900), "moderation-off", Outcome::Clear);
    // Level 6: bursts of 46 frames, one interface.
    let finding = weighed(&netbsd(6, 40, 12, 900), "moderation-long", LIMITS);
    assert_eq!(commands(&finding, System::NetBsd), ["sysctl -w net.inet.ip.ifq.maxlen=512"]);
    came_to(&netbsd(6, 256, 0, 900), "moderation-long", Outcome::Clear);
}

#[test]
fn a_driver_without_moderation() {
    // ethtool 6.x, of a driver without get_coalesce.
    let text = driver("v0", "veth") + "$ ethtool -c v0\nnetlink error: Operation not supported\n";
    for id in ["moderation-off", "moderation-long"] {
        came_to(&text, id, Outcome::DoesNotApply);
    }
}
