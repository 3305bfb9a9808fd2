//! Netlink attributes for tests, as the kernel sends them.

use kernel::netlink::Message;

pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    Message::new(0, &[]).with(kind, value).attributes().to_vec()
}

pub(super) fn nest(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind, &attributes.concat())
}
