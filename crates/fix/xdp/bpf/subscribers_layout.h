/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Maps of a concentrator. `../src/subscribers_layout.rs` says the same in Rust, with the meaning of every field. */
#ifndef RXLANE_SUBSCRIBERS_LAYOUT_H
#define RXLANE_SUBSCRIBERS_LAYOUT_H

#include "types.h"

#define PASS_PLACES 32
#define UPLINKS_MOST 8
/* Lengths of prefixes that are looked up, of each IP version. */
#define LENGTHS_MOST 6
/* Places of the index of IPv4 that are looked at for a prefix. */
#define PROBES_MOST 32
/* A daemon that has not been heard of for longer is taken for dead. */
#define SUBSCRIBERS_HEARTBEAT_MOST_NS 10000000000ULL

/* Why a frame was left to the daemon and the kernel. */
enum pass {
	PASS_NONE,
	PASS_DAEMON_SILENT,
	PASS_NOT_ADDRESSED,
	PASS_CONTROL,
	PASS_NOT_IP,
	PASS_TAGS,
	PASS_MALFORMED,
	PASS_IP_OPTIONS,
	PASS_TTL,
	PASS_NO_SESSION,
	PASS_SYN,
	PASS_CHECKSUM,
	PASS_TOO_LONG,
	PASS_ROUTE,
	PASS_NO_NEIGHBOUR,
	PASS_NO_ROOM,
};

/* From subscribers, and to them. */
enum way {
	FROM_SUBSCRIBERS,
	TO_SUBSCRIBERS,
	WAYS,
};

/* In `state`: 24 bits of sequence, odd while the line is written; 8 of flags; 16 of MTU; 16 of generation. */
#define STATE_IS_WRITTEN 1
#define STATE_IS_THERE (1 << 24)
#define STATE_HAS_CLAMP (1 << 25)
#define STATE_IS_LIMITED (1 << 26)
#define STATE_MTU_SHIFT 32
#define STATE_GENERATION_SHIFT 48

/* Tags in 16 bits each, the outermost in the highest: a number for the TPID in three, and the VID in twelve. */
#define TPID_VLAN 1
#define TPID_SERVICE_VLAN 2

/* How much may pass one way: ticks of a byte, and when all that has passed would have at the rate. */
struct bucket_of_session {
	u64 byte;
	u64 due;
};

/* A session: two cache lines, of which the second is of those with a rate. The daemon writes and reads the same memory. */
struct session {
	u64 state;
	u64 vlans;
	/* MAC address in the upper 48 bits, session id in the lower 16, as numbers. */
	u64 station;
	u64 identifier;
	struct {
		u64 frames, bytes;
	} counts[WAYS];
	struct bucket_of_session buckets[WAYS];
	u64 dropped[WAYS];
	u64 spare[2];
};

/* Whose an address of IPv6 is. */
struct owner {
	u32 place;
	u32 generation;
};

/*
 * In an entry of the index of IPv4, from the lowest bit: place of the session (20), a part of its generation (6), length of the
 * prefix and one (6), address. 0: no entry.
 */
#define ENTRY_PLACE_BITS 20
#define ENTRY_GENERATION_BITS 6
#define ENTRY_OWNER_BITS (ENTRY_PLACE_BITS + ENTRY_GENERATION_BITS)

struct prefix6 {
	u64 address[2];
	u64 length;
};

struct port {
	u8 station[6];
	/* Whether frames come from another network stack of this machine, which leaves checksums to a device that this is not (veth). */
	u8 is_virtual;
	u8 spare;
	u64 interface;
};

/* What the daemon says; it writes words of 64 bits while the programs run. */
struct control {
	u64 heartbeat_ns;
	/* Lengths of prefixes that there are, the longest in the lowest byte, each and one; 0: no more. */
	u64 lengths4, lengths6;
	/* Of hashes in the index of IPv4, which has so many places and one. */
	u64 seed[2];
	u64 mask;
	/* The interface of all subscribers. */
	u64 interface;
	/* Bytes of the longest frame that the interface with the lines sends. */
	u64 longest;
	struct port lines;
	struct port uplinks[UPLINKS_MOST];
};

struct subscriber_counts {
	u64 frames, bytes;
	u64 limited;
	u64 passed[PASS_PLACES];
};

#endif
