//! A line's tags, put on and taken off by VLAN devices of the kernel.

use anyhow::Result;
use rxlane_lab::Guest;

/// VLAN devices over an interface, with room for PPPoE around packets of 1500 bytes. They go with this.
pub struct Tagged<'a> {
    guest: &'a Guest,
    namespace: &'static str,
    device: &'static str,
    lowest: Option<&'static str>,
}

impl<'a> Tagged<'a> {
    /// For the tags of the encapsulation: none, one, or two.
    pub fn over(
        guest: &'a Guest,
        namespace: &'static str,
        parent: &'static str,
        tags: &str,
    ) -> Result<Tagged<'a>> {
        let add = |above: &str, name: &str, tag: &str, mtu: u32| -> Result<()> {
            let (protocol, number) = match tag.split_once(':') {
                Some(("ad", number)) => ("802.1ad", number),
                Some(("q", number)) => ("802.1Q", number),
                _ => anyhow::bail!("{tag}: no tag"),
            };
            guest.sh(&format!(
                "ip -n {namespace} link add link {above} name {name} type vlan protocol {protocol} id {number}; \
                 ip -n {namespace} link set {name} mtu {mtu} up"
            ))?;
            Ok(())
        };
        let mut line = Tagged { guest, namespace, device: parent, lowest: None };
        if !tags.is_empty() {
            line.lowest = Some("outer0");
            line.device = if tags.contains(',') { "inner0" } else { "outer0" };
            match tags.split_once(',') {
                None => add(parent, "outer0", tags, 1508)?,
                Some((outer, inner)) => {
                    add(parent, "outer0", outer, 1512)?;
                    add("outer0", "inner0", inner, 1508)?;
                }
            }
        }
        Ok(line)
    }

    /// The innermost.
    pub fn device(&self) -> &'static str {
        self.device
    }
}

impl Drop for Tagged<'_> {
    fn drop(&mut self) {
        if let Some(lowest) = self.lowest {
            let _ = self.guest.sh(&format!("ip -n {} link del {lowest}", self.namespace));
        }
    }
}
