/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The short way from a frame to its bucket, for those that a router sees most: at most two tags, then PPPoE or at most
 * three labels or neither, then an unfragmented packet of TCP or UDP without IPv4 options or IPv6 extension headers,
 * which fills the PPPoE packet around it. It gives up at the first surprise, and bucket_of_any() says what the frame is.
 * Tests hold the two to the same answer.
 *
 * Written for few instructions and jumps: clang leaves the ways in the order in which they stand here.
 */
#ifndef RXLANE_COMMON_H
#define RXLANE_COMMON_H

#include "flow.h"

INLINE int is_usual_tag(struct ethertype type)
{
	return is_ethertype(type, ETHERTYPE_VLAN) || is_ethertype(type, ETHERTYPE_SERVICE_VLAN);
}

INLINE int is_usual_transport(struct ip_protocol protocol)
{
	return is_ip_protocol(protocol, IP_TCP) || is_ip_protocol(protocol, IP_UDP);
}

/*
 * Whether a PPPoE length counts the PPP protocol, `more` bytes, and those that the length field says which is `field`
 * bytes behind the start of the packet, and no others. Fields of which that is true mostly differ by a constant as they
 * stand in the frame.
 */
INLINE int is_plainly_filled(const u8 *packet, u32 field, u32 more)
{
	return (u32)LOAD(u16, packet - 4) - LOAD(u16, packet + field) == BE16(PPP_LENGTH + more);
}

/* The same of any two fields, which differ otherwise where the sum carries into the upper byte. */
INLINE int is_filled(const u8 *packet, u32 field, u32 more)
{
	packet = OPAQUE(packet);
	return FROM_BE16(LOAD(u16, packet - 4)) == FROM_BE16(LOAD(u16, packet + field)) + PPP_LENGTH + more;
}

/* Whether the label before `header` is the last. */
INLINE int is_bottom(const u8 *header)
{
	return header[-2] & 1;
}

/* The bucket of a frame, or NO_BUCKET and the reason. */
INLINE u64 frame_bucket(struct context *context, const volatile struct settings *settings)
{
	struct frame frame = frame_of(context);
	const u8 *end = frame.end, *header = OPAQUE(frame.start + ETHERNET_LENGTH), *behind;
	u32 classes = settings->classes, class_bit = 1 << CLASS_PLAIN;
	struct ethertype type;
	struct ppp_protocol ppp;
	struct ip_protocol protocol;
	u64 length;

	/* Room for the longest headers with IPv4 but for labels, and so for all; the least frame of Ethernet has it. */
	if (RARE(header + 2 * TAG_LENGTH + PPPOE_LENGTH + PPP_LENGTH + IPV4_LENGTH + PORTS_LENGTH > end))
		goto any;
	type.be = OPAQUE((u32)LOAD(u16, header - 2));
	if (is_usual_tag(type)) {
		class_bit = 1 << CLASS_VLAN;
		type.be = OPAQUE((u32)LOAD(u16, header + 2));
		header += TAG_LENGTH;
		if (is_usual_tag(type)) {
			class_bit = 1 << CLASS_QINQ;
			type.be = OPAQUE((u32)LOAD(u16, header + 2));
			header += TAG_LENGTH;
		}
	}
	if (!is_ethertype(type, ETHERTYPE_PPPOE_SESSION))
		goto no_session;
	if (!(classes & 1 << CLASS_PPPOE) || RARE(LOAD(u16, header) != BE16(0x1100)))
		goto any;
	ppp = load_ppp_protocol(header + PPPOE_LENGTH);
	header += PPPOE_LENGTH + PPP_LENGTH;
	if (!is_ppp_protocol(ppp, PPP_IPV4))
		goto session_without_ipv4;
	if (RARE(!is_plainly_filled(header, 2, 0)))
		goto ipv4_with_carry;
ipv4:
	length = FROM_BE16(LOAD(u16, header + 2));
	protocol = IP_PROTOCOL(header[9]);
	if (RARE(header[0] != 0x45) || RARE(length < IPV4_LENGTH + PORTS_LENGTH) ||
	    RARE(length > (u64)(end - header)) || RARE(LOAD(u16, header + 6) & BE16(0x3fff)) ||
	    RARE(!is_usual_transport(protocol)))
		goto any;
	return bucket_ipv4(header + IPV4_ADDRESSES, LOAD(u32, header + IPV4_LENGTH), protocol.number, settings);

ipv4_with_carry:
	if (is_filled(header, 2, 0))
		goto ipv4;
any:
	return bucket_of_any(context, settings);

no_session:
	type.be = OPAQUE(type.be);
	if (is_ethertype(type, ETHERTYPE_IPV4)) {
		if (!(classes & class_bit))
			goto any;
		goto ipv4;
	}
	type.be = OPAQUE(type.be);
	if (is_ethertype(type, ETHERTYPE_IPV6)) {
		if (!(classes & class_bit))
			goto any;
		goto ipv6;
	}
	type.be = OPAQUE(type.be);
	if (RARE(!is_ethertype(type, ETHERTYPE_MPLS)) || !(classes & 1 << CLASS_MPLS))
		goto any;
	header += LABEL_LENGTH;
	if (is_bottom(header))
		goto labelled;
	header += LABEL_LENGTH;
	if (is_bottom(header))
		goto labelled;
	header += LABEL_LENGTH;
	if (header + IPV4_LENGTH + PORTS_LENGTH > end || !is_bottom(header))
		goto any;
labelled:
	if ((header[0] & 0xf0) == 0x60)
		goto ipv6;
	goto ipv4;

ipv6_with_carry:
	if (is_filled(header, 4, IPV6_LENGTH))
		goto ipv6;
	goto any;

session_without_ipv4:
	ppp.be = OPAQUE(ppp.be);
	if (RARE(!is_ppp_protocol(ppp, PPP_IPV6)))
		goto any;
	if (RARE(!is_plainly_filled(header, 4, IPV6_LENGTH)))
		goto ipv6_with_carry;
ipv6:
	behind = header + IPV6_LENGTH + PORTS_LENGTH;
	if (RARE(behind > end))
		goto any;
	/* Without the ports; a packet that is too short for them becomes one that is too long for any frame. */
	length = (u64)FROM_BE16(LOAD(u16, header + 4)) - PORTS_LENGTH;
	protocol = IP_PROTOCOL(header[6]);
	if (RARE((header[0] & 0xf0) != 0x60) || RARE(length > (u64)(end - behind)) ||
	    RARE(!is_usual_transport(protocol)))
		goto any;
	return bucket_ipv6(header + IPV6_ADDRESSES, LOAD(u32, header + IPV6_LENGTH), protocol.number, settings);
}

#endif
