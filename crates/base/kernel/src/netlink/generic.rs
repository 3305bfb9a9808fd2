//! Families of generic netlink (`include/uapi/linux/genetlink.h`).

use super::{Attributes, Message, Netlink, Refusal};
use std::io;

/// Bytes of a generic netlink header: command, version, two reserved.
const HEADER: usize = 4;

/// A family of generic netlink: `ethtool`, `netdev`.
#[derive(Debug)]
pub struct Generic {
    netlink: Netlink,
    family: u16,
}

impl Generic {
    /// Finds the family. Error: `ENOENT`: this kernel does not have it.
    pub fn open(name: &str) -> Result<Generic, Refusal> {
        const FAMILY_ID: u16 = libc::CTRL_ATTR_FAMILY_ID as u16;
        const FAMILY_NAME: u16 = libc::CTRL_ATTR_FAMILY_NAME as u16;
        let mut netlink = Netlink::generic()?;
        let request = request(libc::GENL_ID_CTRL as u16, libc::CTRL_CMD_GETFAMILY as u8);
        let answer = netlink.get(&request.with_text(FAMILY_NAME, name.as_bytes()))?;
        let family = Attributes::behind(HEADER, &answer).u16(FAMILY_ID);
        let family = family.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        Ok(Generic { netlink, family })
    }

    /// The attributes in the answer to a command with the attributes that `build` adds.
    pub fn get(&mut self, command: u8, build: impl FnOnce(Message) -> Message) -> Result<Vec<u8>, Refusal> {
        let mut answer = self.netlink.get(&build(request(self.family, command)))?;
        answer.drain(..HEADER.min(answer.len()));
        Ok(answer)
    }
}

fn request(family: u16, command: u8) -> Message {
    Message::new(family, &[command, 1, 0, 0])
}
