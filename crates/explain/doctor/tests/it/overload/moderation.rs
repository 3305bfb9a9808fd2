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

fn held_back(driver_name: &str, adaptive: &str, usecs: u32, frames: u32, ring: u32) -> String {
    driver("eth0", driver_name)
        + &coalesce("eth0", adaptive, usecs, frames)
        + &rings("eth0", 4096, ring)
        + "$ ethtool eth0\nSettings for eth0:\n\tSupported link modes:   100baseT/Full\n\t                        1000baseT/Full\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n"
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
fn moderation_of_every_driver() {
    let (off, long) = ("moderation-off", "moderation-long");
    let unset = |name| driver("eth0", name) + &coalesce("eth0", "off", 0, 0);
    // ethtool 6.x, of a driver without get_coalesce.
    let refused = driver("v0", "veth") + "$ ethtool -c v0\nnetlink error: Operation not supported\n";
    all_answer(&[
        // As measured on an i211 at rx-usecs 0: about 50,000 frames a second, as many interrupts.
        (
            &loaded("igb", 0, 100_000, 98_000),
            off,
            LIMITS,
            &[
                "=on eth0",
                "InterruptEach { interrupts: 49000.0, frames: 50000.0 }",
                "rx-usecs: 0",
                "=Linux: ethtool -C eth0 rx-usecs 3",
            ],
        ),
        // A driver without a profile: what 0 means to it is not known, and no command.
        (&loaded("e1000", 0, 100_000, 98_000), off, MAYBE, &["=remedies: 0"]),
        // 160,000 frames a second at rx-usecs 3 took about 16,000 interrupts.
        (&loaded("igb", 3, 320_000, 32_000), off, CLEAR, &[]),
        // Few frames: each has its interrupt whatever the setting.
        (&loaded("igb", 0, 4000, 4000), off, CALM, &["=remedies: 0"]),
        // virtio's default is 0; zeros of an emulated card are unknown.
        (&unset("virtio_net"), off, CLEAR, &[]),
        (&unset("e1000"), off, LACKS, &["cat /proc/interrupts (twice)", "ethtool -S eth0 (twice)"]),
        (&driver("eth0", "igb"), off, LACKS, &["ethtool -c eth0"]),
        // 1 Gbit/s for 10 ms: 812 frames of 1518 bytes, 14880 of 64.
        (
            &held_back("igb", "off", 10_000, 0, 256),
            long,
            MAYBE,
            &[
                "Burst { usecs: 10000, mbps: 1000, full: 812, small: 14880, entries: 256 }",
                "=Linux: ethtool -C eth0 rx-usecs 3",
                "rx-usecs: 10000",
                "Speed: 1000Mb/s",
            ],
        ),
        // Only floods of small frames.
        (&held_back("igb", "off", 250, 0, 256), long, CALM, &["=remedies: 0"]),
        (&held_back("igb", "off", 3, 0, 256), long, CLEAR, &[]),
        (&held_back("igb", "off", 100, 0, 256), long, CLEAR, &[]),
        (&held_back("i40e", "on", 8000, 0, 64), long, CLEAR, &[]),
        (&held_back("tg3", "off", 1000, 5, 200), long, CLEAR, &[]),
        (
            &(driver("eth0", "igb") + &coalesce("eth0", "off", 500, 0)),
            long,
            LACKS,
            &["ethtool -g eth0", "ethtool eth0"],
        ),
        (&refused, off, NOT_HERE, &[]),
        (&refused, long, NOT_HERE, &[]),
        // Levels of bge.
        (
            &netbsd(0, 256, 0, 14_000),
            off,
            MAYBE,
            &["=on bge0", "=NetBsd: sysctl -w net.inet.ip.ifq.maxlen=512 && sysctl -w hw.bge.rx_lvl=4"],
        ),
        (&netbsd(4, 512, 0, 14_000), off, CLEAR, &[]),
        (&netbsd(0, 256, 0, 900), off, CLEAR, &[]),
        // Level 6: bursts of 46 frames, one interface.
        (&netbsd(6, 40, 12, 900), long, LIMITS, &["=NetBsd: sysctl -w net.inet.ip.ifq.maxlen=512"]),
        (&netbsd(6, 256, 0, 900), long, CLEAR, &[]),
    ]);
}
