//! A NIC and how it is set up: profile, queues, hash key, indirection table, hash fields.

use crate::output::complain;
use anyhow::{Context, anyhow, bail};
use format::printable;
use nic::{LookupError, Profile, Receiver, Setup, schema};
use rss::{FlowHash, HashKey, IndirectionTable, KeyError, PrintedTable, TableShape};
use std::fmt::{self, Display};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(clap::Args)]
#[group(skip)]
pub struct DeviceArguments {
    /// NIC: a name of rxlane nics, with a mode as in i210+double-vlan, an interface of this machine, or a profile file
    #[arg(long, value_name = "NAME")]
    pub nic: Option<String>,

    /// Receive queues in use [default: 4, or as many as the NIC has if that is fewer]
    #[arg(long, value_name = "N")]
    pub queues: Option<u16>,

    /// microsoft, symmetric, or the key as ethtool -x prints it [default: the key of --reta where it has one, or microsoft]
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub key: Option<HashKey>,

    /// Indirection table: equal:N, weight:W0,W1,…, the queues of all entries joined by commas, or a file with the
    /// output of ethtool -x (- is standard input) [default: as the driver fills it]
    #[arg(long, value_name = "TABLE")]
    pub reta: Option<Reta>,

    /// Hash fields of a flow type, as in ethtool -N … rx-flow-hash: udp4=sdfn; several joined by commas
    #[arg(long, value_name = "FLOW=FIELDS", value_delimiter = ',')]
    pub hash_fields: Vec<FlowHash>,
}

impl DeviceArguments {
    pub fn receiver(&self, profile: Profile) -> anyhow::Result<Receiver> {
        receiver(profile, self.queues, self.key.clone(), self.reta.as_ref(), &self.hash_fields)
    }

    /// Whether nothing changes how a device is set up by itself.
    pub fn is_as_it_is(&self) -> bool {
        self.queues.is_none() && self.key.is_none() && self.reta.is_none() && self.hash_fields.is_empty()
    }

    /// Files that the arguments name.
    pub fn inputs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let reta = self.reta.as_ref().and_then(|reta| match reta {
            Reta::File(file) => Some(file),
            _ => None,
        });
        self.nic.iter().chain(reta).map(PathBuf::from)
    }
}

/// The profile that `--nic` means: a name of the catalogue, the NIC below an interface of this machine, or that of a driver. Errors: there is
/// none, or the name is that of a driver of several NICs, which are listed.
pub fn profile(name: &str) -> anyhow::Result<Profile> {
    let unknown = match nic::lookup(name) {
        Err(error @ LookupError::Unknown { .. }) => error,
        other => return Ok(other?),
    };
    if !name.contains('/') && Path::new("/sys/class/net").join(name).exists() {
        return of_interface(name);
    }
    match <[Profile; 1]>::try_from(driven_by(name)?) {
        Ok([profile]) => {
            complain(&format!("--nic {name} is taken for the {} ({})", profile.name(), profile.title));
            Ok(profile)
        }
        Err(driven) if driven.is_empty() => Err(unknown.into()),
        Err(driven) => bail!("--nic {name}: that is the driver of several NICs: {}", names(&driven)),
    }
}

#[cfg(target_os = "linux")]
fn below(name: &str) -> anyhow::Result<String> {
    crate::physical::meant(name, &super::StateArguments::default().folder())
}

#[cfg(not(target_os = "linux"))]
fn below(name: &str) -> anyhow::Result<String> {
    Ok(name.to_owned())
}

/// The profile of the NIC below an interface of this machine, by PCI id, else by driver.
fn of_interface(name: &str) -> anyhow::Result<Profile> {
    let interface = below(name).context("--nic")?;
    let device = Path::new("/sys/class/net").join(interface).join("device");
    let id = |file: &str| {
        let text = std::fs::read_to_string(device.join(file)).ok()?;
        Some(text.trim().trim_start_matches("0x").to_owned())
    };
    let of_id =
        id("vendor").zip(id("device")).map(|(vendor, device)| nic::lookup(&format!("{vendor}:{device}")));
    let driver = std::fs::read_link(device.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = printable(name);
    let profile = match (of_id, driver) {
        (Some(Ok(profile)), _) => profile,
        (_, Some(driver)) => match <[Profile; 1]>::try_from(driven_by(&driver)?) {
            Ok([profile]) => profile,
            Err(driven) if driven.is_empty() => {
                bail!("--nic {name}: no profile is for its driver {driver}; rxlane nics lists all there are")
            }
            Err(driven) => {
                bail!("--nic {name}: its driver {driver} serves several NICs: {}", names(&driven))
            }
        },
        (_, None) => bail!("--nic {name}: no NIC is below this interface; rxlane nics lists the profiles"),
    };
    complain(&format!("--nic {name} is taken for the {} ({})", profile.name(), profile.title));
    Ok(profile)
}

/// The NICs of a driver, in the order of the catalogue; none where no profile names it.
pub fn driven_by(driver: &str) -> anyhow::Result<Vec<Profile>> {
    let systems = ["linux", "freebsd", "netbsd", "openbsd"];
    let is_driven =
        |profile: &&Profile| systems.iter().any(|os| profile.drivers(os).any(|own| own == driver));
    Ok(nic::builtin()?.iter().filter(is_driven).cloned().collect())
}

fn names(profiles: &[Profile]) -> String {
    let names: Vec<String> = profiles.iter().map(|profile| format!("--nic {}", profile.name())).collect();
    names.join(", ")
}

/// A hash key: `microsoft`, `symmetric` (6d:5a repeated, 40 bytes), or its bytes in colon form or as plain
/// hexadecimal digits. Errors: the bytes are none, or too few or many.
pub fn key(text: &str) -> Result<HashKey, KeyError> {
    match text {
        "microsoft" => Ok(HashKey::MICROSOFT),
        "symmetric" => HashKey::symmetric(HashKey::USUAL_LENGTH),
        bytes => bytes.parse(),
    }
}

/// An indirection table as it is written on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reta {
    /// `equal:N`: N queues in turn, as `ethtool -X … equal N`.
    Equal(u32),
    /// `weight:W0,W1,…`: blocks in proportion to weights, as `ethtool -X … weight W0 W1 …`.
    Weight(Vec<u32>),
    List(Vec<u16>),
    /// A file with the output of `ethtool -x`; `-` is standard input.
    File(String),
}

impl FromStr for Reta {
    type Err = String;

    fn from_str(text: &str) -> Result<Reta, String> {
        let weight = |number: &str| {
            number
                .trim()
                .parse()
                .map_err(|_| format!("{number:?} is no number (weight:W0,W1,… has one a queue)"))
        };
        let queue = |number: &str| {
            let wrong = |_| format!("{number:?} is no queue number (0 to 65535)");
            number.trim().parse().map_err(wrong)
        };
        if let Some(queues) = text.strip_prefix("equal:") {
            let queues = queues.trim().parse().ok().filter(|queues| *queues > 0);
            return queues
                .map(Reta::Equal)
                .ok_or_else(|| "equal:N has a number of queues, at least 1".to_owned());
        }
        if let Some(weights) = text.strip_prefix("weight:") {
            return weights.split(',').map(weight).collect::<Result<_, _>>().map(Reta::Weight);
        }
        if text.contains(',') && text.starts_with(|first: char| first.is_ascii_digit()) {
            return text.split(',').map(queue).collect::<Result<_, _>>().map(Reta::List);
        }
        Ok(Reta::File(text.to_owned()))
    }
}

impl Display for Reta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reta::Equal(queues) => write!(f, "equal:{queues}"),
            Reta::Weight(weights) => {
                let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
                write!(f, "weight:{}", weights.join(","))
            }
            Reta::List(_) => f.write_str("the list"),
            Reta::File(file) if file == "-" => f.write_str("standard input"),
            Reta::File(file) => f.write_str(file),
        }
    }
}

/// What a [`Reta`] stands for on a device.
#[derive(Clone, Debug)]
pub struct Filled {
    pub queues: Vec<u16>,
    /// The key that `ethtool -x` printed with the table.
    pub key: Option<HashKey>,
    /// The receive rings that `ethtool -x` counted.
    pub rings: Option<u32>,
}

impl Filled {
    /// How many queues the table needs: the highest one named and those below it.
    pub fn needs(&self) -> u32 {
        self.queues.iter().max().map_or(0, |highest| u32::from(*highest) + 1)
    }
}

impl Reta {
    /// The table in `entries` entries, where they are known; a list and a printed table bring their own number. Errors: their
    /// number is unknown, weights that do not fit them, a file that cannot be read or holds no output of `ethtool -x`.
    pub fn fill(&self, entries: Option<usize>) -> anyhow::Result<Filled> {
        let of = |table: IndirectionTable| Filled { queues: table.queues().to_vec(), key: None, rings: None };
        let shape = || {
            let entries = entries.with_context(|| {
                format!(
                    "--reta: {self}: how many entries the table has is unknown (queue.table_sizes of the profile): give all of \
                     them, or the output of ethtool -x"
                )
            })?;
            Ok::<_, anyhow::Error>(TableShape::new(entries, 16)?)
        };
        let filled = match self {
            Reta::Equal(queues) => IndirectionTable::equal(shape()?, *queues, 0).map(of),
            Reta::Weight(weights) => IndirectionTable::weight(shape()?, weights, 0).map(of),
            Reta::List(queues) => Ok(Filled { queues: queues.clone(), key: None, rings: None }),
            Reta::File(file) => {
                let PrintedTable { rings, table, key, function, .. } = read_table(file)?;
                if let Some(function) = function.filter(|function| function != "toeplitz") {
                    bail!(
                        "--reta: {self}: the hash function is {function}, and only toeplitz is computed here"
                    );
                }
                Ok(Filled { queues: table.queues().to_vec(), key, rings: Some(rings) })
            }
        };
        filled.with_context(|| format!("--reta: {self}"))
    }

    /// How many queues it names by itself, before a table is filled with them.
    fn named(&self) -> Option<u32> {
        match self {
            Reta::Equal(queues) => Some(*queues),
            Reta::Weight(weights) => {
                let last = weights.iter().rposition(|weight| *weight > 0)?;
                u32::try_from(last + 1).ok()
            }
            Reta::List(_) | Reta::File(_) => None,
        }
    }
}

/// A device as the arguments set it up. The key of a printed table holds where none is given, and so does its
/// number of rings. Errors: what the device would refuse, a table that names a queue it has not in use, a
/// table for a device that has none.
fn receiver(
    profile: Profile,
    queues: Option<u16>,
    key: Option<HashKey>,
    reta: Option<&Reta>,
    fields: &[FlowHash],
) -> anyhow::Result<Receiver> {
    if key.as_ref().is_some_and(|key| key.bytes().iter().all(|byte| *byte == 0)) {
        bail!(
            "--key: all bytes of the key are zero: it is in use nowhere (no driver has taken one yet); leave --key out, or \
             take the key that ethtool -x shows"
        );
    }
    let mut setup = Setup { queues, key, table: None, fields: fields.to_vec() };
    let changes_hash = setup.key.is_some() || reta.is_some() || !fields.is_empty();
    if changes_hash && profile.text(schema::SELECTION) != Some("rss") {
        let name = profile.name();
        bail!(
            "--key, --reta and --hash-fields: no hash chooses the queue on the {name} as it is set up here"
        );
    }
    let Some(reta) = reta else { return Ok(Receiver::new(profile, &setup)?) };
    let sizes = profile.ints(schema::TABLE_SIZES);
    let entries = sizes.and_then(|sizes| sizes.first()).copied().map(usize::try_from).transpose()?;
    check_named(reta, reta.named(), &Receiver::new(profile.clone(), &setup)?)?;
    let filled = reta.fill(entries)?;
    if setup.queues.is_none() {
        setup.queues = filled.rings.and_then(|rings| u16::try_from(rings).ok());
    }
    setup.key = setup.key.or(filled.key.clone());
    let plain = Receiver::new(profile.clone(), &setup).with_context(|| format!("--reta: {reta}"))?;
    check_named(reta, Some(filled.needs()), &plain)?;
    setup.table = Some(filled.queues);
    Receiver::new(profile, &setup).with_context(|| format!("--reta: {reta}"))
}

fn check_named(reta: &Reta, named: Option<u32>, receiver: &Receiver) -> anyhow::Result<()> {
    let in_use = receiver.queues();
    let Some(named) = named.filter(|named| *named > u32::from(in_use)) else { return Ok(()) };
    let most = receiver.profile().int(schema::RX_QUEUES);
    let way_out = match most {
        Some(most) if most < u64::from(named) => format!("{most} at most"),
        _ => format!("--queues {named} makes it more"),
    };
    let name = receiver.profile().name();
    Err(anyhow!("--reta: {reta} names {named} queues, the {name} has {in_use} in use ({way_out})"))
}

/// The output of `ethtool -x` for the largest table there is takes a tenth of this.
const LONGEST: u64 = 1 << 22;

/// The text of a file, or of standard input for `-`.
fn read(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == "-" {
        io::stdin().take(LONGEST).read_to_string(&mut text).context("standard input")?;
        return Ok(text);
    }
    let reader = std::fs::File::open(file).with_context(|| {
        format!("{file}: neither equal:N, weight:W0,W1,…, a list of queues, nor a file that can be read")
    })?;
    reader.take(LONGEST).read_to_string(&mut text).with_context(|| file.to_owned())?;
    Ok(text)
}

/// The output of `ethtool -x` from a file or, for `-`, standard input. Errors: it cannot be read, or is no
/// such output.
pub fn read_table(file: &str) -> anyhow::Result<PrintedTable> {
    PrintedTable::parse(&read(file)?).with_context(|| match file {
        "-" => "standard input".to_owned(),
        file => file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(nic: &str, queues: Option<u16>, reta: &str) -> String {
        let profile = nic::lookup(nic).unwrap();
        let refused = receiver(profile, queues, None, Some(&reta.parse().unwrap()), &[]);
        format!("{:#}", refused.err().unwrap())
    }

    #[test]
    fn a_driver_is_answered_with_its_nics() {
        let error = |name| profile(name).expect_err("no NIC").to_string();
        assert_eq!(profile("igc").unwrap().name(), "i225");
        assert!(error("ixgbe").contains("several NICs: --nic 82599, --nic x540"), "{}", error("ixgbe"));
        assert!(error("nothing-like-it").contains("rxlane nics"));
        assert_eq!(profile("i210").unwrap().name(), "i210");
    }

    #[test]
    fn a_table_and_a_file_are_distinguished() {
        assert_eq!("equal:4".parse(), Ok(Reta::Equal(4)));
        assert_eq!("weight:3, 1".parse(), Ok(Reta::Weight(vec![3, 1])));
        assert_eq!("0,1".parse(), Ok(Reta::List(vec![0, 1])));
        assert_eq!("a,b".parse(), Ok(Reta::File("a,b".to_owned())));
        assert!("equal:0".parse::<Reta>().is_err() && "equal:x".parse::<Reta>().is_err());
        assert!("0,1,x".parse::<Reta>().unwrap_err().contains("\"x\" is no queue number"));
    }

    #[test]
    fn a_table_that_is_given_needs_none_of_the_profile() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../explain/nic/profiles/x710.toml");
        let text = std::fs::read_to_string(path).expect("a profile");
        let without = |claim: &str| {
            let text: String =
                text.lines().filter(|line| !line.starts_with(claim)).flat_map(|line| [line, "\n"]).collect();
            let profile = Profile::parse("x710.toml", "x710", &text).expect("a profile");
            receiver(profile, Some(8), None, Some(&Reta::Equal(8)), &[])
        };
        assert!(without("table_default").expect("a receiver").table().is_some());
        let error = without("table_sizes").err().expect("no size").to_string();
        assert!(error.contains("how many entries the table has is unknown"), "{error}");
    }

    #[test]
    fn queues_that_are_not_in_use_are_counted() {
        let too_many = "--reta: equal:9 names 9 queues, the i210 has 4 in use (4 at most)";
        assert_eq!(refusal("i210", None, "equal:9"), too_many);
        let more = "--reta: weight:1,1,1 names 3 queues, the i210 has 2 in use (--queues 3 makes it more)";
        assert_eq!(refusal("i210", Some(2), "weight:1,1,1"), more);
        assert!(refusal("i210", None, "0,1").contains("2 entries given, the table has 128"));
        assert!(refusal("i210", None, "weight:100,100").contains("add up to 200"));
        assert!(refusal("virtio-net", Some(2), "equal:2").contains("no hash chooses the queue"));
        assert!(refusal("i210", None, "/nowhere").contains("/nowhere: neither equal:N"));
    }

    #[test]
    fn a_printed_table_brings_key_and_rings() {
        let shape = TableShape::new(512, 16).unwrap();
        let table = IndirectionTable::equal(shape, 8, 0).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reta");
        let printed = PrintedTable::print("eth0", 8, &table);
        std::fs::write(&path, format!("{printed}RSS hash key:\n{}\n", ["6d:5a"; 26].join(":"))).unwrap();
        let reta = Reta::File(path.to_str().unwrap().to_owned());
        let set_up = receiver(nic::lookup("x710").unwrap(), None, None, Some(&reta), &[]).unwrap();
        assert_eq!((set_up.queues(), set_up.key().bytes().len()), (8, 52));
        let given = Some(HashKey::MICROSOFT);
        let set_up = receiver(nic::lookup("x710").unwrap(), Some(16), given, Some(&reta), &[]).unwrap();
        assert_eq!((set_up.queues(), set_up.key()), (16, &HashKey::MICROSOFT));
    }
}
