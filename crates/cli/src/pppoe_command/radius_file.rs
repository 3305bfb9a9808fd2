//! The file that names the RADIUS servers: who is queried, and who gets records.

use super::options::line_of;
use super::subscribers_file::passwords;
use anyhow::{anyhow, bail};
use concentrator::{Clients, NamedRates, Server, Servers};
use pppoe::concentrator::BitRates;
use radius::Secret;
use radius::access::Nas;
use radius::dynamic_authorization;
use radius::exchange::Patience;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Value;

/// Ports (RFC 2865 section 3, RFC 2866 section 3).
const AUTHENTICATION: u16 = 1812;
const ACCOUNTING: u16 = 1813;
/// Seconds that may be waited for anything.
const MOST: f64 = 3600.0;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    identifier: Option<String>,
    address: Option<IpAddr>,
    timeout: Option<f64>,
    tries: Option<u32>,
    dead: Option<f64>,
    records: Option<PathBuf>,
    #[serde(default)]
    server: Vec<Table>,
    dynamic_authorization: Option<Listening>,
    #[serde(default)]
    rate: Vec<NamedRate>,
}

/// Rates that servers say by a name (Filter-Id).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedRate {
    name: String,
    download: Option<String>,
    upload: Option<String>,
}

/// Requests of servers (RFC 5176).
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Listening {
    listen: IpAddr,
    port: Option<u16>,
    timestamp: Option<bool>,
    #[serde(default)]
    client: Vec<Client>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    address: IpAddr,
    /// As in [`Table`].
    secret: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    address: IpAddr,
    /// Of any type, so that no error quotes it.
    secret: Value,
    authentication: Option<u16>,
    accounting: Option<u16>,
}

/// Reads it. `name` is the concentrator's. Errors: the file, the line, and what was expected there; none quotes a secret.
pub fn read(path: &Path, name: &str, warns: bool) -> anyhow::Result<Servers> {
    let text = passwords(path, warns)?;
    let file = path.display();
    let text = std::str::from_utf8(&text).map_err(|_| anyhow!("{file}: expected text in UTF-8"))?;
    parse(text, name).map_err(|error| anyhow!("{file}: {error}"))
}

fn parse(text: &str, name: &str) -> anyhow::Result<Servers> {
    let file: File = toml::from_str(text)
        .map_err(|error| anyhow!("line {}: {}", line_of(text, &error), error.message()))?;
    let seconds = |key: &str, given: Option<f64>, usual: Duration| match given {
        None => Ok(usual),
        Some(seconds) if (0.01..=MOST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Some(_) => bail!("{key}: expected seconds, 0.01 to {MOST}"),
    };
    let usual = Patience::DEFAULT;
    let patience = Patience {
        timeout: seconds("timeout", file.timeout, usual.timeout)?,
        tries: file.tries.unwrap_or(usual.tries),
        dead: seconds("dead", file.dead, usual.dead)?,
    };
    if !(1..=20).contains(&patience.tries) {
        bail!("tries: expected 1 to 20");
    }
    if file.server.is_empty() {
        bail!("there is no [[server]] with address and secret");
    }
    let (mut access, mut accounting) = (Vec::new(), Vec::new());
    let mut known = Vec::new();
    for Table { address, secret, authentication, accounting: records } in file.server {
        let secret = secret_of(address, secret)?;
        known.push((address, secret.clone()));
        let ports = [
            (authentication.unwrap_or(AUTHENTICATION), &mut access),
            (records.unwrap_or(ACCOUNTING), &mut accounting),
        ];
        for (port, servers) in ports {
            if port != 0 {
                servers.push(Server { address: SocketAddr::new(address, port), secret: secret.clone() });
            }
        }
    }
    let nas = Nas {
        identifier: file.identifier.unwrap_or_else(|| name.to_owned()).into_bytes(),
        address: file.address,
    };
    if nas.identifier.is_empty() || nas.identifier.len() > 253 {
        bail!("identifier: expected 1 to 253 bytes");
    }
    if let Some(records) = file.records.as_ref().filter(|path| !path.is_absolute()) {
        bail!("records: expected a path from the root, not `{}`", records.display());
    }
    let clients = file.dynamic_authorization.map(|listening| clients(listening, known)).transpose()?;
    let rates = rates(file.rate)?;
    Ok(Servers { nas, access, accounting, patience, records: file.records, clients, rates })
}

fn rates(tables: Vec<NamedRate>) -> anyhow::Result<NamedRates> {
    let mut rates = NamedRates::new();
    for NamedRate { name, download, upload } in tables {
        let bits = |key: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) => match format::bit_rate_of(&text) {
                Some(bits) => Ok(Some(bits)),
                None => bail!(
                    "{key} of the rate `{}`: expected bits a second, 8k to 1000G, such as \"50M\", not `{}`",
                    format::printable(&name),
                    format::printable(&text)
                ),
            },
        };
        let both = BitRates { download: bits("download", download)?, upload: bits("upload", upload)? };
        if rates.insert(name.clone().into_bytes(), both).is_some() {
            bail!("there are two rates of the name `{}`", format::printable(&name));
        }
    }
    Ok(rates)
}

fn secret_of(address: IpAddr, secret: Value) -> anyhow::Result<Secret> {
    match secret {
        Value::String(secret) if !secret.is_empty() => Ok(Secret::new(secret)),
        _ => bail!("the secret of {address}: expected text in quotes, at least one character"),
    }
}

/// Who may end sessions and change them: who is named there, else the servers.
fn clients(listening: Listening, servers: Vec<(IpAddr, Secret)>) -> anyhow::Result<Clients> {
    let Listening { listen, port, timestamp, client } = listening;
    let named =
        client.into_iter().map(|Client { address, secret }| Ok((address, secret_of(address, secret)?)));
    let named = named.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Clients {
        listen: SocketAddr::new(listen, port.unwrap_or(dynamic_authorization::PORT)),
        clients: if named.is_empty() { servers } else { named },
        needs_timestamp: timestamp.unwrap_or(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_in_their_order() {
        let servers = parse(
            "identifier = \"bras1\"\naddress = \"10.0.0.1\"\ntimeout = 0.5\n\
             [[server]]\naddress = \"10.0.0.5\"\nsecret = \"one\"\n\
             [[server]]\naddress = \"fd00::5\"\nsecret = \"two\"\nauthentication = 1645\naccounting = 0\n",
            "rxlane",
        )
        .expect("servers");
        let addresses =
            |servers: &[Server]| servers.iter().map(|server| server.address.to_string()).collect::<Vec<_>>();
        assert_eq!(addresses(&servers.access), ["10.0.0.5:1812", "[fd00::5]:1645"]);
        assert_eq!(addresses(&servers.accounting), ["10.0.0.5:1813"]);
        assert_eq!(servers.nas, Nas { identifier: b"bras1".to_vec(), address: Some([10, 0, 0, 1].into()) });
        let usual = Patience::DEFAULT;
        assert_eq!(servers.patience, Patience { timeout: Duration::from_millis(500), ..usual });
        assert_eq!(
            parse("[[server]]\naddress = \"::1\"\nsecret = \"x\"", "rxlane").expect("one").nas.identifier,
            b"rxlane"
        );
    }

    #[test]
    fn requests_are_taken_of_the_servers_or_of_those_that_are_named() {
        let one = "[[server]]\naddress = \"10.0.0.5\"\nsecret = \"one\"\n";
        let clients = |text: &str| parse(&format!("{one}{text}"), "rxlane").expect("servers").clients;
        assert_eq!(clients(""), None);
        let listen = "[dynamic-authorization]\nlisten = \"10.0.0.1\"\n";
        let servers = Clients {
            listen: ([10, 0, 0, 1], 3799).into(),
            clients: vec![([10, 0, 0, 5].into(), Secret::new("one"))],
            needs_timestamp: true,
        };
        assert_eq!(clients(listen), Some(servers.clone()));
        let client = "[[dynamic-authorization.client]]\naddress = \"10.0.0.9\"\nsecret = \"two\"\n";
        let named = Clients {
            listen: ([10, 0, 0, 1], 1700).into(),
            clients: vec![([10, 0, 0, 9].into(), Secret::new("two"))],
            needs_timestamp: false,
        };
        assert_eq!(clients(&format!("{listen}port = 1700\ntimestamp = false\n{client}")), Some(named));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is_quoted() {
        for (text, expected) in [
            ("", "there is no [[server]]"),
            ("records = \"here\"\n[[server]]\naddress = \"::1\"\nsecret = \"x\"", "records: expected a path"),
            (
                "[[rate]]\nname = \"gold\"\ndownload = \"fast\"\n[[server]]\naddress = \"::1\"\nsecret = \"x\"",
                "download of the rate `gold`: expected bits a second",
            ),
            ("timeout = 0\n[[server]]\naddress = \"::1\"\nsecret = \"x\"", "timeout: expected seconds"),
            ("tries = 0\n[[server]]\naddress = \"::1\"\nsecret = \"x\"", "tries: expected 1 to 20"),
            ("[[server]]\naddress = \"::1\"\n", "line 1: missing field `secret`"),
            ("[[server]]\naddress = \"bras\"\nsecret = \"x\"", "line 2: invalid IP address syntax"),
            ("[[server]]\naddress = \"::1\"\nsecret = 4711", "the secret of ::1: expected text in quotes"),
            ("[[server]]\naddress = \"::1\"\nsecret = \"x\"\nport = 1", "line 4: unknown field `port`"),
        ] {
            let error = parse(text, "rxlane").expect_err(text).to_string();
            assert!(error.starts_with(expected) && !error.contains("4711"), "{text}: {error}");
        }
    }
}
