//! What the two stations say to each other, by tools that every Debian has.

use crate::Guest;
use anyhow::Result;

/// An exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// In a session: pings and HTTP over both versions of IP, UDP, and a pause in which LCP echoes come.
    Everyday,
    /// In a session: little.
    Brief,
    /// In a session: pings and UDP datagrams that are larger than a packet may be, both ways, over both versions.
    Fragments,
    /// In a session: hop-by-hop options, destination options, a segment routing header, an authentication header; one
    /// behind another.
    Extensions,
    /// Without PPPoE: HTTP and UDP over both versions.
    Plain,
}

/// Echoes UDP datagrams at port 7, of both versions of IP.
const ECHO: &str = "use IO::Socket::IP; my $s = IO::Socket::IP->new(LocalHost => '::', LocalPort => 7, \
    Proto => 'udp', V6Only => 0) or die $@; while (1) { $s->recv(my $m, 65536); $s->send($m); }";

/// Sends datagrams and waits for each one's echo: address, bytes, how many, then options of IPv6 packets as
/// `NUMBER:HEX` (54 hop-by-hop, 59 destination options: linux/in6.h).
const ASK: &str = "use IO::Socket::IP; my ($a, $n, $k, @o) = @ARGV; \
    my $s = IO::Socket::IP->new(PeerHost => $a, PeerPort => 7, Proto => 'udp') or die $@; \
    for (@o) { my ($l, $h) = split /:/; setsockopt($s, 41, $l, pack('H*', $h)) or die \"$l: $!\"; } \
    alarm 20; for (1 .. $k) { $s->send('.' x $n) or die $!; $s->recv(my $m, 65536); length $m == $n or die; }";

/// Downloads the file from an address. (A static busybox resolves no IPv6 address.)
const FETCH: &str = "use IO::Socket::IP; my $s = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => 80, Proto => 'tcp') \
    or die $@; alarm 20; print $s qq(GET /file HTTP/1.0\r\n\r\n); my $n = 0; while (<$s>) { $n += length; } \
    $n > 6000 or die \"$n bytes\";";

/// Servers at the far end.
pub(super) fn set_up(guest: &Guest) -> Result<()> {
    guest.write("/tmp/echo.pl", ECHO.as_bytes())?;
    guest.write("/tmp/ask.pl", ASK.as_bytes())?;
    guest.write("/tmp/fetch.pl", FETCH.as_bytes())?;
    guest.write("/srv/rxlane/file", &vec![b'.'; 6000])?;
    // A probe for a lost tail goes out after two round trips, which a busy machine makes last longer than the first one.
    let probes = "echo 0 >/proc/sys/net/ipv4/tcp_early_retrans";
    guest.sh(&format!("{probes}; ip netns exec far sh -c '{probes}'"))?;
    guest.start(&["ip", "netns", "exec", "far", "perl", "/tmp/echo.pl"], "/tmp/echo")?;
    guest
        .start(&["ip", "netns", "exec", "far", "busybox", "httpd", "-f", "-h", "/srv/rxlane"], "/tmp/http")?;
    // Wait until both listen: 7 and 80, as proc(5) shows them.
    guest
        .sh("timeout 30 ip netns exec far sh -c \
             'until grep -q :0007 /proc/net/udp6 && grep -q :0050 /proc/net/tcp6; do sleep 0.1; done'")
        .map(drop)
}

fn http(address: &str) -> String {
    format!("perl /tmp/fetch.pl {address}\n")
}

fn ask(address: &str, bytes: u32, datagrams: u32, options: &str) -> String {
    format!("perl /tmp/ask.pl {address} {bytes} {datagrams} {options}\n")
}

/// By way of an interface, since the far end of every session has the same IPv4 address.
fn ping(interface: &str, address: &str, bytes: u32, echoes: u32) -> String {
    let program = if address.contains(':') { "ping6" } else { "ping" };
    format!("busybox {program} -I {interface} -q -w 20 -c {echoes} -s {bytes} {address}\n")
}

impl Traffic {
    /// In the session of interface `pppUNIT`, where there is one.
    pub(super) fn exchange(self, guest: &Guest, unit: u32) -> Result<()> {
        let (four, six) = ("198.51.100.1", format!("2001:db8:{unit}::1"));
        let session = format!("ppp{unit}");
        let script = match self {
            Traffic::Everyday => [
                ping(&session, four, 56, 2),
                ping(&session, &six, 56, 2),
                http(four),
                http(&six),
                ask(four, 200, 2, ""),
                ask(&six, 200, 2, ""),
                "sleep 2\n".to_owned(),
            ]
            .concat(),
            Traffic::Brief => [ping(&session, four, 56, 1), ask(&six, 100, 1, "")].concat(),
            Traffic::Fragments => [
                ping(&session, four, 3000, 1),
                ping(&session, &six, 3000, 1),
                ask(four, 3000, 2, ""),
                ask(&six, 3000, 2, ""),
            ]
            .concat(),
            Traffic::Extensions => extensions(&session, &six),
            Traffic::Plain => [
                http("192.0.2.1"),
                http("2001:db8:7::1"),
                ask("192.0.2.1", 200, 2, ""),
                ask("2001:db8:7::1", 200, 2, ""),
                ask("192.0.2.1", 2000, 1, ""),
                ask("2001:db8:7::1", 2000, 1, ""),
            ]
            .concat(),
        };
        guest.sh(&script).map(drop)
    }
}

fn extensions(session: &str, six: &str) -> String {
    // PadN options only (RFC 8200 section 4.2): every receiver skips them. The kernel fills in the next header.
    let (hop_by_hop, destination) = ("54:0000010400000000", "59:0000010400000000");
    let mut script = [
        ask(six, 100, 1, hop_by_hop),
        ask(six, 100, 1, destination),
        ask(six, 100, 1, &format!("{hop_by_hop} {destination}")),
        ask(six, 3000, 1, destination),
    ]
    .concat();
    // A segment routing header (RFC 8754) by way of the far end's address to another one of its.
    script.push_str(
        "ip netns exec far sh -ec 'for i in all ppp0; do echo 1 >/proc/sys/net/ipv6/conf/$i/seg6_enabled; done; \
         echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; ip -6 addr add 2001:db8:2::1/128 dev lo'\n\
         ip -6 route add 2001:db8:2::1/128 encap seg6 mode inline segs 2001:db8::1 dev ppp0\n",
    );
    script.push_str(&http("2001:db8:2::1"));
    // An authentication header (RFC 4302) both ways.
    let key = "0x000102030405060708090a0b0c0d0e0f10111213";
    let (near, far) = ("2001:db8::2", "2001:db8::1");
    script.push_str("modprobe -a ah6 xfrm_user\n");
    for (within, own, other) in [("", near, far), ("ip netns exec far ", far, near)] {
        for (from, to, way) in [(own, other, "out"), (other, own, "in")] {
            script.push_str(&format!(
                "{within}ip xfrm state add src {from} dst {to} proto ah spi 0x1000 mode transport \
                 auth 'hmac(sha1)' {key}\n\
                 {within}ip xfrm policy add src {from} dst {to} dir {way} tmpl src {from} dst {to} proto ah mode transport\n"
            ));
        }
    }
    script.push_str(&ping(session, six, 56, 1));
    script.push_str(&ask(six, 100, 1, ""));
    script.push_str("for n in '' '-n far'; do ip $n xfrm policy flush; ip $n xfrm state flush; done\n");
    script
}
