//! The command of a setting, read back.

use super::{ChannelKind, InterfaceName, ParseError, Setting, words};
use kernel::cpu::CpuSet;
use std::str::FromStr;

/// A decimal number without sign or leading zeros.
pub(super) fn number(what: &'static str, word: &str) -> Result<u32, ParseError> {
    let canonical = |number: &u32| number.to_string() == word;
    word.parse().ok().filter(canonical).ok_or_else(|| ParseError::no(word, what))
}

impl FromStr for Setting {
    type Err = ParseError;

    /// Reads exactly what [`Setting::command`] writes: another spelling, another quoting or a second command behind
    /// `;` is an error, so that nothing else is applied than what a shell would have done.
    fn from_str(command: &str) -> Result<Setting, ParseError> {
        let words = words::split(command)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let setting = setting(&words)?
            .ok_or_else(|| ParseError(format!("no command that rxlane applies: {command}")))?;
        let canonical = setting.command();
        if canonical != command {
            let problem =
                format!("rxlane applies this only when it is written {canonical:?}, not {command:?}");
            return Err(ParseError(problem));
        }
        Ok(setting)
    }
}

/// `None`: not one of the commands.
fn setting(words: &[&str]) -> Result<Option<Setting>, ParseError> {
    let setting = match words {
        ["ethtool", "-X", interface, rest @ ..] => return reta(interface.parse()?, rest),
        ["ethtool", "-N", interface, "rx-flow-hash", flow, fields] => Setting::HashFields {
            interface: interface.parse()?,
            flow: flow.parse()?,
            fields: if fields.is_empty() { None } else { Some(fields.parse()?) },
        },
        ["ethtool", "-L", interface, kind, count] => {
            let Some(kind) = ChannelKind::ALL.into_iter().find(|known| known.name() == *kind) else {
                return Ok(None);
            };
            Setting::Channels {
                interface: interface.parse()?,
                kind,
                count: number("number of channels", count)?,
            }
        }
        ["ethtool", "-G", interface, "rx", rx] => {
            Setting::Ring { interface: interface.parse()?, rx: number("number of entries", rx)? }
        }
        ["ethtool", "-C", interface, name, value] => {
            Setting::Coalesce { interface: interface.parse()?, name: name.parse()?, value: value.parse()? }
        }
        ["ethtool", "-K", interface, name, state @ ("on" | "off")] => {
            Setting::Feature { interface: interface.parse()?, name: name.parse()?, on: *state == "on" }
        }
        ["ip", "link", "set", "dev", interface, "mtu", mtu] => {
            Setting::Mtu { interface: interface.parse()?, mtu: number("MTU", mtu)? }
        }
        ["echo", value, ">", path] => return file(path, value),
        ["sysctl", "-w", assignment] => {
            let Some((name, value)) = assignment.split_once('=') else { return Ok(None) };
            Setting::Sysctl { name: name.parse()?, value: value.parse()? }
        }
        _ => return Ok(None),
    };
    Ok(Some(setting))
}

fn reta(interface: InterfaceName, words: &[&str]) -> Result<Option<Setting>, ParseError> {
    let (start, words) = match words {
        ["start", start, words @ ..] => (number("queue", start)?, words),
        words => (0, words),
    };
    Ok(Some(match words {
        ["default"] => Setting::RetaDefault { interface },
        ["equal", queues] => {
            let queues = number("number of queues", queues)?;
            if queues == 0 {
                return Err(ParseError::no("0", "number of queues"));
            }
            Setting::RetaEqual { interface, start, queues }
        }
        ["weight", weights @ ..] if !weights.is_empty() => {
            let weights: Vec<u32> =
                weights.iter().map(|word| number("weight", word)).collect::<Result<_, _>>()?;
            if weights.iter().all(|weight| *weight == 0) {
                return Err(ParseError::no("0", "list of weights of which one is above 0"));
            }
            Setting::RetaWeights { interface, start, weights }
        }
        _ => return Ok(None),
    }))
}

fn file(path: &str, value: &str) -> Result<Option<Setting>, ParseError> {
    if let Some(rest) = path.strip_prefix("/sys/class/net/") {
        let parts: Vec<&str> = rest.split('/').collect();
        let [interface, "queues", queue, "rps_cpus"] = parts[..] else { return Ok(None) };
        let Some(queue) = queue.strip_prefix("rx-") else { return Ok(None) };
        let (interface, queue) = (interface.parse()?, number("receive queue", queue)?);
        return Ok(Some(Setting::Rps { interface, queue, cpus: CpuSet::parse_mask(value)? }));
    }
    let irq = path.strip_prefix("/proc/irq/").and_then(|rest| rest.strip_suffix("/smp_affinity_list"));
    let Some(irq) = irq else { return Ok(None) };
    let (irq, cpus) = (number("interrupt", irq)?, CpuSet::parse_list(value)?);
    if cpus.is_empty() {
        return Err(kernel::cpu::ParseError::Cpu { found: value.to_owned() }.into());
    }
    Ok(Some(Setting::IrqAffinity { irq, cpus }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_command_comes_back_as_it_was() {
        for command in [
            "ethtool -N eth0 rx-flow-hash udp4 sdfn",
            "ethtool -N eth0 rx-flow-hash udp4 ''",
            "ethtool -X eth0 equal 2",
            "ethtool -X eth0 start 2 equal 6",
            "ethtool -X eth0 weight 1 1 2 0",
            "ethtool -X eth0 start 1 weight 64 64",
            "ethtool -X eth0 default",
            "ethtool -L eth0 combined 4",
            "ethtool -L eth0 rx 2",
            "ethtool -L enp1s0f0np0 tx 8",
            "ethtool -G eth0 rx 4096",
            "ethtool -C eth0 rx-usecs 30",
            "ethtool -C eth0 adaptive-rx off",
            "ethtool -K eth0 gro on",
            "ethtool -K eth0 tx-udp_tnl-segmentation off",
            "ip link set dev eth0.35 mtu 1508",
            "echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus",
            "echo 1,00000000 > /sys/class/net/eth0.35/queues/rx-63/rps_cpus",
            "echo 0-3,8 > /proc/irq/128/smp_affinity_list",
            "sysctl -w net.core.netdev_budget=600",
            "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
            "sysctl -w net.ipv4.conf.eth0/35.rp_filter=0",
            "sysctl -w net.ipv4.ip_local_reserved_ports=",
            "ip link set dev 'wan$(id)' mtu 1500",
            r"ethtool -L 'it'\''s' rx 1",
            "echo 0 > '/sys/class/net/a&b/queues/rx-0/rps_cpus'",
        ] {
            let setting: Setting = command.parse().unwrap_or_else(|error| panic!("{command}: {error}"));
            assert_eq!(setting.command(), command);
            let json = serde_json::to_string(&setting).expect("a string");
            assert_eq!(serde_json::from_str::<Setting>(&json).expect("the same"), setting);
        }
    }

    #[test]
    fn what_a_shell_would_take_for_something_else_is_refused() {
        for command in [
            "",
            "reboot",
            "ethtool -X eth0; equal 2",
            "ethtool -X eth0 equal 2; reboot",
            "ethtool -X eth0 equal 2 ",
            "ethtool  -X eth0 equal 2",
            "ethtool -X eth0 equal 2\n",
            "ethtool -X eth0 equal $(reboot)",
            "ethtool -X $IFACE equal 2",
            "ethtool -X \"eth0\" equal 2",
            r"ethtool -X eth\0 equal 2",
            "ethtool -X 'eth0' equal 2",
            "ethtool -X eth0 equal 0",
            "ethtool -X eth0 equal 02",
            "ethtool -X eth0 weight",
            "ethtool -X eth0 weight 0 0",
            "ethtool -X eth0 start 1 default",
            "ethtool -L eth0 other 4",
            "ethtool -L eth0 rx 2 tx 2",
            "ethtool -N eth0 rx-flow-hash udp4 xyz",
            "ethtool -N eth0 rx-flow-hash udp9 sdfn",
            "ethtool -K eth0 gro maybe",
            "ethtool -K -x gro on",
            "ethtool --set-channels eth0 rx 2",
            "ip link set dev ../x mtu 1500",
            "ip link set eth0 mtu 1500",
            "echo f > /sys/class/net/../queues/rx-0/rps_cpus",
            "echo f > /sys/class/net/eth0/queues/rx-0/../rps_cpus",
            "echo f > /sys/class/net/eth0/queues/rx-00/rps_cpus",
            "echo 0f > /sys/class/net/eth0/queues/rx-0/rps_cpus",
            "echo f >> /sys/class/net/eth0/queues/rx-0/rps_cpus",
            "echo f '>' /sys/class/net/eth0/queues/rx-0/rps_cpus",
            "echo f > /etc/passwd",
            "echo '' > /proc/irq/128/smp_affinity_list",
            "echo 3,0-2 > /proc/irq/128/smp_affinity_list",
            "echo 1 > /proc/irq/1/2/smp_affinity_list",
            "sysctl -w net.core.netdev_budget",
            "sysctl -w net.core.x=1;reboot",
            "sysctl -w 'net.core.x=1'",
            "sysctl -w net.core.x='1\n2'",
            "sysctl net.core.x=1",
        ] {
            assert!(command.parse::<Setting>().is_err(), "{command}");
        }
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_what_was_written(command in "(ethtool|ip|echo|sysctl)( (-[XLNGCKw]|[a-z0-9$;'.=>/-]{1,12})){1,6}") {
            if let Ok(setting) = command.parse::<Setting>() {
                prop_assert_eq!(setting.command(), command);
            }
        }

        #[test]
        fn any_interface_and_value_round_trips(name in "[!-~]{1,15}", mtu: u32, value in "[ -~]{0,30}") {
            if let Ok(interface) = name.parse::<InterfaceName>() {
                let setting = Setting::Mtu { interface, mtu };
                prop_assert_eq!(setting.command().parse(), Ok(setting));
            }
            let value = value.parse().expect("printable");
            let setting = Setting::Sysctl { name: "net.core.x".parse().expect("a name"), value };
            prop_assert_eq!(setting.command().parse(), Ok(setting));
        }
    }
}
