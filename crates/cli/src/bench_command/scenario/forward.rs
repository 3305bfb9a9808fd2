//! `rxlane bench forward`.

use super::Common;
use crate::output::{CommandResult, Output};
use anyhow::bail;
use bench::scenario::forward::{Cable, Forward};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo rxlane bench forward
  sudo rxlane bench forward --level lines=two --level streams=one --seconds 5
  sudo rxlane bench forward --cable eth1:eth2 --cable eth3:eth4 --level rps=off --html forward.html
  sudo rxlane bench forward --json > forward.json

Everything happens in network namespaces of its own, which requires root. SIGINT (^C), SIGTERM and SIGHUP end it with what was \
measured so far. A cell takes up to ten times --seconds: RFC 2544 asks for 60 seconds for each of its trials.
--cable takes physical NICs of this machine, which have to be set down, into these namespaces; they come back set down, with the interrupt \
moderation that they had.
Factors: lines (two, trunk-8021q, trunk-rxlane), streams (one, both), rps (off, on), with --cable moderation (as-is, 0, 3, 10, 50, 100).
Exit codes: 0 every cell was measured in every round, 1 some were not, or the router stalls, 2 wrong usage, 3 a privilege, a program or a kernel \
feature is missing.")]
pub struct ForwardArguments {
    /// Flows each way
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=60000))]
    flows: u16,

    /// Two NICs of this machine with a cable between them, in place of a veth pair: the one that sends, and the router's; once for a
    /// trunk alone, twice for both lines
    #[arg(long, value_name = "LINE:ROUTER", value_parser = cable)]
    cable: Vec<Cable>,

    #[command(flatten)]
    common: Common,
}

fn cable(text: &str) -> Result<Cable, String> {
    match text.split_once(':') {
        Some((line, router)) if !line.is_empty() && !router.is_empty() && line != router => {
            Ok(Cable { line: line.to_owned(), router: router.to_owned() })
        }
        _ => Err(format!("`{text}` is not LINE:ROUTER, two NICs such as eth1:eth2")),
    }
}

/// No NIC is at two places.
fn check_cables(cables: &[Cable]) -> anyhow::Result<()> {
    if cables.len() > 2 {
        bail!("--cable is given {} times; the router has two lines at most", cables.len());
    }
    let mut nics: Vec<&str> =
        cables.iter().flat_map(|cable| [cable.line.as_str(), cable.router.as_str()]).collect();
    nics.sort_unstable();
    match nics.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("--cable names {} twice; a NIC has one cable", pair[0]),
        None => Ok(()),
    }
}

impl ForwardArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        check_cables(&self.cable)?;
        self.common.run(out, &mut Forward { flows: self.flows, cables: self.cable }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nic_has_one_cable() {
        let cables = |texts: &[&str]| {
            let cables: Vec<Cable> = texts.iter().map(|text| cable(text).expect("a cable")).collect();
            check_cables(&cables).map_err(|error| error.to_string())
        };
        assert_eq!(cables(&["a:b", "c:d"]), Ok(()));
        assert!(cables(&["a:b", "c:a"]).is_err_and(|said| said.contains("names a twice")));
        assert!(cables(&["a:b", "c:d", "e:f"]).is_err_and(|said| said.contains("3 times")));
        for wrong in ["a", "a:", ":b", "a:a"] {
            assert!(cable(wrong).is_err_and(|said| said.contains("is not LINE:ROUTER")), "{wrong}");
        }
    }
}
