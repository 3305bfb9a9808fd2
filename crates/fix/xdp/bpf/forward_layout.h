/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Maps of forwarding. `src/forward_layout.rs` says the same in Rust, with the meaning of every field. */
#ifndef RXLANE_FORWARD_LAYOUT_H
#define RXLANE_FORWARD_LAYOUT_H

#include "types.h"

/* Bytes of headers before an IP packet: MAC addresses and EtherType, two tags, PPPoE with PPP. */
#define NEXT_HEADER_MOST 30
#define PASS_PLACES 32
#define PORTS_MOST 64
#define LIMITS 4
/* A daemon that has not been heard of for longer is taken for dead. */
#define HEARTBEAT_MOST_NS 2000000000ULL

/*
 * For how long a packet that changes the state of its connection leaves the others of its direction to the kernel: by then the
 * daemon has heard of the change, or is silent.
 */
#define PAUSE_SHIFT 30
#define PAUSE_UNITS 3

enum pass {
	PASS_NO_ENTRY,
	PASS_STALE,
	PASS_DAEMON_SILENT,
	PASS_NOT_ADDRESSED,
	PASS_NO_NEXT_HOP,
	PASS_TOO_LONG,
	PASS_FRAGMENT,
	PASS_IP_OPTIONS,
	PASS_OTHER_PROTOCOL,
	PASS_TTL,
	PASS_TCP_FLAGS,
	PASS_CONTROL,
	PASS_PPPOE,
	PASS_NOT_IP,
	PASS_MALFORMED,
	PASS_CHECKSUM,
	PASS_NO_ROOM,
};

#define FLOW_TRANSLATED 1
#define FLOW_VERIFIED 2

/* As a frame has it, but for the port and the protocol. */
struct key {
	u32 port;
	/* The VID, with TAG_VLAN or TAG_SERVICE_VLAN in place of the priority; 0: no tag. */
	u16 outer, inner;
	u16 session;
	u16 protocol;
	u32 ports;
	/* Source, then destination: two numbers each of IPv6, one half each of IPv4, whose keys end there. */
	u64 addresses[4];
};

#define TAG_VLAN BE16(0x1000)
#define TAG_SERVICE_VLAN BE16(0x2000)

#define KEY_IPV4_LENGTH (sizeof(struct key) - 3 * sizeof(u64))

/* For the type of a map; the same as the beginning of a key. */
struct key_ipv4 {
	u8 bytes[KEY_IPV4_LENGTH];
};

struct flow {
	u64 packets, bytes;
	u64 used_ns;
	u32 next_hop;
	u32 generation;
	/* MAC addresses as they stand in a frame: the router's, and that of the session's other end. */
	u8 stations[12];
	u8 flags;
	u8 limit;
	/* When a packet has paused it, in units of 2^PAUSE_SHIFT ns, never 0; 0: none has. */
	u16 paused;
	/* Source, then destination. */
	u64 addresses;
	u32 ports;
	u16 ip_delta, transport_delta;
};

struct next_hop {
	u32 port;
	u16 largest;
	u8 length;
	u8 is_pppoe;
	u8 header[NEXT_HEADER_MOST + 2] __attribute__((aligned(8)));
};

/*
 * A way out is never changed while a packet may be reading it: the other one is written, and then the number of the one
 * that counts.
 */
struct next_hops {
	u32 current;
	u32 spare;
	struct next_hop both[2];
};

struct alive {
	u64 heartbeat_ns;
	u32 generation;
	u32 spare;
};

struct limit {
	u64 full_ns;
	u64 ns_per_byte_16;
	u64 burst_ns;
};

struct forward_counts {
	u64 fast, fast_bytes;
	u64 limited;
	u64 passed[PASS_PLACES];
};

#endif
