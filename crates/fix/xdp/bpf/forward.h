/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Forwarding of packets whose flow is known: what a router does to a packet of an established connection, and nothing
 * else. Whatever this file does not know goes to the kernel, unchanged.
 *
 * A flow is looked up by all that decides what the kernel would do with its packets: the port, the tags, the PPPoE
 * session, addresses, ports and protocol. The headers before the IP packet are taken off, TTL or hop
 * limit goes down (RFC 1812 section 5.3.1, RFC 8200 section 3), addresses and ports are replaced where the kernel
 * translates them, checksums are corrected by what changed (RFC 1624), and the headers of the way out are put on.
 *
 * A frame is changed only when nothing can fail any more but its room in front, which is requested first.
 *
 * Whoever includes this file defines what stands below "Of the surroundings". Compiled for eBPF and, in tests, for the
 * machine itself.
 *
 * clang copies a structure of a frame byte by byte, since it knows no alignment there: hence LOAD and STORE of numbers.
 */
#ifndef RXLANE_FORWARD_H
#define RXLANE_FORWARD_H

#include "action.h"
#include "forward_layout.h"
#include "headers.h"
#include "types.h"

/* Of the surroundings. */
struct context;

INLINE const u8 *frame_start(struct context *context);
INLINE const u8 *frame_end(struct context *context);
INLINE u32 port_of(struct context *context);
/* Moves the start of the frame by so many bytes, to the front where they are less than 0. 0: it is moved. */
INLINE long move_start(struct context *context, int bytes);
/* Moves the end of the frame. 0: it is moved. */
INLINE long move_end(struct context *context, int bytes);
INLINE struct flow *flow_of(struct context *context, const struct key *key, int is_ipv6);
INLINE const struct next_hop *next_hop_of(struct context *context, u32 place);
INLINE const struct alive *alive_of(struct context *context);
INLINE struct limit *limit_of(struct context *context, u32 place);
/* Nanoseconds of the monotonic clock, as it was at the last tick. */
INLINE u64 now_coarse(struct context *context);
/* The frame will leave by this port. XDP_REDIRECT: there is one, and the program has to return this. */
INLINE int send_out(struct context *context, u32 port);
/*
 * The folded sum of `length` bytes from `offset` on, that length, and the pseudo header without it, `pseudo`: 0xffff where the
 * checksum is right. 0: they are more than there are.
 */
INLINE u32 transport_sum(struct context *context, u32 offset, u32 length, u32 pseudo);

/* What a frame is until its flow is known. */
struct incoming {
	const u8 *frame;
	/* Bytes before the IP header, of the IP packet, and behind it. */
	u32 header, length;
	u64 padding;
	int is_ipv6;
	/* COMPLETED, and what the checksum is to be, where the sender has left it to a device. */
	u32 completed;
};

/* The IP packet while it is read. */
struct packet {
	const u8 *start, *end;
	/* Bytes to the end of the frame, and those that it may have. In PPPoE it has all of the latter. */
	u64 readable, available;
	int is_pppoe;
};

/* Whether a frame is for the router, and from the other end of the session if it is in one. */
INLINE int is_between(const u8 *frame, const struct flow *flow, u16 session)
{
	if (session)
		return LOAD(u64, frame) == LOAD(u64, flow->stations) &&
		       LOAD(u32, frame + 8) == LOAD(u32, flow->stations + 8);
	return LOAD(u32, frame) == LOAD(u32, flow->stations) && LOAD(u16, frame + 4) == LOAD(u16, flow->stations + 4) &&
	       is_station(frame + 6);
}

/* A tag of a key. The priority does not decide where a packet goes. */
INLINE u16 tag_of(struct ethertype tpid, const u8 *tag)
{
	u16 kind = is_ethertype(tpid, ETHERTYPE_VLAN) ? TAG_VLAN : TAG_SERVICE_VLAN;

	return (LOAD(u16, tag) & BE16(0x0fff)) | kind;
}

/*
 * What only TCP says: a segment of an established connection has ACK and none of SYN, FIN and RST, with which conntrack
 * has to change its mind.
 */
INLINE enum pass tcp_of(const u8 *tcp, u32 length)
{
	u32 header = (tcp[12] >> 4) * 4, flags = tcp[13];

	if (RARE(header < TCP_LENGTH) || RARE(header > length))
		return LATE(PASS_MALFORMED);
	if (RARE((flags & 0x17) != 0x10))
		return LATE(PASS_TCP_FLAGS);
	return PASS_NO_ENTRY;
}

/* The transport header in `length` bytes. PASS_NO_ENTRY: nothing is against forwarding. */
INLINE enum pass transport_of(struct key *key, const u8 *header, const u8 *end, u32 length)
{
	if (RARE(length < UDP_LENGTH) || RARE(header + UDP_LENGTH > end))
		return LATE(PASS_MALFORMED);
	key->ports = LOAD(u32, header);
	if (key->protocol == IP_TCP.number) {
		if (RARE(header + TCP_LENGTH > end))
			return LATE(PASS_MALFORMED);
		return tcp_of(header, length);
	}
	/* More than there is, or less than a header, is an error to conntrack (udp_error); with less than there is it goes on. */
	if (RARE(FROM_BE16(LOAD(u16, header + 4)) != length))
		return LATE(PASS_MALFORMED);
	return PASS_NO_ENTRY;
}

INLINE int is_forwarded_protocol(u32 protocol)
{
	return protocol == IP_TCP.number || protocol == IP_UDP.number;
}

/* Whether the length that the IP header says is that of the packet around it. Behind it is padding, but not in PPPoE. */
INLINE enum pass length_of(struct incoming *incoming, const struct packet *packet)
{
	incoming->padding = packet->readable - incoming->length;
	if (RARE(incoming->length != packet->available)) {
		if (incoming->length > packet->available)
			return LATE(PASS_MALFORMED);
		if (packet->is_pppoe)
			return LATE(PASS_PPPOE);
	}
	return PASS_NO_ENTRY;
}

INLINE enum pass ipv4_of(struct incoming *incoming, struct key *key, const struct packet *packet)
{
	const u8 *ip = packet->start;
	enum pass pass;

	if (RARE(ip + IPV4_LENGTH + UDP_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	if (RARE(ip[0] != 0x45))
		return ip[0] > 0x45 && ip[0] <= 0x4f ? LATE(PASS_IP_OPTIONS) : LATE(PASS_MALFORMED);
	incoming->length = FROM_BE16(LOAD(u16, ip + 2));
	pass = length_of(incoming, packet);
	if (RARE(pass != PASS_NO_ENTRY))
		return pass;
	if (RARE(LOAD(u16, ip + 6) & BE16(0x3fff)))
		return LATE(PASS_FRAGMENT);
	key->protocol = ip[9];
	if (!is_forwarded_protocol(key->protocol))
		return LATE(PASS_OTHER_PROTOCOL);
	if (RARE(ip[8] < 2))
		return LATE(PASS_TTL);
	if (RARE(incoming->length < IPV4_LENGTH + UDP_LENGTH) || RARE(sum_of_ipv4_header(ip) != 0xffff))
		return LATE(PASS_MALFORMED);
	key->addresses[0] = LOAD(u64, ip + 12);
	return transport_of(key, ip + IPV4_LENGTH, packet->end, incoming->length - IPV4_LENGTH);
}

INLINE enum pass ipv6_of(struct incoming *incoming, struct key *key, const struct packet *packet)
{
	const u8 *ip = packet->start;
	enum pass pass;

	if (RARE(ip + IPV6_LENGTH > packet->end) || RARE((ip[0] & 0xf0) != 0x60))
		return LATE(PASS_MALFORMED);
	incoming->length = FROM_BE16(LOAD(u16, ip + 4)) + IPV6_LENGTH;
	pass = length_of(incoming, packet);
	if (RARE(pass != PASS_NO_ENTRY))
		return pass;
	key->protocol = ip[6];
	if (!is_forwarded_protocol(key->protocol))
		return LATE(PASS_OTHER_PROTOCOL);
	if (RARE(ip[7] < 2))
		return LATE(PASS_TTL);
	for (int part = 0; part < 4; part++)
		key->addresses[part] = LOAD(u64, ip + 8 + 8 * part);
	return transport_of(key, ip + IPV6_LENGTH, packet->end, incoming->length - IPV6_LENGTH);
}

/* A PPPoE session packet (RFC 2516 section 4), with IP in no more bytes than its length says. */
INLINE enum pass pppoe_of(struct packet *packet, struct ethertype *type, u16 *session)
{
	const u8 *pppoe = packet->start;
	struct ppp_protocol protocol;
	u64 length;

	if (RARE(pppoe + PPPOE_LENGTH + PPP_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	length = FROM_BE16(LOAD(u16, pppoe + 4));
	/* No session has the id 0 (RFC 2516 section 4), which the key of a packet without PPPoE has. */
	if (RARE(LOAD(u16, pppoe) != BE16(0x1100)) || RARE(!LOAD(u16, pppoe + 2)) || RARE(length < PPP_LENGTH) ||
	    RARE(length > packet->available - PPPOE_LENGTH))
		return LATE(PASS_PPPOE);
	protocol = load_ppp_protocol(pppoe + PPPOE_LENGTH);
	if (is_ppp_protocol(protocol, PPP_IPV4))
		*type = ETHERTYPE_IPV4;
	else if (is_ppp_protocol(protocol, PPP_IPV6))
		*type = ETHERTYPE_IPV6;
	else
		return LATE(PASS_CONTROL);
	*session = LOAD(u16, pppoe + 2);
	packet->start += PPPOE_LENGTH + PPP_LENGTH;
	packet->readable -= PPPOE_LENGTH + PPP_LENGTH;
	packet->available = length - PPP_LENGTH;
	packet->is_pppoe = 1;
	return PASS_NO_ENTRY;
}

/* Reads a frame as far as its flow goes. Of IPv4 `key` ends early. */
INLINE enum pass incoming_of(struct context *context, struct incoming *incoming, struct key *key)
{
	const u8 *frame = frame_start(context), *header = frame + ETHERNET_LENGTH;
	struct packet packet = { .end = frame_end(context) };
	struct ethertype type;
	u16 outer = 0, inner = 0, session = 0;
	enum pass pass;

	/* With room for two tags: the least frame of Ethernet has it. */
	if (RARE(header + 2 * TAG_LENGTH > packet.end))
		return LATE(PASS_MALFORMED);
	type = load_ethertype(header - 2);
	if (is_known_tag(type)) {
		outer = tag_of(type, header);
		type = load_ethertype(header + 2);
		header += TAG_LENGTH;
		if (is_known_tag(type)) {
			inner = tag_of(type, header);
			type = load_ethertype(header + 2);
			header += TAG_LENGTH;
		}
	}
	incoming->frame = frame;
	packet.start = header;
	packet.readable = packet.available = packet.end - header;
	if (is_ethertype(type, ETHERTYPE_PPPOE_SESSION)) {
		pass = pppoe_of(&packet, &type, &session);
		if (RARE(pass != PASS_NO_ENTRY))
			return pass;
	}
	incoming->header = packet.start - frame;
	key->port = port_of(context);
	key->outer = outer;
	key->inner = inner;
	key->session = session;
	if (is_ethertype(type, ETHERTYPE_IPV4))
		return ipv4_of(incoming, key, &packet);
	if (is_ethertype(type, ETHERTYPE_IPV6)) {
		incoming->is_ipv6 = 1;
		return ipv6_of(incoming, key, &packet);
	}
	return is_ethertype(type, ETHERTYPE_PPPOE_DISCOVERY) ? LATE(PASS_CONTROL) : LATE(PASS_NOT_IP);
}

/* The sum of the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1) without the length. */
INLINE u32 pseudo_sum(const struct key *key, int is_ipv6)
{
	u64 sum = BE16(key->protocol);

	for (int part = 0; part < (is_ipv6 ? 4 : 1); part++)
		sum += (key->addresses[part] & 0xffffffff) + (key->addresses[part] >> 32);
	return fold(sum);
}

#define COMPLETED 0x10000

/*
 * Whether the checksum of TCP or UDP is right, or left to a device: a sender on this machine has then put the sum of the
 * pseudo header there (CHECKSUM_PARTIAL, include/linux/skbuff.h), and the rest is to be added to it.
 */
INLINE int is_intact(struct context *context, struct incoming *incoming, const struct key *key)
{
	u32 header = incoming->is_ipv6 ? IPV6_LENGTH : IPV4_LENGTH, length = incoming->length - header;
	u32 pseudo = pseudo_sum(key, incoming->is_ipv6), sum;
	const u8 *transport = frame_start(context) + ((incoming->header + header) & 127);
	u16 checksum;

	if (key->protocol == IP_TCP.number) {
		if (RARE(transport + TCP_LENGTH > frame_end(context)))
			return 0;
		checksum = LOAD(u16, transport + 16);
	} else {
		if (RARE(transport + UDP_LENGTH > frame_end(context)))
			return 0;
		checksum = LOAD(u16, transport + 6);
		/* There is none (RFC 768). */
		if (!checksum)
			return 1;
	}
	sum = transport_sum(context, incoming->header + header, length, pseudo);
	if (sum == 0xffff)
		return 1;
	if (!sum || checksum != fold((u64)pseudo + BE16(length)))
		return 0;
	incoming->completed = COMPLETED | (u16)~fold((u64)sum + (u16)~checksum);
	return 1;
}

/*
 * Puts a checksum there. Zero is written as 0xffff, of TCP too, as a device does and the kernel in its place
 * (skb_checksum_help). 0: what was read before is not there any more.
 */
INLINE int complete(u8 *transport, const u8 *end, u32 protocol, u16 checksum)
{
	if (!checksum)
		checksum = 0xffff;
	if (protocol == IP_TCP.number) {
		if (RARE(transport + TCP_LENGTH > end))
			return 0;
		STORE(u16, transport + 16, checksum);
	} else {
		if (RARE(transport + UDP_LENGTH > end))
			return 0;
		STORE(u16, transport + 6, checksum);
	}
	return 1;
}

/*
 * Whether the bucket of a limit has so many bytes at this time: the time at which it will be full again goes up by what
 * they take, and may be no more than the burst ahead. Another CPU that comes first is waited for once, then forgiven.
 */
INLINE int is_within(struct limit *limit, u32 bytes, u64 now)
{
	u64 cost = (u64)bytes * limit->ns_per_byte_16 >> 16;

	for (int attempt = 0; attempt < 2; attempt++) {
		u64 full = READ_ONCE(limit->full_ns), start = full > now ? full : now;

		if (start > now + limit->burst_ns)
			return 0;
		if (__sync_val_compare_and_swap(&limit->full_ns, full, start + cost) == full)
			break;
	}
	return 1;
}

/*
 * Replaces addresses and ports, with the checksum. A UDP checksum of 0 says that there is none (RFC 768), and one that was
 * completed is never 0. 0: what was read before is not there any more.
 */
INLINE int translate(u8 *ip, const u8 *end, const struct flow *flow, u32 protocol, u32 completed)
{
	u8 *transport = ip + IPV4_LENGTH;
	u16 checksum;

	if (protocol == IP_TCP.number) {
		if (RARE(transport + TCP_LENGTH > end))
			return 0;
		checksum = corrected(LOAD(u16, transport + 16), flow->transport_delta);
		if (RARE(completed) && !checksum)
			checksum = 0xffff;
		STORE(u16, transport + 16, checksum);
	} else {
		checksum = LOAD(u16, transport + 6);
		if (checksum) {
			checksum = corrected(checksum, flow->transport_delta);
			STORE(u16, transport + 6, checksum ? checksum : 0xffff);
		}
	}
	STORE(u64, ip + 12, flow->addresses);
	STORE(u32, transport, flow->ports);
	return 1;
}

/*
 * The headers of the way out before an IP packet of `length` bytes. `last` are the four bytes of them before that packet:
 * what verifiers follow is a place with a number of bytes behind it, and none before it.
 */
INLINE void put_header(u8 *frame, u8 *last, const struct next_hop *next, u32 length, int is_ipv6)
{
	STORE(u64, frame, LOAD(u64, next->header));
	STORE(u32, frame + 8, LOAD(u32, next->header + 8));
	STORE(u16, frame + 12, LOAD(u16, next->header + 12));
	if (next->length >= 18)
		STORE(u32, frame + 14, LOAD(u32, next->header + 14));
	if (next->length >= 22)
		STORE(u64, frame + 14, LOAD(u64, next->header + 14));
	if (next->length >= 26)
		STORE(u32, frame + 22, LOAD(u32, next->header + 22));
	if (next->length >= 30)
		STORE(u64, frame + 22, LOAD(u64, next->header + 22));
	if (next->is_pppoe) {
		STORE(u16, last, BE16(length + PPP_LENGTH));
		STORE(u16, last + 2, is_ipv6 ? PPP_IPV6.be : PPP_IPV4.be);
	} else {
		STORE(u16, last + 2, is_ipv6 ? ETHERTYPE_IPV6.be : ETHERTYPE_IPV4.be);
	}
}

/* The packet as it leaves, its frame with room for the headers in front. 0: what was read before is not there any more. */
INLINE int rewrite(struct context *context, const struct incoming *incoming, const struct flow *flow,
		   const struct next_hop *next, u32 protocol)
{
	u8 *frame = (u8 *)frame_start(context), *end = (u8 *)frame_end(context), *last, *ip;

	last = frame + ((next->length - 4) & 31);
	ip = last + 4;
	if (RARE(ip + IPV4_LENGTH + UDP_LENGTH > end) || RARE(frame + NEXT_HEADER_MOST > end))
		return 0;
	if (incoming->is_ipv6) {
		ip[7]--;
		if (RARE(incoming->completed) && RARE(!complete(ip + IPV6_LENGTH, end, protocol, incoming->completed)))
			return 0;
	} else {
		ip[8]--;
		if (RARE(incoming->completed) && RARE(!complete(ip + IPV4_LENGTH, end, protocol, incoming->completed)))
			return 0;
		/* What TTL and addresses change together. */
		STORE(u16, ip + 10, corrected(LOAD(u16, ip + 10), flow->ip_delta));
		if (flow->flags & FLOW_TRANSLATED && RARE(!translate(ip, end, flow, protocol, incoming->completed)))
			return 0;
	}
	put_header(frame, last, next, incoming->length, incoming->is_ipv6);
	return 1;
}

INLINE u16 pause_unit(u64 now)
{
	return now >> PAUSE_SHIFT ?: 1;
}

/*
 * SYN, FIN or RST of a flow: the kernel may see another connection begin with the same addresses and ports before the daemon
 * hears that the former has ended, and has to see all of its packets.
 */
INLINE void pause(struct context *context, const struct incoming *incoming, const struct key *key)
{
	struct flow *flow = flow_of(context, key, incoming->is_ipv6);

	if (flow)
		flow->paused = pause_unit(now_coarse(context));
}

/* A flow is known: whether it is still true, and whether its packet may leave. PASS_NO_ENTRY: it may. */
INLINE enum pass is_allowed(struct context *context, const struct incoming *incoming, const struct key *key,
			    const struct flow *flow, const struct next_hop *next, u64 now)
{
	const struct alive *alive = alive_of(context);

	if (RARE(now > READ_ONCE(alive->heartbeat_ns) + HEARTBEAT_MOST_NS))
		return LATE(PASS_DAEMON_SILENT);
	if (RARE(flow->generation != READ_ONCE(alive->generation)))
		return LATE(PASS_STALE);
	if (RARE(flow->paused) && (u16)(pause_unit(now) - flow->paused) < PAUSE_UNITS)
		return LATE(PASS_STALE);
	if (RARE(!is_between(incoming->frame, flow, key->session)))
		return LATE(PASS_NOT_ADDRESSED);
	if (RARE(!next->length))
		return LATE(PASS_NO_NEXT_HOP);
	if (RARE(incoming->length > next->largest))
		return LATE(PASS_TOO_LONG);
	return PASS_NO_ENTRY;
}

INLINE int forward(struct context *context, struct forward_counts *counts)
{
	struct incoming incoming = {};
	struct key key;
	enum pass pass = incoming_of(context, &incoming, &key);
	const struct next_hop *next;
	struct flow *flow;
	u64 now;

	if (pass != PASS_NO_ENTRY) {
		if (RARE(pass == PASS_TCP_FLAGS))
			pause(context, &incoming, &key);
		goto pass;
	}
	flow = flow_of(context, &key, incoming.is_ipv6);
	if (!flow)
		goto pass;
	now = now_coarse(context);
	next = next_hop_of(context, flow->next_hop);
	if (RARE(!next)) {
		pass = LATE(PASS_NO_NEXT_HOP);
		goto pass;
	}
	pass = is_allowed(context, &incoming, &key, flow, next, now);
	if (RARE(pass != PASS_NO_ENTRY))
		goto pass;
	if (RARE(flow->flags & FLOW_VERIFIED) && !is_intact(context, &incoming, &key)) {
		pass = LATE(PASS_CHECKSUM);
		goto pass;
	}
	if (RARE(send_out(context, next->port) != XDP_REDIRECT)) {
		pass = LATE(PASS_NO_NEXT_HOP);
		goto pass;
	}
	if (RARE(flow->limit)) {
		struct limit *limit = limit_of(context, flow->limit);

		if (limit && !is_within(limit, incoming.length, now)) {
			counts->limited++;
			return XDP_DROP;
		}
	}
	if (RARE(move_start(context, (int)incoming.header - (int)next->length))) {
		pass = LATE(PASS_NO_ROOM);
		goto pass;
	}
	if (RARE(incoming.padding) && RARE(move_end(context, -(int)incoming.padding)))
		return XDP_ABORTED;
	if (RARE(!rewrite(context, &incoming, flow, next, key.protocol)))
		return XDP_ABORTED;
	flow->used_ns = now;
	__sync_fetch_and_add(&flow->packets, 1);
	__sync_fetch_and_add(&flow->bytes, incoming.length);
	counts->fast++;
	counts->fast_bytes += incoming.length;
	return XDP_REDIRECT;

pass:
	counts->passed[pass & (PASS_PLACES - 1)]++;
	return XDP_PASS;
}

#endif
