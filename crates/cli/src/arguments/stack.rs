//! What the frames of a line look like.

use anyhow::{anyhow, bail};
use wire::emit::{Encapsulation, EncapsulationError};
use wire::ethernet::EtherType;

/// The encapsulation of a line: one of two notations, or none.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
#[group(skip)]
pub struct StackArguments {
    /// Encapsulation, outermost first: `q:VID`, `ad:VID`, `0xTPID:VID`, `mpls:LABEL`, `pppoe[:SESSION[@MAC]]`, `none`; joined by commas
    #[arg(long, value_name = "STACK", conflicts_with = "vlan", value_parser = stack)]
    pub encap: Option<Encapsulation>,

    /// VLAN tags alone, outermost first: 35, or 100.200
    #[arg(long, value_name = "VID[.VID…]", value_parser = vlans)]
    pub vlan: Option<String>,

    /// TPID of the outermost tag of --vlan [default: 0x8100 of one tag, 0x88a8 of several]
    #[arg(long, value_name = "0xTPID", requires = "vlan", conflicts_with = "encap", value_parser = tpid)]
    pub tpid: Option<EtherType>,
}

impl StackArguments {
    /// The encapsulation; `None` where nobody said one.
    pub fn encapsulation(&self) -> anyhow::Result<Option<Encapsulation>> {
        let Some(vlans) = &self.vlan else { return Ok(self.encap) };
        let encapsulation = Encapsulation::NONE.with_vlans(vlans, self.tpid);
        encapsulation.map(Some).map_err(|error| anyhow!("--vlan {vlans}: {error}"))
    }

    /// The VLAN tags of a line on which sessions are negotiated, so that nothing else can be said of it.
    pub fn tags(&self) -> anyhow::Result<Encapsulation> {
        let encapsulation = self.encapsulation()?.unwrap_or(Encapsulation::NONE);
        if encapsulation.pppoe().is_some() || !encapsulation.labels().is_empty() {
            bail!("--encap {encapsulation}: discovery goes on VLAN tags alone, such as --encap q:7");
        }
        Ok(encapsulation)
    }
}

fn stack(text: &str) -> Result<Encapsulation, String> {
    text.parse().map_err(|error: EncapsulationError| match Encapsulation::NONE.with_vlans(text, None) {
        Ok(_) => format!("VLANs alone are --vlan {text}"),
        Err(_) => error.to_string(),
    })
}

/// Sees that VLANs are such.
fn vlans(text: &str) -> Result<String, String> {
    Encapsulation::NONE.with_vlans(text, None).map(|_| text.to_owned()).map_err(|error| {
        match text.parse::<Encapsulation>() {
            Ok(_) => format!("a stack in these words is --encap {text}"),
            Err(_) => error.to_string(),
        }
    })
}

fn tpid(text: &str) -> Result<EtherType, String> {
    let tpid = text.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok()).map(EtherType);
    tpid.filter(|tpid| tpid.is_tag())
        .ok_or_else(|| "one of 0x8100, 0x88a8, 0x9100, 0x9200, 0x9300".to_owned())
}
