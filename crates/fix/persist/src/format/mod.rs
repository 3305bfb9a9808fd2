//! One writer for each kind of file.

pub(crate) mod bsd;
pub(crate) mod dispatcher;
pub(crate) mod link_file;
pub(crate) mod nftables;
pub(crate) mod openwrt;
pub(crate) mod script;
pub(crate) mod sysctl_conf;
pub(crate) mod udev_rule;
pub(crate) mod unit;
