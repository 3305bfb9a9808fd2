// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Run for a concentrator: `from_lines` on the interface with the lines of its subscribers, `from_uplink` on every interface
 * to the rest of the world. What they do to a packet is in subscribers.h.
 */
#include "subscribers.h"

const volatile u32 FIRST_ENTRY = 0;

MAP_WITH_FLAGS(SESSIONS, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 1, u32, struct session);
MAP_WITH_FLAGS(CONTROL, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 1, u32, struct control);
MAP_WITH_FLAGS(INDEX_IPV4, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 1, u32, u64);
MAP_WITHOUT_MEMORY(OWNERS_IPV6, BPF_MAP_TYPE_HASH, 1, struct prefix6, struct owner);
MAP(LINES, BPF_MAP_TYPE_DEVMAP, 1, u32, u32);
MAP(UPLINKS, BPF_MAP_TYPE_DEVMAP_HASH, UPLINKS_MOST, u32, u32);
MAP(FORWARDED_WAYS, BPF_MAP_TYPE_PERCPU_ARRAY, WAYS, u32, struct subscriber_counts);

/*
 * The entry of a prefix in the daemon's index of IPv4, 0 where there is none: an open table with linear probing, at most half full.
 * An entry that moves at this moment may be missed.
 */
static __attribute__((noinline)) u64 entry_of_ipv4(const struct control *control, u32 address, u32 length)
{
	u64 key = (u64)address << (32 - ENTRY_OWNER_BITS) | (length + 1);
	u32 place = hash_of_ipv4(control, address, length), mask = READ_ONCE(control->mask);

#pragma clang loop unroll(full)
	for (int probe = 0; probe < PROBES_MOST; probe++) {
		const u64 *entry;
		u64 found;

		place &= mask;
		entry = bpf_map_lookup_elem(&INDEX_IPV4, &place);
		if (!entry)
			break;
		found = READ_ONCE(*entry);
		if (!found)
			break;
		if (found >> ENTRY_OWNER_BITS == key)
			return found;
		place++;
	}
	return 0;
}

/* The longest prefix counts. */
INLINE u64 owner_of_ipv4(const struct control *control, u32 address)
{
	u64 lengths = READ_ONCE(control->lengths4), entry = 0;

	address = SWAP32(address);
#pragma clang loop unroll(full)
	for (int one = 0; one < LENGTHS_MOST; one++) {
		u32 length = (lengths & 0xff) - 1;

		if (!(lengths & 0xff))
			break;
		entry = entry_of_ipv4(control, address & mask(length + 32), length);
		if (entry)
			break;
		lengths >>= 8;
	}
	return entry;
}

/* The session that has an address: the source, or the destination. */
INLINE struct session *session_of(const struct control *control, const struct bpf_fib_lookup *fib, int is_ipv6,
				  enum way way, struct seen *seen)
{
	struct session *session;
	u32 place, generation, bits;

	if (is_ipv6) {
		const u64 *address = way == FROM_SUBSCRIBERS ? fib->ipv6_src : fib->ipv6_dst;
		const struct owner *owner = owner_of_ipv6(&OWNERS_IPV6, READ_ONCE(control->lengths6), address);

		if (!owner)
			return 0;
		place = owner->place;
		generation = owner->generation;
		bits = 0xffff;
	} else {
		u64 entry = owner_of_ipv4(control, way == FROM_SUBSCRIBERS ? fib->ipv4_src : fib->ipv4_dst);

		if (!entry)
			return 0;
		place = entry & ((1 << ENTRY_PLACE_BITS) - 1);
		bits = (1 << ENTRY_GENERATION_BITS) - 1;
		generation = entry >> ENTRY_PLACE_BITS & bits;
	}
	session = bpf_map_lookup_elem(&SESSIONS, &place);
	return session && see(session, generation, bits, seen) ? session : 0;
}

/* Whether the rate of a session lets a packet pass; one that it does not is counted as dropped. */
INLINE int passes_rate(struct session *session, const struct seen *seen, enum way way, u32 length)
{
	if (!(seen->state & STATE_IS_LIMITED) || is_within(&session->buckets[way], length))
		return 1;
	__sync_fetch_and_add(&session->dropped[way], 1);
	return 0;
}

INLINE void count(struct session *session, struct subscriber_counts *counts, enum way way, u32 bytes)
{
	__sync_fetch_and_add(&session->counts[way].frames, 1);
	__sync_fetch_and_add(&session->counts[way].bytes, bytes);
	counts->frames++;
	counts->bytes += bytes;
}

SECTION("xdp")
int from_lines(struct xdp_md *ctx)
{
	u32 way = FROM_SUBSCRIBERS;
	struct subscriber_counts *counts = bpf_map_lookup_elem(&FORWARDED_WAYS, &way);
	const struct control *control = bpf_map_lookup_elem(&CONTROL, (const u32 *)&FIRST_ENTRY);
	struct bpf_fib_lookup fib = {};
	struct packet packet = {};
	struct session *session;
	struct seen seen;
	enum pass pass;
	long route;
	u8 *frame;

	if (!counts || !control)
		return XDP_PASS;
	pass = frame_of_line(ctx, &control->lines, &packet, &fib);
	if (RARE(pass != PASS_NONE))
		goto pass;
	pass = LATE(PASS_DAEMON_SILENT);
	if (RARE(is_silent(control)))
		goto pass;
	pass = LATE(PASS_NO_SESSION);
	session = session_of(control, &fib, packet.is_ipv6, FROM_SUBSCRIBERS, &seen);
	if (RARE(!session) || RARE(seen.station != packet.station) || RARE(seen.vlans != packet.vlans))
		goto pass;
	pass = LATE(PASS_SYN);
	if (RARE(packet.is_syn) && seen.state & STATE_HAS_CLAMP)
		goto pass;
	fib.ifindex = READ_ONCE(control->interface);
	fib.tot_len = packet.length;
	route = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	if (RARE(route != FIB_SUCCESS)) {
		pass = route == FIB_TOO_LONG ? LATE(PASS_TOO_LONG) : LATE(PASS_ROUTE);
		/* Nobody has to be found on the interface of the subscribers, where others of them are. */
		if (route == FIB_NO_NEIGHBOUR && fib.ifindex != READ_ONCE(control->interface))
			pass = LATE(PASS_NO_NEIGHBOUR);
		goto pass;
	}
	pass = LATE(PASS_ROUTE);
	if (RARE(bpf_redirect_map(&UPLINKS, fib.ifindex, XDP_PASS) != XDP_REDIRECT))
		goto pass;
	if (RARE(!passes_rate(session, &seen, FROM_SUBSCRIBERS, packet.length))) {
		counts->limited++;
		return XDP_DROP;
	}
	if (RARE(bpf_xdp_adjust_head(ctx, (int)packet.before - ETHERNET_LENGTH)))
		return XDP_ABORTED;
	if (RARE(packet.behind) && RARE(bpf_xdp_adjust_tail(ctx, -(int)packet.behind)))
		return XDP_ABORTED;
	frame = (u8 *)(long)ctx->data;
	if (RARE(frame + ETHERNET_LENGTH + IPV4_LENGTH > (u8 *)(long)ctx->data_end))
		return XDP_ABORTED;
	/* The stack takes no word from an odd place. */
	for (int part = 0; part < 6; part += 2) {
		STORE(u16, frame + part, LOAD(u16, fib.dmac + part));
		STORE(u16, frame + 6 + part, LOAD(u16, fib.smac + part));
	}
	STORE(u16, frame + 12, packet.is_ipv6 ? ETHERTYPE_IPV6.be : ETHERTYPE_IPV4.be);
	age(frame + ETHERNET_LENGTH, packet.is_ipv6);
	count(session, counts, FROM_SUBSCRIBERS, packet.before + packet.length);
	return XDP_REDIRECT;

pass:
	counts->passed[pass & (PASS_PLACES - 1)]++;
	return XDP_PASS;
}

/* The uplink by which a frame arrived. */
INLINE const struct port *uplink_of(struct xdp_md *ctx, const struct control *control)
{
	u32 interface = ctx->ingress_ifindex;

#pragma clang loop unroll(full)
	for (int place = 0; place < UPLINKS_MOST; place++) {
		if (READ_ONCE(control->uplinks[place].interface) == interface)
			return &control->uplinks[place];
	}
	return 0;
}

SECTION("xdp")
int from_uplink(struct xdp_md *ctx)
{
	u32 way = TO_SUBSCRIBERS, tags = 0;
	struct subscriber_counts *counts = bpf_map_lookup_elem(&FORWARDED_WAYS, &way);
	const struct control *control = bpf_map_lookup_elem(&CONTROL, (const u32 *)&FIRST_ENTRY);
	struct bpf_fib_lookup fib = {};
	struct packet packet = {};
	const struct port *uplink;
	struct session *session;
	struct seen seen;
	enum pass pass;
	long route;
	u8 *frame, *last;

	if (!counts || !control)
		return XDP_PASS;
	pass = LATE(PASS_NOT_ADDRESSED);
	uplink = uplink_of(ctx, control);
	if (RARE(!uplink))
		goto pass;
	pass = frame_of_uplink(ctx, uplink, &packet, &fib);
	if (RARE(pass != PASS_NONE))
		goto pass;
	pass = LATE(PASS_DAEMON_SILENT);
	if (RARE(is_silent(control)))
		goto pass;
	pass = LATE(PASS_NO_SESSION);
	session = session_of(control, &fib, packet.is_ipv6, TO_SUBSCRIBERS, &seen);
	if (RARE(!session))
		goto pass;
	pass = LATE(PASS_TAGS);
	if (RARE(!bytes_of_tags(seen.vlans, &tags)))
		goto pass;
	pass = LATE(PASS_SYN);
	if (RARE(packet.is_syn) && seen.state & STATE_HAS_CLAMP)
		goto pass;
	pass = LATE(PASS_TOO_LONG);
	if (RARE(packet.length > (seen.state >> STATE_MTU_SHIFT & 0xffff)) ||
	    RARE(packet.length + tags + ETHERNET_LENGTH + PPPOE_LENGTH + PPP_LENGTH > READ_ONCE(control->longest)))
		goto pass;
	fib.ifindex = ctx->ingress_ifindex;
	/* Not to be compared with the MTU of the interface, but with the session's. */
	fib.tot_len = 0;
	route = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	pass = LATE(PASS_ROUTE);
	/* There is nobody to be resolved on that interface. */
	if (RARE(route != FIB_SUCCESS && route != FIB_NO_NEIGHBOUR) || RARE(fib.ifindex != READ_ONCE(control->interface)))
		goto pass;
	if (RARE(bpf_redirect_map(&LINES, 0, XDP_PASS) != XDP_REDIRECT))
		goto pass;
	pass = LATE(PASS_NO_ROOM);
	if (RARE(bpf_xdp_adjust_head(ctx, -(int)(PPPOE_LENGTH + PPP_LENGTH + tags))))
		goto pass;
	if (RARE(!passes_rate(session, &seen, TO_SUBSCRIBERS, packet.length))) {
		counts->limited++;
		return XDP_DROP;
	}
	if (RARE(packet.behind) && RARE(bpf_xdp_adjust_tail(ctx, -(int)packet.behind)))
		return XDP_ABORTED;
	frame = (u8 *)(long)ctx->data;
	last = frame + ((12 + tags) & 31);
	if (RARE(frame + ETHERNET_LENGTH + 2 * TAG_LENGTH > (u8 *)(long)ctx->data_end) ||
	    RARE(last + 10 + IPV4_LENGTH > (u8 *)(long)ctx->data_end))
		return XDP_ABORTED;
	put_session(frame, last, &seen, &control->lines, packet.length, packet.is_ipv6);
	age(last + 10, packet.is_ipv6);
	count(session, counts, TO_SUBSCRIBERS, ETHERNET_LENGTH + tags + PPPOE_LENGTH + PPP_LENGTH + packet.length);
	return XDP_REDIRECT;

pass:
	counts->passed[pass & (PASS_PLACES - 1)]++;
	return XDP_PASS;
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
