// SPDX-License-Identifier: MIT OR GPL-2.0
/* The decision of forward.h as a library of this machine, for tests that hold it to what the program does. */
#include "forward.h"

/* What the program has in maps. Keys end as struct key says. */
struct tables {
	const struct key *keys;
	struct flow *flows;
	const struct next_hop *next_hops;
	struct limit *limits;
	const struct alive *alive;
	u64 flow_count, next_hop_count;
	/* Places of the map of ports that have one, as bits. */
	u64 ports;
	u64 now;
};

struct context {
	u8 *start, *end;
	/* Where the memory begins in which the frame is. */
	u8 *room;
	struct tables *tables;
	u64 port;
};

INLINE const u8 *frame_start(struct context *context)
{
	return context->start;
}

INLINE const u8 *frame_end(struct context *context)
{
	return context->end;
}

INLINE u32 port_of(struct context *context)
{
	return context->port;
}

INLINE long move_start(struct context *context, int bytes)
{
	if (context->start - context->room < -bytes)
		return -1;
	context->start += bytes;
	return 0;
}

INLINE long move_end(struct context *context, int bytes)
{
	context->end += bytes;
	return 0;
}

INLINE struct flow *flow_of(struct context *context, const struct key *key, int is_ipv6)
{
	const struct tables *tables = context->tables;
	u64 length = is_ipv6 ? sizeof(*key) : KEY_IPV4_LENGTH;

	for (u64 place = 0; place < tables->flow_count; place++) {
		/* The program has a map for each version: here the highest bit of the protocol marks keys of IPv4. */
		int same_kind = (tables->keys[place].protocol >> 15) == !is_ipv6;
		struct key found = tables->keys[place];

		found.protocol &= 0x7fff;
		if (same_kind && !__builtin_memcmp(&found, key, length))
			return &tables->flows[place];
	}
	return 0;
}

INLINE const struct next_hop *next_hop_of(struct context *context, u32 place)
{
	return place < context->tables->next_hop_count ? &context->tables->next_hops[place] : 0;
}

INLINE const struct alive *alive_of(struct context *context)
{
	return context->tables->alive;
}

INLINE struct limit *limit_of(struct context *context, u32 place)
{
	return place < LIMITS ? &context->tables->limits[place] : 0;
}

INLINE u64 now_coarse(struct context *context)
{
	return context->tables->now;
}

INLINE int send_out(struct context *context, u32 port)
{
	return port < PORTS_MOST && (context->tables->ports >> port & 1) ? XDP_REDIRECT : XDP_PASS;
}

/* Byte by byte, as no program would do it. */
INLINE u32 transport_sum(struct context *context, u32 offset, u32 length, u32 pseudo)
{
	u64 total = FROM_BE16(fold(pseudo)) + (u64)length;

	for (u32 byte = 0; byte < length; byte++)
		total += (u64)context->start[offset + byte] << (byte & 1 ? 0 : 8);
	return FROM_BE16(fold(total));
}

/* Gives the action. The frame may be elsewhere and of another length then; `frame` is changed to what it is. */
int forward_frame(struct context *frame, struct forward_counts *counts)
{
	return forward(frame, counts);
}
