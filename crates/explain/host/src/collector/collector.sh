#!/bin/sh
# Collects what rxlane needs to find out why a network interface receives slowly, and prints it: one text, which
# rxlane doctor --from FILE reads.
#
# Linux (BusyBox too), FreeBSD, NetBSD. POSIX sh and tools of the base system. It changes nothing, writes no
# file, needs no root (root sees a little more), and takes out addresses and names before anything is printed.
#
# Licence: MIT OR Apache-2.0.

set -u
# Lists of names are split into words, and a name may be *: names of files are no part of a list. set +f stands
# where paths are looked for.
set -f
LC_ALL=C
export LC_ALL
# Administrators' tools are not on everybody's path. TOP holds default options of top on the BSDs.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
unset TOP

usage() {
    cat <<'END'
Usage: sh collector.sh [-s SECONDS] [INTERFACE...] >bundle.txt

Prints the state of the receive path, of the interfaces named and those below them, or of all.
  -s SECONDS   time between two samples of the counters (default 3); 0 takes one sample
  -h           this help
END
}

complain() { printf '%s\n' "collector: $*" >&2; }

# put TEXT: the text, of any length. mksh has no printf of its own, and Linux gives a program no argument of more than
# 128 KiB: less than a kernel log.
case ${KSH_VERSION-} in
    *MIRBSD* | *LEGACY*) put() { print -r -- "$1"; } ;;
    *) put() { printf '%s\n' "$1"; } ;;
esac

has() { command -v "$1" >/dev/null 2>&1; }

# Ends what is left of the collector when the shell that was started has ended: nothing remains.
stop_if_orphaned() { kill -0 $$ 2>/dev/null || exit 1; }

# --- Bundle ---------------------------------------------------------------------------------------------------

# An output's lines, none of which looks like a prompt or a remark of the bundle.
say() {
    case $1 in
        *'$ '* | *'# '*) put "$1" | sed -e 's/^\$ / $ /' -e 's/^# / # /' ;;
        *) put "$1" ;;
    esac
}

not_read() { printf '# not read: %s\n' "$1"; }

first_line() { put "$1" | sed -n '/[^ ]/{p;q;}'; }

# reason COMMAND...: why it prints nothing, in its own words.
reason() {
    if ! has "$1"; then
        printf '%s is not installed\n' "$1"
        return
    fi
    why=$("$@" 2>&1 >/dev/null </dev/null)
    why=$(first_line "$why")
    printf '%s\n' "${why:-it printed nothing}"
}

# ask COMMAND...: the prompt, then what the command prints, or why it prints nothing.
ask() { keep cat "$@"; }

# keep FILTER COMMAND...: the same with the lines that FILTER, a function, leaves. A command that printed something
# and had nothing worth keeping has been read.
keep() {
    filter=$1
    shift
    stop_if_orphaned
    printf '$ %s\n' "$*"
    output=
    if has "$1"; then output=$("$@" 2>/dev/null </dev/null); fi
    if [ -z "$output" ]; then
        not_read "$(reason "$@")"
        return 1
    fi
    kept=$(put "$output" | "$filter")
    if [ -n "$kept" ]; then say "$kept"; else put '# nothing to tell'; fi
}

# ask_file PATH: the same for a file. One that is not there, or has nothing to say of this interface (speed and
# xps_cpus of a virtual one), is no news; one that may not be read is.
ask_file() {
    stop_if_orphaned
    if [ ! -e "$1" ]; then return; fi
    if output=$(cat "$1" 2>&1); then
        printf '$ cat %s\n' "$1"
        if [ -n "$output" ]; then say "$output"; fi
        return
    fi
    case $output in
        *ermission* | *ermitted*)
            printf '$ cat %s\n' "$1"
            not_read "$(first_line "$output")"
            ;;
    esac
}

system_is() { printf '# system: %s\n' "$1"; }

# --- Redaction ------------------------------------------------------------------------------------------------

# Everything that is printed passes here. What counts as an address is the same as in rxlane's own bundles
# (host::redact), which documents it. POSIX awk without interval expressions, which old ones lack.
redact() {
    awk -v host="$host_name" -v short="${host_name%%.*}" '
    function is_hex(s, most) { return s ~ /^[0-9A-Fa-f]+$/ && length(s) <= most }

    function is_quad(s,    part, n, i) {
        n = split(s, part, ".")
        if (n != 4 && n != 5) return 0
        for (i = 1; i <= 4; i++)
            if (part[i] !~ /^[0-9]+$/ || length(part[i]) > 3 || part[i] + 0 > 255) return 0
        return n == 4 || (part[5] ~ /^[0-9]+$/ && length(part[5]) <= 5)
    }

    # Whether the text before a number says that it is a version.
    function is_version(left) {
        left = tolower(left)
        if (length(left) > 32) left = substr(left, length(left) - 31)
        if (left ~ /version/ || left ~ /firmware/) return 1
        return left ~ /(^|[^a-z])(fw|ver|rev|nvm|pkg|linux|freebsd|netbsd)[ :=.-]*$/
    }

    # A word without colons.
    function dotted(word, left,    part, n, tail) {
        tail = ""
        while (word ~ /\.$/) { word = substr(word, 1, length(word) - 1); tail = "." tail }
        n = split(word, part, ".")
        if (is_quad(word) && !is_version(left)) word = "(ip4)"
        else if (n == 3 && length(word) == 14 && is_hex(part[1], 4) && is_hex(part[2], 4) && is_hex(part[3], 4) \
            && length(part[1]) == 4 && length(part[2]) == 4 && !is_version(left)) word = "(mac)"
        else if (n == 6 && word ~ /[A-Fa-f]/ && is_hex(part[1], 2) && is_hex(part[2], 2) && is_hex(part[3], 2) \
            && is_hex(part[4], 2) && is_hex(part[5], 2) && is_hex(part[6], 2)) word = "(mac)"
        return word tail
    }

    # Groups first to last, with colons between them and one or more of hexadecimal digits in each or none.
    function colons(first, last,    i, text, n, twos, ones, empty, lead, tail, units) {
        lead = tail = ""
        if (last > first && group[first] == "" && group[first + 1] != "") { first++; lead = ":" }
        if (last > first && group[last] == "" && group[last - 1] != "") { last--; tail = ":" }
        text = group[first]
        for (i = first + 1; i <= last; i++) text = text ":" group[i]
        twos = ones = empty = units = 0
        for (i = first; i <= last; i++) {
            if (length(group[i]) == 2) twos++
            if (length(group[i]) == 1) ones++
            if (group[i] == "") empty++; else units += (group[i] ~ /\./) ? 2 : 1
        }
        n = last - first + 1
        if (n == 6 && twos + ones == 6) text = "(mac)"
        else if (n >= 6 && twos == n) text = "(hidden)"
        else if (units == 8 && empty == 0) text = "(ip6)"
        else if (units >= 1 && units <= 7 && text ~ /::/ && text !~ /:::/) {
            # One pair of colons only stands for zeros.
            if (text !~ /::.*::/) text = "(ip6)"
        }
        return lead text tail
    }

    # A word of letters, digits, colons and dots.
    function judge(word, left,    n, i, first, out, part, sep, mixed, cut) {
        if (word !~ /:/) return (word ~ /\./) ? dotted(word, left) : word
        n = split(word, group, ":")
        out = sep = ""
        first = 0
        for (i = 1; i <= n; i++) {
            if (group[i] == "" || is_hex(group[i], 4)) {
                if (!first) first = i
                continue
            }
            if (first && is_quad(group[i]) && split(group[i], part, ".") == 4) {
                # An IPv4 address at the end of an IPv6 address, where the groups before leave room for one.
                out = out sep embedded(first, i, left out)
                sep = ":"; first = 0
                continue
            }
            if (first) { out = out sep colons(first, i - 1); sep = ":"; first = 0 }
            # A bridge: priority, dot, address.
            mixed = group[i]
            cut = index(mixed, ".")
            if (cut > 0 && is_hex(substr(mixed, cut + 1), 4)) {
                out = out sep dotted(substr(mixed, 1, cut - 1), left out) "."
                group[i] = substr(mixed, cut + 1)
                sep = ""; first = i
                continue
            }
            out = out sep dotted(group[i], left out)
            sep = ":"
        }
        if (first) out = out sep colons(first, n)
        return out
    }

    function embedded(first, last, left,    text) {
        text = colons(first, last)
        return text == "(ip6)" ? text : colons(first, last - 1) ":" dotted(group[last], left)
    }

    function words(line,    out, word, left) {
        if (line !~ /[:.].*[:.]/) return line
        out = ""
        while (match(line, /[0-9A-Za-z:.]+/)) {
            word = substr(line, RSTART, RLENGTH)
            left = out substr(line, 1, RSTART - 1)
            line = substr(line, RSTART + RLENGTH)
            out = left judge(word, left)
        }
        return out line
    }

    # replaced(line, pattern, start, with): every match whose neighbours are no letters, digits or dashes, from
    # its character number start on.
    function replaced(line, pattern, start, with,    out, before, after, found, from) {
        out = ""
        while (match(line, pattern)) {
            found = RSTART; from = RLENGTH
            before = substr(out line, length(out) + found - 1, 1)
            after = substr(line, found + from, 1)
            if (before ~ /[0-9A-Za-z-]/ || after ~ /[0-9A-Za-z-]/) {
                out = out substr(line, 1, found)
                line = substr(line, found + 1)
                continue
            }
            out = out substr(line, 1, found - 1 + start - 1) with
            line = substr(line, found + from)
        }
        return out line
    }

    # Interface names made of the address: enx001122334455 keeps its last three digits, to be distinguished.
    function named_by_address(line,    out, name) {
        out = ""
        while (match(line, by_address)) {
            name = substr(line, RSTART, RLENGTH)
            out = out substr(line, 1, RSTART - 1) substr(name, 1, 3) "hidden" substr(name, 13)
            line = substr(line, RSTART + RLENGTH)
        }
        return out line
    }

    function without_host(line, name,    at, out, before, after) {
        out = ""
        while ((at = index(line, name)) > 0) {
            before = substr(out line, length(out) + at - 1, 1)
            after = substr(line, at + length(name), 1)
            out = out substr(line, 1, at - 1)
            if (before ~ /[0-9A-Za-z_-]/ || after ~ /[0-9A-Za-z_-]/) out = out name
            else out = out "(host)"
            line = substr(line, at + length(name))
        }
        return out line
    }

    BEGIN {
        hex = "[0-9A-Fa-f][0-9A-Fa-f]"
        dashed = hex "-" hex "-" hex "-" hex "-" hex "-" hex
        by_address = "(en|wl|ww)x" hex hex hex hex hex hex
        skip_host = host == "" || length(short) < 4 || short ~ /^(localhost|linux|netbsd|freebsd|openwrt)$/
    }

    # Words that people chose for an interface; keys, serial numbers.
    /^ *alias / || /^[ \t]*description: / { next }
    tolower($1) ~ /^dev\..*(serial|\.sn:?$|mac_?addr|rss.*key)/ { next }

    {
        line = $0
        if (line ~ /-..-..-/) line = replaced(line, dashed, 1, "(mac)")
        if (line ~ /x[0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f]/) line = named_by_address(line)
        if (line ~ /portid|switchid|link-netns /) {
            sub(/portid [0-9A-Fa-f]+/, "portid (hidden)", line)
            sub(/switchid [0-9A-Fa-f]+/, "switchid (hidden)", line)
            sub(/link-netns [^ ]+/, "link-netns (name)", line)
        }
        line = words(line)
        if (!skip_host) {
            line = without_host(line, host)
            if (short != host) line = without_host(line, short)
        }
        print line
    }'
}

# --- Filters of single commands -------------------------------------------------------------------------------

# Kernel log: what concerns the receive path, of the machine's own interfaces (by name or bus address) only.
log_lines() {
    awk -v names="$log_names" '
    BEGIN { n = split(names, name, " ") }
    function is_ours(    i, at, before, after) {
        for (i = 1; i <= n; i++) {
            at = index($0, name[i])
            if (!at) continue
            before = substr($0, at - 1, at > 1)
            after = substr($0, at + length(name[i]), 1)
            if (before !~ /[0-9A-Za-z]/ && after !~ /[0-9A-Za-z]/) return 1
        }
        return 0
    }
    /partial checksum but proto=/ || /failed on len/ || /NETDEV WATCHDOG/ { print; next }
    {
        low = tolower($0)
        if (low ~ /timed out|timeout|reset|unit hang|tx hang|hung|link is (up|down)|link (up|down)|link state/ \
            && is_ours()) print
    }' | tail -n 200
}

# ifconfig: headings, and of the lines below them those that name no address and no person.
ifconfig_lines() {
    awk '
    /^[^ \t]/ { print; next }
    $1 ~ /^(options|capabilities|enabled|ec_capabilities|ec_enabled)=/ { print; next }
    $1 ~ /^(media:|status:|vlan:|parent:|linkstate:|laggproto|laggport:|member:|groups:|mtu)$/ { print; next }
    $1 ~ /^(ether|address:)$/ { print }'
}

# netstat -i: one line an interface, that of the link layer.
link_lines() { awk 'NR == 1 || /<Link/'; }

# ps: programs that carry PPPoE in user space.
ppp_lines() { awk 'NR == 1 || $3 ~ /^(-?ppp|mpd|accel-ppp|xl2tpd)/'; }

# top on the BSDs: the last display, and of its rows those of interrupts, the kernel and PPP.
top_rows() {
    awk '
    /^load averages|^last pid/ { n = 0; in_rows = 0 }
    /COMMAND/ { in_rows = 1; line[++n] = $0; next }
    !in_rows || /% +(intr|kernel|swi|netisr|idle|system|softint|ng_queue|dummynet|ppp|mpd)/ { line[++n] = $0 }
    END { for (i = 1; i <= n; i++) print line[i] }'
}

ethernet_devices() { awk '/^[^ \t]/ { kept = /class=0x0200/ } kept'; }

# --- Linux ----------------------------------------------------------------------------------------------------

net=/sys/class/net

linux_all() {
    set +f
    for path in "$net"/*; do if [ -e "$path/ifindex" ]; then printf '%s\n' "${path##*/}"; fi; done
    set -f
}

linux_exists() { [ -e "$net/$1/ifindex" ]; }

# The devices below one: a VLAN's parent, a bridge's ports' own parents, the Ethernet device of a PPPoE session.
linux_below() {
    set +f
    for path in "$net/$1"/lower_*; do
        if [ -e "$path" ]; then printf '%s\n' "${path##*/lower_}"; fi
    done
    set -f
    case $1 in
        ppp*) awk 'NR > 1 { print $3 }' /proc/net/pppoe 2>/dev/null ;;
    esac
}

# Name of a device on its bus (0000:03:00.0, 1e100000.ethernet); nothing for a device without one.
linux_bus_name() {
    at=$(cd -P "$net/$1/device" 2>/dev/null && pwd -P) || return 0
    printf '%s\n' "${at##*/}"
}

# Its folder of vectors with message-signalled interrupts. A virtio device has them at the PCI device above it.
linux_msi_folder() {
    for folder in "$net/$1/device/msi_irqs" "$net/$1/device/../msi_irqs"; do
        if [ -d "$folder" ]; then
            printf '%s\n' "$folder"
            return
        fi
    done
}

# Numbers of the vectors of the interfaces, by message-signalled interrupts and by name.
linux_vectors() {
    for interface in $interfaces; do
        folder=$(linux_msi_folder "$interface")
        if [ -n "$folder" ]; then ls "$folder"; fi
        awk -v name="$interface" -v bus="$(linux_bus_name "$interface")" '
        NR > 1 && $1 ~ /^[0-9]+:$/ {
            for (i = 2; i <= NF; i++) {
                word = $i
                sub(/,$/, "", word)
                if (word == name || index(word, name "-") == 1 || (bus != "" && index(word, bus))) {
                    print $1 + 0
                    next
                }
            }
        }' /proc/interrupts 2>/dev/null
    done | sort -nu
}

linux_ethtool() {
    if ! has ethtool; then return; fi
    ask ethtool "$1"
    ask ethtool -i "$1"
    ask ethtool -k "$1"
    ask ethtool -l "$1"
    # What hardware refuses is noise for a bridge.
    if [ ! -e "$net/$1/device" ]; then return; fi
    ask ethtool -g "$1"
    ask ethtool -c "$1"
    ask ethtool -x "$1"
    for flow in tcp4 udp4 tcp6 udp6; do ask ethtool -n "$1" rx-flow-hash "$flow"; done
}

linux_interface() {
    linux_ethtool "$1"
    for file in mtu speed duplex operstate device/uevent device/vendor device/device device/sriov_numvfs; do
        ask_file "$net/$1/$file"
    done
    # The vectors of virtio and mlx5 are not named after the interface.
    folder=$(linux_msi_folder "$1")
    if [ -n "$folder" ]; then ask ls "$folder"; fi
    set +f
    for path in "$net/$1"/queues/rx-*/rps_cpus "$net/$1"/queues/rx-*/rps_flow_cnt \
        "$net/$1"/queues/tx-*/xps_cpus; do
        ask_file "$path"
    done
    set -f
}

cpu_facts() {
    grep -E '^(Architecture|CPU\(s\)|On-line CPU|Thread\(s\)|Core\(s\)|Socket\(s\)|Vendor ID|Model name|NUMA)'
}
# The serial number of some boards stands here, too.
cpuinfo_facts() { grep -E '^(processor|model name|system type|cpu model|machine|Hardware)'; }

# OpenWrt's settings: sections and options that matter, and no others.
uci_lines() {
    awk '
    $1 == "config" { kind = $2; gsub(/["\047]/, "", kind); kept = kind ~ /^(defaults|globals|irqbalance)$/; if (kept) print; next }
    kept && $1 == "option" {
        name = $2
        gsub(/["\047]/, "", name)
        if (name ~ /^(flow_offloading|flow_offloading_hw|packet_steering|steering_flows|enabled)$/) print
    }'
}

# nft list ruleset: flowtables, chains, and of the rules those that put flows into flowtables, let established connections
# pass, or name interfaces; without sets and comments.
nft_lines() {
    awk '
    skipped { if ($1 == "}") skipped = 0; next }
    /^[ \t]+(set|map|ct|counter|quota|limit|secmark|synproxy|meter) .*\{ *$/ { skipped = 1; next }
    { sub(/ comment ".*"/, "") }
    /^table |^[ \t]+(chain|flowtable) .*\{|^[ \t]*\}/ || /type .* hook / || $1 ~ /^(hook|devices|flags)$/ \
        || / hook ingress / || /^[ \t]+counter *$/ || /flow (add|offload) @/ || /ct state / || /[io]if(name)? / { print }'
}

# Conntrack: how many entries there are of each kind, without addresses.
conntrack_counts() {
    awk '
    {
        kind = ""
        for (i = 1; i <= NF && kind == ""; i++) if ($i ~ /^(tcp|udp|icmp|icmpv6|gre|sctp|dccp|udplite|unknown)$/) kind = $i
        if (kind == "" || !/src=/) next
        for (; i <= NF; i++) {
            if ($i ~ /^[A-Z][A-Z_0-9]+$/ || $i ~ /^\[[A-Z_]+\]$/) kind = kind " " $i
            if ($i ~ /^mark=/ && $i != "mark=0") kind = kind " mark"
            if ($i ~ /^helper=/) kind = kind " helper"
        }
        if (/ (src|dst)=(127\.|(0000:)+0001 |::1 )/) kind = kind " own"
        count[kind]++
    }
    END { for (kind in count) printf "%7d %s\n", count[kind], kind }'
}

linux_connections() {
    if [ -r /proc/net/nf_conntrack ]; then
        printf '$ cat /proc/net/nf_conntrack\n'
        conntrack_counts </proc/net/nf_conntrack
    elif has conntrack; then
        keep conntrack_counts conntrack -L
    fi
}

linux_settings() {
    if has lscpu; then keep cpu_facts lscpu; else keep cpuinfo_facts cat /proc/cpuinfo; fi
    if ! has ethtool; then
        printf '$ ethtool\n'
        not_read 'ethtool is not installed (opkg install ethtool, apt install ethtool)'
    fi
    for interface in $interfaces; do
        complain "settings of $interface"
        linux_interface "$interface"
    done
    for vector in $(linux_vectors); do
        ask_file "/proc/irq/$vector/smp_affinity_list"
        ask_file "/proc/irq/$vector/effective_affinity_list"
    done
    ask_file /proc/net/pppoe
    # Whether the kernel coalesces what is in PPPoE.
    if [ -e /proc/net/pppoe ]; then keep functions grep pppoe_ /proc/kallsyms; fi
    ask_file /proc/net/vlan/config
    if has nft; then keep nft_lines nft list ruleset; fi
    linux_connections
    if [ -r /etc/config/firewall ]; then keep uci_lines cat /etc/config/firewall; fi
    if [ -r /etc/config/network ]; then keep uci_lines cat /etc/config/network; fi
    if [ -r /etc/config/irqbalance ]; then keep uci_lines cat /etc/config/irqbalance; fi
    ask sysctl net.core.netdev_budget net.core.netdev_budget_usecs net.core.dev_weight \
        net.core.netdev_max_backlog net.core.rps_sock_flow_entries net.ipv4.ip_forward \
        net.netfilter.nf_flowtable_tcp_timeout net.netfilter.nf_flowtable_udp_timeout \
        net.bridge.bridge-nf-call-iptables
    log_names=
    for interface in $(linux_all); do log_names="$log_names $interface $(linux_bus_name "$interface")"; done
    keep log_lines dmesg
}

# Without their addresses: whoever knows one knows where the kernel lies.
functions() { sed -n 's/^[0-9a-f]* \([tT] \)/0000000000000000 \1/p'; }

cpu_lines() { grep '^cpu'; }

# ps with per cent of one CPU since the former call, or since the process began: what ps itself and top print
# differs, and BusyBox ps has no such column. Times in /proc/PID/stat are in hundredths of a second (USER_HZ).
linux_processes() {
    printf '$ ps -eo pid,pcpu,comm\n'
    ticks=$(set +f; cat /proc/[0-9]*/stat 2>/dev/null | awk -v former="$former_ticks" -v then="$former_uptime" -v now="$1" '
        BEGIN { n = split(former, word, " "); for (i = 1; i < n; i += 2) ticks[word[i]] = word[i + 1] }
        {
            pid = $1
            name = $0
            sub(/^[^(]*\(/, "", name)
            rest = name
            sub(/\)[^)]*$/, "", name)
            sub(/^.*\) /, "", rest)
            if (name !~ /^(pppd|pppoe|ppp$|mpd|accel-ppp|xl2tpd|ksoftirqd|napi)/) next
            # From the state on: utime is field 14 of the file, stime 15, starttime 22.
            split(rest, field, " ")
            used = field[12] + field[13]
            if (pid in ticks) { used -= ticks[pid]; time = now - then } else time = now - field[20] / 100
            print pid, field[12] + field[13], (time > 0 ? used / time : 0), name
        }')
    printf '    PID %%CPU COMMAND\n'
    put "$ticks" | awk 'NF { pid = $1; cpu = $3; $1 = $2 = $3 = ""; sub(/^ +/, "")
        printf "%7d %4.1f %s\n", pid, cpu, $0 }'
    former_ticks=$(put "$ticks" | awk '{ print $1, $2 }')
    former_uptime=$1
}
former_ticks=
former_uptime=0

linux_now() {
    read -r now rest </proc/uptime || now=$(date +%s)
    printf '%s\n' "$now"
}

# Other names of an interface: people choose them, and udev makes them of the MAC address.
without_altnames() { grep -v '^ *altname '; }

linux_counters() {
    ask cat /proc/uptime
    ask cat /proc/interrupts
    ask_file /proc/softirqs
    ask_file /proc/net/softnet_stat
    keep cpu_lines cat /proc/stat
    linux_processes "$1"
    # BusyBox ip knows neither option.
    if ip -d -s link >/dev/null 2>&1; then keep without_altnames ip -d -s link; else ask ip link; fi
    ask_file /proc/net/dev
    if has ethtool; then
        for interface in $interfaces; do ask ethtool -S "$interface"; done
    fi
    if has rxlane && rxlane fastpath status --json >/dev/null 2>&1; then ask rxlane fastpath status --json; fi
}

# --- FreeBSD and NetBSD ---------------------------------------------------------------------------------------

bsd_all() { for name in $(ifconfig -l); do printf '%s\n' "$name"; done; }

bsd_exists() { ifconfig "$1" >/dev/null 2>&1; }

bsd_below() { ifconfig "$1" 2>/dev/null | sed -n 's/.*parent\( interface\)\{0,1\}: \([^ ]*\).*/\2/p'; }

# date counts whole seconds: the beginning of one is waited for, so that the time between samples is right.
bsd_now() {
    begun=$(date +%s)
    while now=$(date +%s) && [ "$now" = "$begun" ]; do sleep 0.05 2>/dev/null || :; done
    printf '%s\n' "$now"
}

# igb0 is unit 0 of driver igb: dev.igb.0. A renamed interface is found by its device in pciconf's list.
freebsd_trees() {
    {
        for interface in $interfaces; do printf '%s\n' "$interface"; done
        if [ -z "$requested" ]; then pciconf -l 2>/dev/null | sed -n '/class=0x0200/s/@.*//p'; fi
    } | sed -n 's/^\([A-Za-z][A-Za-z0-9]*[A-Za-z]\)\([0-9]\{1,\}\)$/dev.\1.\2/p' | sort -u | while read -r tree; do
        if sysctl -n "$tree.%driver" >/dev/null 2>&1; then printf '%s\n' "$tree"; fi
    done
}

freebsd_vectors() {
    vmstat -i 2>/dev/null | for_vectors
}
for_vectors() {
    while read -r vector name rest; do
        for interface in $interfaces; do
            case $vector$name in
                irq*:"$interface" | irq*:"$interface":*) vector=${vector%:}; printf '%s\n' "${vector#irq}" ;;
            esac
        done
    done
}

freebsd_settings() {
    ask sysctl hw.ncpu hw.model
    ask sysctl net.isr
    ask sysctl net.inet.ip.intr_queue_maxlen net.inet.ip.forwarding net.route.netisr_maxqlen
    keep ifconfig_lines ifconfig -a
    keep ethernet_devices pciconf -lv
    if has cpuset; then
        for vector in $(freebsd_vectors); do ask cpuset -g -x "$vector"; done
    fi
    log_names=$(ifconfig -l 2>/dev/null)
    keep log_lines dmesg
}

freebsd_counters() {
    ask vmstat -i
    ask netstat -Q
    keep link_lines netstat -i -b -d -n -W
    ask sysctl kern.cp_times
    ask sysctl net.inet.ip.intr_queue_drops
    for tree in $trees; do ask sysctl "$tree"; done
}

# One display knows no percentages yet; -u prints numbers for names of people.
freebsd_processes() {
    keep ppp_lines ps -axo pid,pcpu,comm
    keep top_rows top -b -S -H -I -P -u -d 2 -s 1 40
}

netbsd_settings() {
    ask sysctl hw.ncpu hw.model
    ask sysctl net.inet.ip.forwarding
    keep ifconfig_lines ifconfig -a
    log_names=$(ifconfig -l 2>/dev/null)
    keep log_lines dmesg
}

# Event counters of the drivers: the interfaces' own.
event_lines() {
    awk -v names="$interfaces" 'BEGIN { n = split(names, name, " ") }
    NR == 1 { print; next }
    { for (i = 1; i <= n; i++) if (index($1, name[i]) == 1) { print; next } }'
}

netbsd_counters() {
    ask vmstat -i
    if has intrctl; then ask intrctl list; fi
    keep event_lines vmstat -e
    # With -b it prints bytes in place of packets.
    keep link_lines netstat -i -d -n
    keep link_lines netstat -i -b -n
    ask netstat -q
    ask sysctl net.inet.ip.ifq
    ask sysctl net.inet6.ip6.ifq
    ask sysctl kern.cp_time
    # Interrupt mitigation of bge(4), and what other drivers report (hw.wm0).
    if sysctl hw.bge >/dev/null 2>&1; then ask sysctl hw.bge; fi
    for interface in $interfaces; do
        if sysctl "hw.$interface" >/dev/null 2>&1; then ask sysctl "hw.$interface"; fi
    done
}

netbsd_processes() {
    keep ppp_lines ps -axo pid,pcpu,comm
    keep top_rows top -b -S -u -1 -d 2 -s 1 40
}

# --- All ------------------------------------------------------------------------------------------------------

# with_below NAMES: those and, once each, what is below them.
with_below() {
    found=$1
    round=0
    while [ "$round" -lt 4 ]; do
        next=$found
        for interface in $found; do
            for below in $("${flavour}_below" "$interface"); do
                case " $next " in
                    *" $below "*) ;;
                    *) next="$next $below" ;;
                esac
            done
        done
        if [ "$next" = "$found" ]; then break; fi
        found=$next
        round=$((round + 1))
    done
    printf '%s\n' "$found"
}

header() {
    cat <<'END'
# rxlane bundle 1
# What this machine says of its network interfaces' receive path, for: rxlane doctor --from FILE
# Left out: MAC, IPv4 and IPv6 addresses, host name, keys, serial numbers, descriptions of interfaces,
# arguments and owners of processes, log lines that are not about a network interface.
# Please read it before you post it: nobody knows better what on this machine is private.
END
    system_is "$system"
    ask uname -sr
}

# Waits in short steps, so that nothing is left running long after the collector was ended.
wait_for() {
    left=$1
    while [ "$left" -gt 0 ]; do
        sleep 1
        stop_if_orphaned
        left=$((left - 1))
    done
}

sample() {
    now=$("${flavour}_now")
    printf '# sample %s at %s\n' "$1" "$now"
    "${system}_counters" "$now"
}

collect() {
    header
    "${system}_settings"
    if [ "$system" = freebsd ]; then trees=$(freebsd_trees); fi
    if [ "$system" != linux ]; then "${system}_processes"; fi
    complain 'first sample'
    sample 1
    if [ "$seconds" -gt 0 ]; then
        complain "waiting $seconds s"
        wait_for "$seconds"
        complain 'second sample'
        sample 2
    fi
    printf '# end\n'
}

seconds=3
while getopts s:h option; do
    case $option in
        s) seconds=$OPTARG ;;
        h)
            usage
            exit 0
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
done
shift $((OPTIND - 1))

case $seconds in
    '' | *[!0-9]* | ?????*)
        complain "-s $seconds: not whole seconds, 0 to 9999"
        exit 2
        ;;
esac
# To the shell's arithmetic 08 is an octal number that is none.
while :; do
    case $seconds in
        0?*) seconds=${seconds#0} ;;
        *) break ;;
    esac
done

case $(uname -s) in
    Linux) system=linux flavour=linux ;;
    FreeBSD) system=freebsd flavour=bsd ;;
    NetBSD) system=netbsd flavour=bsd ;;
    *)
        complain "$(uname -s) is not known here: Linux, FreeBSD and NetBSD are"
        exit 3
        ;;
esac

if ! has awk || ! has sed; then
    complain 'awk and sed are required: without them nothing could be redacted, and nothing is printed'
    exit 3
fi

for name in "$@"; do
    case $name in
        '' | *[!0-9A-Za-z@._-]* | .*)
            complain "$name: not the name of an interface"
            exit 2
            ;;
    esac
    if ! "${flavour}_exists" "$name"; then
        complain "there is no interface $name; there are: $("${flavour}_all" | tr '\n' ' ')"
        exit 2
    fi
done

requested=$*
trees=
if [ -n "$requested" ]; then
    interfaces=$(with_below "$requested")
else
    interfaces=
    for name in $("${flavour}_all"); do
        case $name in
            lo | lo[0-9]*) ;;
            # In a command they would be several words, or another's name; the listing of interfaces has them.
            [.-]* | *[!0-9A-Za-z.@_%+=,-]*) ;;
            *) interfaces="$interfaces $name" ;;
        esac
    done
fi
host_name=$(uname -n)

# Standard input may be this script: ssh router 'sh -s' <collector.sh.
collect </dev/null | redact
