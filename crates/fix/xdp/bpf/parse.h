/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A frame's headers, from the MAC header to the ports of the first IP packet.
 *
 * Every header is whole before one of its fields is judged, and every length is checked against the one that encloses
 * it: IPv4 total length or IPv6 payload length against PPPoE length against the frame. Octets behind a length are
 * padding. What a receiver checks and a flow does not depend on is left to the receiver: checksums, options, and what
 * stands in a transport header behind the ports.
 *
 * Frames that a router sees most take a short way (common.h); parse_any says what every frame is.
 *
 * Whoever includes this file defines frame_of() and frame_length(). Compiled for eBPF and, in tests, for the machine
 * itself.
 */
#ifndef RXLANE_PARSE_H
#define RXLANE_PARSE_H

#include "stats.h"
#include "types.h"

/* How many tags, labels and extension headers are followed. */
#define TAGS_MAX 8
#define LABELS_MAX 8
#define EXTENSIONS_MAX 8

#define ETHERNET_LENGTH 14
#define TAG_LENGTH 4
#define LABEL_LENGTH 4
#define PPPOE_LENGTH 6
#define PPP_LENGTH 2
#define IPV4_LENGTH 20
#define IPV4_ADDRESSES 12
#define IPV6_LENGTH 40
#define IPV6_ADDRESSES 8
#define EXTENSION_LEAST 8
#define PORTS_LENGTH 4

/* The largest length that an IP header can say. */
#define IP_LENGTH_MAX 65535

/* What stands for a frame: the context of the program, or what the tests have in its place. */
struct context;

struct frame {
	const u8 *start;
	/* The end of the part that can be read: all of the frame, or the first buffer of one in several. */
	const u8 *end;
	struct context *context;
};

INLINE struct frame frame_of(struct context *context);

/* Octets of the whole frame. */
INLINE u64 frame_length(const struct frame *frame);

/* The flow of a frame. */
struct parsed {
	/* Only parse_any() says it. */
	enum class class;
	/* Source, then destination address, 4 or 16 bytes each. */
	const u8 *addresses;
	int is_ipv6;
	/* Source, then destination port, four bytes as they stand in the packet; 0 where the flow is without ports. */
	u32 ports;
	/* 0 where the flow is without ports. */
	struct ip_protocol protocol;
};

/* What encloses the header that is read next. */
struct bounds {
	/* Octets from the start of that header to the end of the packet, or of the readable part. */
	u64 available;
	/* Whether a length field said so; the frame may go on behind its readable part. */
	int by_length;
};

/* Why `length` bytes at `header` cannot be read. */
INLINE enum reason unreadable(const struct frame *frame, const u8 *header, u64 length)
{
	return (u64)(header - frame->start) + length > frame_length(frame) ? REASON_TRUNCATED : REASON_NOT_LINEAR;
}

/* Octets from `header` to the end of what encloses it. */
INLINE u64 available_at(const struct frame *frame, const u8 *header, struct bounds bounds)
{
	return bounds.by_length ? bounds.available : frame_length(frame) - (u64)(header - frame->start);
}

/* Why `length` bytes at `header` inside of `bounds` cannot be read. */
INLINE enum reason unreadable_within(const struct frame *frame, const u8 *header, struct bounds bounds, u64 length)
{
	return available_at(frame, header, bounds) < length ? REASON_TRUNCATED : REASON_NOT_LINEAR;
}

/* What follows an IP header. */
struct payload {
	const u8 *header;
	/* Octets from there to the end of the packet. */
	u64 left;
	struct ip_protocol protocol;
	/* One of several fragments. None has ports, not even the first: the others could not follow it. */
	int is_fragment;
};

/* RFC 791 section 3.1. */
INLINE enum reason parse_ipv4(const struct frame *frame, const u8 *header, struct bounds bounds,
			       struct payload *payload)
{
	u64 header_length, total_length;

	if (header + IPV4_LENGTH > frame->end || bounds.available < IPV4_LENGTH)
		return unreadable_within(frame, header, bounds, IPV4_LENGTH);
	header_length = (header[0] & 0xf) * 4;
	if (header[0] >> 4 != 4 || header_length < IPV4_LENGTH)
		return REASON_MALFORMED;
	total_length = load_be16(header + 2);
	if (total_length > bounds.available && total_length > available_at(frame, header, bounds))
		return REASON_TRUNCATED;
	if (total_length < header_length) {
		/* Zero in a super-packet that is too long for the field (net/ipv4/ip_input.c, iph_totlen). */
		if (total_length != 0 || available_at(frame, header, bounds) <= IP_LENGTH_MAX)
			return REASON_MALFORMED;
		total_length = available_at(frame, header, bounds);
	}
	payload->header = header + header_length;
	payload->left = total_length - header_length;
	payload->protocol = IP_PROTOCOL(header[9]);
	/* More fragments, or an offset. */
	payload->is_fragment = !!(LOAD(u16, header + 6) & BE16(0x3fff));
	return REASON_STEERED;
}

/* RFC 8200 section 3. */
INLINE enum reason parse_ipv6(const struct frame *frame, const u8 *header, struct bounds bounds,
			       struct payload *payload)
{
	u64 length;

	if (header + IPV6_LENGTH > frame->end || bounds.available < IPV6_LENGTH)
		return unreadable_within(frame, header, bounds, IPV6_LENGTH);
	if (header[0] >> 4 != 6)
		return REASON_MALFORMED;
	length = load_be16(header + 4);
	if (length + IPV6_LENGTH > bounds.available && length + IPV6_LENGTH > available_at(frame, header, bounds))
		return REASON_TRUNCATED;
	payload->protocol = IP_PROTOCOL(header[6]);
	if (length == 0) {
		u64 behind = available_at(frame, header, bounds) - IPV6_LENGTH;

		/* RFC 2675: a jumbogram, or a super-packet that Linux built without the option. */
		if (behind > IP_LENGTH_MAX)
			length = behind;
		else if (is_ip_protocol(payload->protocol, IP_HOP_BY_HOP))
			return REASON_MALFORMED;
	}
	payload->header = header + IPV6_LENGTH;
	payload->left = length;
	payload->is_fragment = 0;
	return REASON_STEERED;
}

/* Goes behind extension headers. */
INLINE enum reason parse_extensions(const struct frame *frame, struct payload *payload)
{
	const u8 *start = payload->header, *header = start;
	struct ip_protocol next = payload->protocol;
	u64 left = payload->left;

	/* Unrolled: in Linux 6.1 only a jump may lead back (kernel/bpf/verifier.c, check_cfg), and clang falls through. */
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (int count = 0; count <= EXTENSIONS_MAX; count++) {
		u64 length;

		if (!is_extension(next))
			break;
		if (count == EXTENSIONS_MAX)
			return REASON_TOO_DEEP;
		/* RFC 8200 section 4.1: directly behind the IPv6 header, or nowhere. */
		if (is_ip_protocol(next, IP_HOP_BY_HOP) && count != 0)
			return REASON_MALFORMED;
		if (left < EXTENSION_LEAST)
			return REASON_TRUNCATED;
		if (header + EXTENSION_LEAST > frame->end)
			return REASON_NOT_LINEAR;
		if (is_ip_protocol(next, IP_FRAGMENT)) {
			/* RFC 8200 section 4.5: offset in the upper 13 bits, more fragments in the lowest. */
			if (LOAD(u16, header + 2) & BE16(0xfff9)) {
				payload->is_fragment = 1;
				return REASON_STEERED;
			}
			length = 8;
		} else if (is_ip_protocol(next, IP_AUTHENTICATION)) {
			/* RFC 4302 section 2.2: in words, less two; the fixed part and a sequence number are three. */
			length = (header[1] + 2) * 4;
			if (length < 12)
				return REASON_MALFORMED;
		} else {
			length = (header[1] + 1) * 8;
		}
		if (length > left)
			return REASON_TRUNCATED;
		next = IP_PROTOCOL(header[0]);
		header = forget(start, header + length, 32767);
		left -= length;
	}
	payload->header = header;
	payload->left = left;
	payload->protocol = next;
	return REASON_STEERED;
}

/* What stands where the walk has come to. */
enum network {
	NETWORK_NONE,
	NETWORK_IPV4,
	NETWORK_IPV6,
	NETWORK_MPLS,
};

struct place {
	const u8 *header;
	struct bounds bounds;
	enum network network;
};

/*
 * RFC 3032 section 2.1. What is behind the bottom of the stack only the owner of the label knows; routers take the
 * nibble of an IP version for IP (RFC 4928 section 3).
 */
INLINE enum reason parse_mpls(const struct frame *frame, struct place *place)
{
	const u8 *header = place->header;
	u64 left = available_at(frame, header, place->bounds);
	int is_bottom = 0;

	for (int count = 0; count < LABELS_MAX && !is_bottom; count++) {
		if (left < LABEL_LENGTH)
			return REASON_TRUNCATED;
		if (header + LABEL_LENGTH > frame->end)
			return REASON_NOT_LINEAR;
		is_bottom = header[2] & 1;
		header += LABEL_LENGTH;
		left -= LABEL_LENGTH;
	}
	if (!is_bottom)
		return REASON_TOO_DEEP;
	if (left == 0)
		return REASON_NOT_IP;
	if (header + 1 > frame->end)
		return REASON_NOT_LINEAR;
	place->header = header;
	place->bounds.available = left;
	place->bounds.by_length = 1;
	place->network = header[0] >> 4 == 4 ? NETWORK_IPV4 : header[0] >> 4 == 6 ? NETWORK_IPV6 : NETWORK_NONE;
	return REASON_STEERED;
}

/* RFC 2516 section 4, and the PPP protocol field (RFC 1661 section 2), which PPPoE does not compress (section 7). */
INLINE enum reason parse_pppoe(const struct frame *frame, struct place *place)
{
	const u8 *header = place->header;
	struct ppp_protocol protocol;
	u64 length;

	if (RARE(header + PPPOE_LENGTH + PPP_LENGTH > frame->end))
		return unreadable(frame, header, PPPOE_LENGTH + PPP_LENGTH);
	/* Version 1, type 1, code 0. */
	if (RARE(LOAD(u16, header) != BE16(0x1100)))
		return REASON_MALFORMED;
	length = load_be16(header + 4);
	protocol = load_ppp_protocol(header + PPPOE_LENGTH);
	if (RARE(header + PPPOE_LENGTH + length > frame->end)) {
		if ((u64)(header - frame->start) + PPPOE_LENGTH + length > frame_length(frame))
			return REASON_TRUNCATED;
	}
	if (RARE(length < PPP_LENGTH))
		return REASON_TRUNCATED;
	place->header = header + PPPOE_LENGTH + PPP_LENGTH;
	place->bounds.available = length - PPP_LENGTH;
	place->bounds.by_length = 1;
	place->network = NETWORK_IPV4;
	if (USUAL(is_ppp_protocol(protocol, PPP_IPV4)))
		return REASON_STEERED;
	place->network = NETWORK_IPV6;
	if (is_ppp_protocol(protocol, PPP_IPV6))
		return REASON_STEERED;
	/* The first byte of two is even and the second is odd; an odd first byte is a compressed field. */
	if ((protocol.be & BE16(0x0101)) != BE16(0x0001))
		return REASON_MALFORMED;
	place->network = NETWORK_MPLS;
	if (is_ppp_protocol(protocol, PPP_MPLS) || is_ppp_protocol(protocol, PPP_MPLS_MULTICAST))
		return REASON_STEERED;
	/* RFC 1661 section 2: 8xxx to bxxx are network control protocols, cxxx to fxxx link control protocols. */
	return protocol.be & BE16(0x8000) ? REASON_PPP_CONTROL : REASON_PPP_OTHER;
}

/*
 * Any frame: REASON_STEERED and its flow, or why it has none. `classes` are the bits of the classes in question; of
 * others no more is read than what determines the class.
 */
INLINE enum reason parse_any(struct context *context, u32 classes, struct parsed *parsed)
{
	struct frame frame = frame_of(context);
	struct place place = { frame.start, { 0, 0 }, NETWORK_NONE };
	struct payload payload;
	struct ethertype type;
	enum reason reason;
	int tags = 0;

	if (place.header + ETHERNET_LENGTH > frame.end)
		return unreadable(&frame, place.header, ETHERNET_LENGTH);
	type = load_ethertype(place.header + 12);
	place.header += ETHERNET_LENGTH;
	for (; tags < TAGS_MAX && is_tag(type); tags++) {
		/* The tag's control information, then the EtherType of what is under it. */
		if (place.header + TAG_LENGTH > frame.end)
			return unreadable(&frame, place.header, TAG_LENGTH);
		type = load_ethertype(place.header + 2);
		place.header += TAG_LENGTH;
	}
	place.header = forget(frame.start, place.header, 63);
	if (is_ethertype(type, ETHERTYPE_PPPOE_SESSION)) {
		parsed->class = CLASS_PPPOE;
		if (!(classes & 1 << CLASS_PPPOE))
			return REASON_CLASS_LEFT;
		reason = parse_pppoe(&frame, &place);
		if (reason != REASON_STEERED)
			return reason;
	} else {
		if (is_ethertype(type, ETHERTYPE_IPV4))
			place.network = NETWORK_IPV4;
		else if (is_ethertype(type, ETHERTYPE_IPV6))
			place.network = NETWORK_IPV6;
		else if (is_mpls(type))
			place.network = NETWORK_MPLS;
		else if (is_tag(type))
			return REASON_TOO_DEEP;
		else if (is_ethertype(type, ETHERTYPE_PPPOE_DISCOVERY))
			return REASON_PPPOE_DISCOVERY;
		else
			return REASON_NOT_IP;
		parsed->class = place.network == NETWORK_MPLS ? CLASS_MPLS :
				tags == 0 ? CLASS_PLAIN : tags == 1 ? CLASS_VLAN : CLASS_QINQ;
		if (!(classes & 1 << parsed->class))
			return REASON_CLASS_LEFT;
		place.bounds.available = frame.end - place.header;
	}
	if (place.network == NETWORK_MPLS) {
		reason = parse_mpls(&frame, &place);
		if (reason != REASON_STEERED)
			return reason;
		if (place.network == NETWORK_NONE)
			return REASON_NOT_IP;
		place.header = forget(frame.start, place.header, 127);
	}
	parsed->is_ipv6 = place.network == NETWORK_IPV6;
	if (!parsed->is_ipv6) {
		parsed->addresses = place.header + IPV4_ADDRESSES;
		reason = parse_ipv4(&frame, place.header, place.bounds, &payload);
	} else {
		parsed->addresses = place.header + IPV6_ADDRESSES;
		reason = parse_ipv6(&frame, place.header, place.bounds, &payload);
	}
	parsed->ports = 0;
	parsed->protocol = IP_PROTOCOL(0);
	if (reason != REASON_STEERED || payload.is_fragment)
		return reason;
	if (parsed->is_ipv6 || is_ip_protocol(payload.protocol, IP_AUTHENTICATION)) {
		reason = parse_extensions(&frame, &payload);
		if (reason != REASON_STEERED || payload.is_fragment)
			return reason;
	}
	if (!has_ports(payload.protocol))
		return REASON_STEERED;
	if (payload.left < PORTS_LENGTH)
		return REASON_TRUNCATED;
	if (payload.header + PORTS_LENGTH > frame.end)
		return REASON_NOT_LINEAR;
	parsed->ports = LOAD(u32, payload.header);
	parsed->protocol = payload.protocol;
	return REASON_STEERED;
}

#endif
