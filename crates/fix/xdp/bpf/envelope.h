/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * How long a frame's payload is behind tags and PPPoE, and whether that is more than it may be.
 *
 * The frame is measured as it came: padding counts as payload, and no length field is believed, since what is to stay out
 * are long frames, whatever they say of themselves. Frames that Ethernet pads (60 bytes) are never too long.
 *
 * The allowance is for headers that could be read. A tag beyond TAGS_MAX, a session header that RFC 2516 does not know,
 * and headers behind the first buffer of a frame in several are payload. A tag that the network card took off is neither in
 * the frame nor in its length, so that the payload is the same.
 */
#ifndef RXLANE_ENVELOPE_H
#define RXLANE_ENVELOPE_H

#include "parse.h"

/* `envelope_layout.rs` says the same in Rust. */
enum envelope_kind {
	ENVELOPE_UNTAGGED,
	ENVELOPE_TAGGED,
	ENVELOPE_PPPOE,
	ENVELOPE_KINDS,
};

/* One place more than kinds, so that any number of two bits is one. */
#define ENVELOPE_PLACES 4

struct envelope_counts {
	u64 passed[ENVELOPE_PLACES];
	u64 refused[ENVELOPE_PLACES];
};

struct enveloped {
	enum envelope_kind kind;
	/* Octets of the frame that are no payload. */
	u64 headers;
};

/* RFC 2516 section 4: version 1, type 1, code 0; RFC 1661 section 2: the first of two bytes of a protocol is even. */
INLINE int is_session_header(const u8 *header)
{
	return LOAD(u16, header) == BE16(0x1100) && !(header[PPPOE_LENGTH] & 1);
}

INLINE struct enveloped envelope_of(const struct frame *frame)
{
	struct enveloped found = { ENVELOPE_UNTAGGED, ETHERNET_LENGTH };
	const u8 *header = frame->start + ETHERNET_LENGTH;
	struct ethertype type;

	if (RARE(header > frame->end))
		return found;
	type = load_ethertype(header - 2);
	for (int tags = 0; tags < TAGS_MAX && is_tag(type); tags++) {
		if (header + TAG_LENGTH > frame->end)
			break;
		found.kind = ENVELOPE_TAGGED;
		found.headers += TAG_LENGTH;
		type = load_ethertype(header + 2);
		header += TAG_LENGTH;
	}
	if (!is_ethertype(type, ETHERTYPE_PPPOE_SESSION))
		return found;
	header = forget(frame->start, header, 63);
	if (header + PPPOE_LENGTH + PPP_LENGTH > frame->end || !is_session_header(header))
		return found;
	found.kind = ENVELOPE_PPPOE;
	found.headers += PPPOE_LENGTH + PPP_LENGTH;
	return found;
}

/* Whether there are more than `limit` bytes of payload. */
INLINE int is_too_long(const struct frame *frame, const struct enveloped *enveloped, u32 limit)
{
	return frame_length(frame) > enveloped->headers + limit;
}

#endif
