//! `rxlane pppoe serve --dry-run`.

use super::super::accounting::Accounts;
use super::super::{BOLD, item};
use super::ServeArguments;
use crate::output::{CommandResult, Outcome, Output, complain};
use concentrator::{Answer, Availabilities, Availability, Servers};
use format::{plural, printable};
use pppoe::concentrator::Config;
use std::io::{self, Write};
use wire::VlanPattern;

impl ServeArguments {
    /// Shows what would be done, and that nothing stands in the way as far as it can be seen before.
    pub(super) fn plan(&self, out: &mut Output, config: &Config) -> CommandResult {
        let secrets = self.subscribers().read()?;
        let servers = self.servers()?;
        self.accounting.as_deref().map_or(Ok(()), Accounts::check)?;
        self.start(config.clone(), secrets.clone(), servers.clone()).check()?;
        let interface = printable(&self.interface);
        let title = format!("{} would serve {interface}; hosts get no frame now.", printable(&self.name));
        writeln!(out, "{}", out.styled(BOLD, title))?;
        item(out, "interface", &format!("{}, MTU {}", printable(&self.ifname), self.mtu))?;
        item(out, "lines", &self.vlan.as_ref().map_or("none".to_owned(), VlanPattern::to_string))?;
        self.forwarding(out)?;
        let subscribers = match self.anybody {
            true => "anybody".to_owned(),
            false => plural(secrets.len() as u64, "subscriber"),
        };
        item(out, "subscribers", &subscribers)?;
        let available = servers.as_ref().map(Servers::availabilities);
        if let (Some(servers), Some(available)) = (&servers, &available) {
            queried(out, servers, available)?;
        }
        let local = config.local.map_or("no IPv4 address".to_owned(), |local| local.to_string());
        let pools = config.pool.iter().map(|range| format!(", {range}")).collect::<String>();
        item(out, "addresses", &format!("{local}{pools}"))?;
        for (name, ranges) in &config.named_pools {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            item(out, "pool", &format!("{}: {}", printable(name), ranges.join(", ")))?;
        }
        if let Some(prefix) = config.prefixes {
            item(out, "prefixes", &format!("64 bits each of {prefix}"))?;
        }
        if let Some((network, length)) = config.delegated {
            item(out, "delegated", &format!("{length} bits each of {network}"))?;
        }
        let means = self.means();
        for note in means.unserved(&secrets, self.anybody).into_iter().chain(self.own_in_pool()) {
            item(out, "note", &printable(&note))?;
        }
        let available = available.unwrap_or_default();
        for (servers, what) in [
            (&available.access, "no RADIUS server answers: whom the secrets do not name could not connect"),
            (&available.accounting, "no RADIUS server that gets records answers: they would wait"),
        ] {
            if !servers.is_empty() && !servers.iter().any(|server| server.answer == Answer::Fit) {
                complain(what);
                return Ok(Outcome::Negative);
            }
        }
        Ok(Outcome::Success)
    }
}

/// Whom the concentrator queries, and whether they answer.
fn queried(out: &mut Output, servers: &Servers, available: &Availabilities) -> io::Result<()> {
    let list = |servers: &[Availability]| {
        let each = servers.iter().map(|Availability { server, answer }| match answer {
            Answer::Fit => format!("{server} (answers)"),
            Answer::OtherKind => {
                format!("{server} (answers, but as one of the other kind: look at the port)")
            }
            Answer::Unusable(why) => format!("{server} (answers, but {why})"),
            Answer::Silence => format!("{server} (no answer)"),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let access =
        if servers.access.is_empty() { "authenticates nobody".to_owned() } else { list(&available.access) };
    item(out, "radius", &access)?;
    if !available.accounting.is_empty() {
        item(out, "accounting", &list(&available.accounting))?;
    }
    if let Some(clients) = &servers.clients {
        item(out, "requests", &format!("of RADIUS servers at {}", clients.listen))?;
    }
    let mut all = available.access.iter().chain(&available.accounting);
    if all.any(|one| one.answer == Answer::Silence) {
        item(
            out,
            "note",
            "no answer: the server is down, knows another secret or not the address of this machine, or ignores Status-Server (RFC 5997)",
        )?;
    }
    Ok(())
}
