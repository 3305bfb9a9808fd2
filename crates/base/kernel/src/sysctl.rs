//! Settings of a network namespace (`/proc/sys/net`, Documentation/networking/ip-sysctl.rst), that of the calling thread.

use std::fs;

/// A setting that is a number, by its path below `/proc/sys/net`. `None`: this kernel has none such, or it is no number.
pub fn net(path: &str) -> Option<u32> {
    fs::read_to_string(format!("/proc/sys/net/{path}")).ok()?.trim().parse().ok()
}

/// Whether a setting is there and other than 0.
pub fn net_is_on(path: &str) -> bool {
    net(path).is_some_and(|value| value != 0)
}

/// Whether packets of IPv4 or IPv6 are forwarded.
pub fn forwards() -> bool {
    ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].into_iter().any(net_is_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_and_what_is_none_is_not_there() {
        assert!(net("core/netdev_budget").is_some_and(|budget| budget > 0));
        assert_eq!([net("core/no_such"), net("ipv4/tcp_congestion_control")], [None, None]);
        assert!(net_is_on("core/netdev_budget") && !net_is_on("core/no_such"));
    }
}
