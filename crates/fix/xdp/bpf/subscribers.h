/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a concentrator does to packets of its subscribers, and nothing else: whatever this file does not know goes to the
 * daemon, or to the kernel, as it is.
 *
 * The daemon's memory of sessions is a map: flags, counters and buckets here are those that its own threads use, so that a
 * packet is counted once, whoever moves it. A line is read as the daemon's threads do: what it says counts where its sequence
 * has not changed meanwhile.
 *
 * Whose a packet is its address decides, from a subscriber the source (RFC 2827), to it the destination; the session of that
 * address then has to be the one whose station, tags and id the frame has. Where a packet goes the kernel's routes decide, as
 * for a packet that arrives by the interface of the subscribers, or by the uplink.
 */
#ifndef RXLANE_SUBSCRIBERS_H
#define RXLANE_SUBSCRIBERS_H

#include "headers.h"
#include "kernel.h"
#include "subscribers_layout.h"

#ifndef __BYTE_ORDER__
#error "the byte order is not known"
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SWAP32(number) __builtin_bswap32(number)
#define SWAP64(number) __builtin_bswap64(number)
#else
#define SWAP32(number) (number)
#define SWAP64(number) (number)
#endif

/* Ticks of buckets in a nanosecond; what may pass at once: 250 ms of the rate, or so many bytes; the longest packet. */
#define TICKS 16000ULL
#define BURST (250000000ULL * TICKS)
#define LEAST_BURST 15000
#define LONGEST_PACKET 65536
/* How often a line is read that is being written, and a bucket taken from that others take from. */
#define AGAIN 4

/* A frame while it is read. */
struct packet {
	const u8 *start, *end;
	/* Bytes from there to the end of the frame, and those that the packet may have. */
	u64 readable, available;
	/* Bytes of frame before the packet, of the packet, and behind it. */
	u32 before, length, behind;
	u32 is_ipv6;
	u32 is_syn;
	/* Of TCP or UDP, as it is in the frame. */
	u32 checksum;
	/* Of a frame from a subscriber, as `struct session` has them. */
	u64 vlans, station;
};

/* What was read of a session at one moment. */
struct seen {
	u64 state, vlans, station;
};

/* The same address, loads from which come behind those that have given `number`: every processor keeps such an order. */
INLINE const struct session *behind(const struct session *session, u64 number)
{
	asm volatile("%0 &= 0" : "+r"(number));
	return (const struct session *)((const u8 *)session + number);
}

/* Whether there is the session of this generation, of which so many bits are known, and what it is. */
INLINE int see(const struct session *session, u32 generation, u32 bits, struct seen *seen)
{
#pragma clang loop unroll(full)
	for (int attempt = 0; attempt < AGAIN; attempt++) {
		u64 state = READ_ONCE(session->state);

		seen->vlans = READ_ONCE(behind(session, state)->vlans);
		seen->station = READ_ONCE(behind(session, state)->station);
		seen->state = READ_ONCE(behind(session, seen->vlans ^ seen->station)->state);
		if (USUAL(seen->state == state) && USUAL(!(state & STATE_IS_WRITTEN)))
			return state & STATE_IS_THERE && (state >> STATE_GENERATION_SHIFT & bits) == generation;
	}
	return 0;
}

/*
 * Whether the rate lets so many bytes pass, which are taken then (the daemon's `rates.rs` does the same to the same words).
 * Other CPUs that come first are waited for a few times, then forgiven.
 */
INLINE int is_within(struct bucket_of_session *bucket, u32 bytes)
{
	u64 byte = READ_ONCE(bucket->byte), burst, now;

	if (!byte)
		return 1;
	burst = byte * LEAST_BURST;
	if (burst < BURST)
		burst = BURST;
	now = bpf_ktime_get_ns() * TICKS;
#pragma clang loop unroll(full)
	for (int attempt = 0; attempt < AGAIN; attempt++) {
		u64 due = READ_ONCE(bucket->due), ahead = due - now;

		/* Nothing is farther ahead than that: what is, was due before the clock came around, or at another rate. */
		if (ahead > burst + byte * LONGEST_PACKET)
			ahead = 0;
		if (ahead > burst)
			return 0;
		if (__sync_val_compare_and_swap(&bucket->due, due, now + ahead + byte * bytes) == due)
			break;
	}
	return 1;
}

INLINE enum pass tcp_of(struct packet *packet, const u8 *tcp)
{
	if (RARE(tcp + TCP_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	packet->is_syn = tcp[13] & 2;
	packet->checksum = LOAD(u16, tcp + 16);
	return PASS_NONE;
}

/*
 * Whether a sender on this machine leaves the checksum to a device: it has put the sum of the pseudo header there
 * (CHECKSUM_PARTIAL, include/linux/skbuff.h). One packet of 65,536 looks alike, and takes the other way for nothing.
 */
INLINE int is_unfinished(u16 checksum, u32 protocol, u32 length, const struct bpf_fib_lookup *fib)
{
	u64 sum = BE16(protocol) + (u64)BE16(length);

	if (fib->family == FAMILY_IPV6) {
		for (int part = 0; part < 2; part++) {
			sum += (fib->ipv6_src[part] & 0xffffffff) + (fib->ipv6_src[part] >> 32);
			sum += (fib->ipv6_dst[part] & 0xffffffff) + (fib->ipv6_dst[part] >> 32);
		}
	} else {
		sum += (u64)fib->ipv4_src + fib->ipv4_dst;
	}
	return checksum == fold(sum);
}

/* What routes and the clamp want of the transport header, of a packet that has one: a later fragment has none. */
INLINE enum pass transport_of(struct packet *packet, const u8 *header, u32 protocol, u32 length, int is_fragment,
			      const struct port *port, struct bpf_fib_lookup *fib)
{
	enum pass pass = PASS_NONE;

	fib->l4_protocol = protocol;
	if (protocol != IP_TCP.number && protocol != IP_UDP.number)
		return PASS_NONE;
	if (RARE(length < UDP_LENGTH) || RARE(header + UDP_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	fib->sport = LOAD(u16, header);
	fib->dport = LOAD(u16, header + 2);
	packet->checksum = LOAD(u16, header + 6);
	if (protocol == IP_TCP.number)
		pass = tcp_of(packet, header);
	if (RARE(pass != PASS_NONE))
		return pass;
	if (READ_ONCE(port->is_virtual) && !is_fragment && RARE(is_unfinished(packet->checksum, protocol, length, fib)))
		return LATE(PASS_CHECKSUM);
	return PASS_NONE;
}

/*
 * Whether a router may forward packets with an address of IPv4 that begins so: no group, nor one that is good on a host alone, of
 * which a look-up of routes says nothing (ip_route_input_slow() in net/ipv4/route.c).
 */
INLINE int is_forwarded(u8 first)
{
	return first && first != 127 && first < 224;
}

INLINE enum pass ipv4_of(struct packet *packet, const struct port *port, struct bpf_fib_lookup *fib)
{
	const u8 *ip = packet->start;
	u16 fragment;

	if (RARE(ip + IPV4_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	if (RARE(ip[0] != 0x45))
		return ip[0] > 0x45 && ip[0] <= 0x4f ? LATE(PASS_IP_OPTIONS) : LATE(PASS_MALFORMED);
	packet->length = load_be16(ip + 2);
	if (RARE(packet->length > packet->available) || RARE(packet->length < IPV4_LENGTH) ||
	    RARE(sum_of_ipv4_header(ip) != 0xffff))
		return LATE(PASS_MALFORMED);
	if (RARE(ip[8] < 2))
		return LATE(PASS_TTL);
	fib->family = FAMILY_IPV4;
	fib->tos = ip[1];
	fib->ipv4_src = LOAD(u32, ip + 12);
	fib->ipv4_dst = LOAD(u32, ip + 16);
	if (RARE(!is_forwarded(ip[12])) || RARE(!is_forwarded(ip[16])))
		return LATE(PASS_ROUTE);
	fragment = LOAD(u16, ip + 6);
	if (RARE(fragment & BE16(0x1fff)))
		return PASS_NONE;
	return transport_of(packet, ip + IPV4_LENGTH, ip[9], packet->length - IPV4_LENGTH, fragment & BE16(0x2000), port,
			    fib);
}

/* Whether an address of IPv6 is a group's, or good on a link alone. */
INLINE int is_of_link(const u8 *address)
{
	return address[0] == 0xff || (address[0] == 0xfe && (address[1] & 0xc0) == 0x80);
}

INLINE enum pass ipv6_of(struct packet *packet, const struct port *port, struct bpf_fib_lookup *fib)
{
	const u8 *ip = packet->start;

	if (RARE(ip + IPV6_LENGTH > packet->end) || RARE((ip[0] & 0xf0) != 0x60))
		return LATE(PASS_MALFORMED);
	packet->length = load_be16(ip + 4) + IPV6_LENGTH;
	if (RARE(packet->length > packet->available))
		return LATE(PASS_MALFORMED);
	if (RARE(is_extension(IP_PROTOCOL(ip[6]))))
		return LATE(PASS_IP_OPTIONS);
	if (RARE(ip[7] < 2))
		return LATE(PASS_TTL);
	if (RARE(is_of_link(ip + 8)) || RARE(is_of_link(ip + 24)))
		return LATE(PASS_ROUTE);
	packet->is_ipv6 = 1;
	fib->family = FAMILY_IPV6;
	fib->flowinfo = LOAD(u32, ip) & SWAP32(0x0fffffff);
	for (int part = 0; part < 2; part++) {
		fib->ipv6_src[part] = LOAD(u64, ip + 8 + 8 * part);
		fib->ipv6_dst[part] = LOAD(u64, ip + 24 + 8 * part);
	}
	/* No router forwards ::, ::1 and addresses of IPv4 (ip6_rcv_core() in net/ipv6/ip6_input.c). */
	if (RARE(!fib->ipv6_src[0]) || RARE(!fib->ipv6_dst[0]))
		return LATE(PASS_ROUTE);
	return transport_of(packet, ip + IPV6_LENGTH, ip[6], packet->length - IPV6_LENGTH, 0, port, fib);
}

INLINE enum pass ip_of(struct packet *packet, struct ethertype type, const struct port *port,
		       struct bpf_fib_lookup *fib)
{
	enum pass pass;

	if (is_ethertype(type, ETHERTYPE_IPV4))
		pass = ipv4_of(packet, port, fib);
	else if (is_ethertype(type, ETHERTYPE_IPV6))
		pass = ipv6_of(packet, port, fib);
	else
		return LATE(PASS_NOT_IP);
	packet->behind = packet->readable - packet->length;
	return pass;
}

/* Whether a frame is for this station, and of one that can have sent it. */
INLINE int is_for(const u8 *frame, const struct port *port)
{
	return LOAD(u32, frame) == LOAD(u32, port->station) && LOAD(u16, frame + 4) == LOAD(u16, port->station + 4) &&
	       is_station(frame + 6);
}

/* A tag as `struct session` has it, of a frame that has it behind its TPID. */
INLINE u64 number_of_tag(struct ethertype tpid, const u8 *tag)
{
	u64 number = is_ethertype(tpid, ETHERTYPE_VLAN) ? TPID_VLAN : TPID_SERVICE_VLAN;

	return number << 12 | (load_be16(tag) & 0x0fff);
}

/* A PPPoE session packet (RFC 2516 section 4), with IP in no more bytes than its length says. */
INLINE enum pass pppoe_of(struct packet *packet, struct ethertype *type, const u8 *source)
{
	const u8 *pppoe = packet->start;
	struct ppp_protocol protocol;
	u64 length;

	if (RARE(pppoe + PPPOE_LENGTH + PPP_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	length = load_be16(pppoe + 4);
	if (RARE(LOAD(u16, pppoe) != BE16(0x1100)) || RARE(length < PPP_LENGTH) ||
	    RARE(length > packet->available - PPPOE_LENGTH))
		return LATE(PASS_MALFORMED);
	protocol = load_ppp_protocol(pppoe + PPPOE_LENGTH);
	if (is_ppp_protocol(protocol, PPP_IPV4))
		*type = ETHERTYPE_IPV4;
	else if (is_ppp_protocol(protocol, PPP_IPV6))
		*type = ETHERTYPE_IPV6;
	else
		return LATE(PASS_CONTROL);
	packet->station = (u64)SWAP32(LOAD(u32, source)) << 32 | (u64)load_be16(source + 4) << 16 | load_be16(pppoe + 2);
	packet->start += PPPOE_LENGTH + PPP_LENGTH;
	packet->readable -= PPPOE_LENGTH + PPP_LENGTH;
	packet->available = length - PPP_LENGTH;
	return PASS_NONE;
}

/* Reads a frame of a subscriber. */
INLINE enum pass frame_of_line(struct xdp_md *ctx, const struct port *port, struct packet *packet,
			       struct bpf_fib_lookup *fib)
{
	const u8 *frame = (const u8 *)(long)ctx->data, *header = frame + ETHERNET_LENGTH;
	struct ethertype type;
	enum pass pass;

	packet->end = (const u8 *)(long)ctx->data_end;
	/* With room for two tags: the least frame of Ethernet has it. */
	if (RARE(header + 2 * TAG_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	if (RARE(!is_for(frame, port)))
		return LATE(PASS_NOT_ADDRESSED);
	type = load_ethertype(header - 2);
	if (is_known_tag(type)) {
		packet->vlans = number_of_tag(type, header) << 48;
		type = load_ethertype(header + 2);
		header += TAG_LENGTH;
		if (is_known_tag(type)) {
			packet->vlans |= number_of_tag(type, header) << 32;
			type = load_ethertype(header + 2);
			header += TAG_LENGTH;
		}
	}
	if (RARE(!is_ethertype(type, ETHERTYPE_PPPOE_SESSION))) {
		if (is_ethertype(type, ETHERTYPE_PPPOE_DISCOVERY))
			return LATE(PASS_CONTROL);
		return is_tag(type) ? LATE(PASS_TAGS) : LATE(PASS_NOT_IP);
	}
	packet->start = header;
	packet->readable = packet->available = packet->end - header;
	pass = pppoe_of(packet, &type, frame + 6);
	if (RARE(pass != PASS_NONE))
		return pass;
	packet->before = packet->start - frame;
	return ip_of(packet, type, port, fib);
}

/* Reads a frame of an uplink, which has no tag. */
INLINE enum pass frame_of_uplink(struct xdp_md *ctx, const struct port *port, struct packet *packet,
				 struct bpf_fib_lookup *fib)
{
	const u8 *frame = (const u8 *)(long)ctx->data;

	packet->end = (const u8 *)(long)ctx->data_end;
	if (RARE(frame + ETHERNET_LENGTH > packet->end))
		return LATE(PASS_MALFORMED);
	if (RARE(!is_for(frame, port)))
		return LATE(PASS_NOT_ADDRESSED);
	packet->start = frame + ETHERNET_LENGTH;
	packet->before = ETHERNET_LENGTH;
	packet->readable = packet->available = packet->end - packet->start;
	return ip_of(packet, load_ethertype(frame + 12), port, fib);
}

INLINE u64 mask(u32 bits)
{
	return bits >= 64 ? ~0ULL : bits ? ~0ULL << (64 - bits) : 0;
}

/* The halves of a product of 128 bits, folded together. */
INLINE u64 folded_product(u64 a, u64 b)
{
	u64 low = (u64)(u32)a * (u32)b, one = (a >> 32) * (u32)b, other = (u64)(u32)a * (b >> 32);
	u64 middle = (low >> 32) + (u32)one + (u32)other;

	return (a * b) ^ ((a >> 32) * (b >> 32) + (one >> 32) + (other >> 32) + (middle >> 32));
}

/* The daemon's hash of a prefix of IPv4 (`hash4` of routes.rs): eight addresses in a row have places in a row. */
INLINE u32 hash_of_ipv4(const struct control *control, u32 address, u32 length)
{
	u64 mixed = folded_product((address >> 3) ^ READ_ONCE(control->seed[0]), length ^ READ_ONCE(control->seed[1]));

	return (u32)(mixed * 0x9e3779b97f4a7c15ULL >> 32) << 3 | (address & 7);
}

INLINE const struct owner *owner_of_ipv6(void *map, u64 lengths, const u64 *address)
{
	const struct owner *owner = 0;

#pragma clang loop unroll(full)
	for (int one = 0; one < LENGTHS_MOST; one++) {
		struct prefix6 prefix;

		if (!(lengths & 0xff))
			break;
		prefix.length = (lengths & 0xff) - 1;
		prefix.address[0] = address[0] & SWAP64(mask(prefix.length));
		prefix.address[1] = address[1] & SWAP64(prefix.length > 64 ? mask(prefix.length - 64) : 0);
		owner = bpf_map_lookup_elem(map, &prefix);
		if (owner)
			break;
		lengths >>= 8;
	}
	return owner;
}

/* The packet has passed another router (RFC 1812 section 5.3.1, RFC 8200 section 3). */
INLINE void age(u8 *ip, int is_ipv6)
{
	if (is_ipv6) {
		ip[7]--;
	} else {
		ip[8]--;
		/* TTL is the upper byte of its word: ~old + new (RFC 1624). */
		STORE(u16, ip + 10, corrected(LOAD(u16, ip + 10), BE16(0xfeff)));
	}
}

/* The headers of a session before a packet of `length` bytes: `last` are the ten of them that stand before it. */
INLINE void put_session(u8 *frame, u8 *last, const struct seen *seen, const struct port *port, u32 length, int is_ipv6)
{
	STORE(u16, frame, SWAP64(seen->station) & 0xffff);
	STORE(u16, frame + 2, SWAP64(seen->station) >> 16 & 0xffff);
	STORE(u16, frame + 4, SWAP64(seen->station) >> 32 & 0xffff);
	STORE(u32, frame + 6, LOAD(u32, port->station));
	STORE(u16, frame + 10, LOAD(u16, port->station + 4));
	if (seen->vlans) {
		STORE(u16, frame + 12,
		      seen->vlans >> 60 == TPID_VLAN ? ETHERTYPE_VLAN.be : ETHERTYPE_SERVICE_VLAN.be);
		STORE(u16, frame + 14, BE16(seen->vlans >> 48 & 0x0fff));
	}
	if (seen->vlans << 16) {
		STORE(u16, frame + 16,
		      (seen->vlans >> 44 & 0xf) == TPID_VLAN ? ETHERTYPE_VLAN.be : ETHERTYPE_SERVICE_VLAN.be);
		STORE(u16, frame + 18, BE16(seen->vlans >> 32 & 0x0fff));
	}
	STORE(u16, last, ETHERTYPE_PPPOE_SESSION.be);
	STORE(u16, last + 2, BE16(0x1100));
	STORE(u16, last + 4, BE16(seen->station & 0xffff));
	STORE(u16, last + 6, BE16(length + PPP_LENGTH));
	STORE(u16, last + 8, is_ipv6 ? PPP_IPV6.be : PPP_IPV4.be);
}

/* Bytes of a session's tags; none where it has others than the program writes. */
INLINE int bytes_of_tags(u64 vlans, u32 *bytes)
{
	u64 outer = vlans >> 60, inner = vlans >> 44 & 0xf;

	if (RARE(vlans & 0xffffffff) || RARE(outer > TPID_SERVICE_VLAN) || RARE(inner > TPID_SERVICE_VLAN))
		return 0;
	*bytes = outer ? inner ? 2 * TAG_LENGTH : TAG_LENGTH : 0;
	return 1;
}

INLINE int is_silent(const struct control *control)
{
	return bpf_ktime_get_coarse_ns() > READ_ONCE(control->heartbeat_ns) + SUBSCRIBERS_HEARTBEAT_MOST_NS;
}

#endif
