// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Runs on every port of the fast path: sends a packet whose flow is known out of its port, and leaves every other frame
 * to the kernel as it is.
 */
#include "kernel.h"

#include "forward.h"

const volatile u32 FIRST_ENTRY = 0;

MAP_WITHOUT_MEMORY(FLOWS_IPV4, BPF_MAP_TYPE_HASH, 1, struct key_ipv4, struct flow);
MAP_WITHOUT_MEMORY(FLOWS_IPV6, BPF_MAP_TYPE_HASH, 1, struct key, struct flow);
MAP(NEXT_HOPS, BPF_MAP_TYPE_ARRAY, 1, u32, struct next_hops);
MAP(FASTPATH_PORTS, BPF_MAP_TYPE_DEVMAP, PORTS_MOST, u32, u32);
MAP(RATE_LIMITS, BPF_MAP_TYPE_ARRAY, LIMITS, u32, struct limit);
MAP(FORWARDED, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct forward_counts);

/* The loader finds it as the map `.bss`: a variable is read without a lookup. */
struct alive alive;

#define XDP(context) ((struct xdp_md *)(context))

INLINE const u8 *frame_start(struct context *context)
{
	return (const u8 *)(long)XDP(context)->data;
}

INLINE const u8 *frame_end(struct context *context)
{
	return (const u8 *)(long)XDP(context)->data_end;
}

INLINE u32 port_of(struct context *context)
{
	return XDP(context)->ingress_ifindex;
}

INLINE long move_start(struct context *context, int bytes)
{
	return bpf_xdp_adjust_head(XDP(context), bytes);
}

INLINE long move_end(struct context *context, int bytes)
{
	return bpf_xdp_adjust_tail(XDP(context), bytes);
}

INLINE struct flow *flow_of(struct context *context, const struct key *key, int is_ipv6)
{
	struct flow *flow;

	if (is_ipv6) {
		flow = bpf_map_lookup_elem(&FLOWS_IPV6, key);
		/* Keeps clang from making one call of both, of which the kernel would not know the map and could not inline it. */
		asm volatile("" : "+r"(flow));
		return flow;
	}
	return bpf_map_lookup_elem(&FLOWS_IPV4, key);
}

INLINE const struct next_hop *next_hop_of(struct context *context, u32 place)
{
	const struct next_hops *next = bpf_map_lookup_elem(&NEXT_HOPS, &place);

	return next ? &next->both[READ_ONCE(next->current) & 1] : 0;
}

INLINE const struct alive *alive_of(struct context *context)
{
	return &alive;
}

INLINE struct limit *limit_of(struct context *context, u32 place)
{
	return bpf_map_lookup_elem(&RATE_LIMITS, &place);
}

INLINE u64 now_coarse(struct context *context)
{
	return bpf_ktime_get_coarse_ns();
}

INLINE int send_out(struct context *context, u32 port)
{
	return bpf_redirect_map(&FASTPATH_PORTS, port, XDP_PASS);
}

/* Steps of 32 bytes in the sum of a packet: as many as fit the one buffer that a frame has here. */
#define STEPS 128
/* More than that buffer, and a mask. */
#define MOST 8191

/*
 * The sum of `length` bytes from `offset` on, with that length and `sum`, folded; 0, which no sum is, where they are more
 * than there are. A function of its own, which the verifier follows once.
 */
__attribute__((noinline)) int sum_of_packet(struct xdp_md *ctx, u32 offset, u32 length, u32 sum)
{
	const u8 *start = (const u8 *)(long)ctx->data, *end = (const u8 *)(long)ctx->data_end;
	const u8 *place = start + (offset & 127), *last;
	u64 total = sum;

	if (length > MOST)
		return 0;
	total += BE16(length);
	last = place + (length & MOST);
	for (u32 step = 0; step < STEPS; step++) {
		if (place + 32 > last || place + 32 > end)
			break;
		for (int word = 0; word < 8; word++)
			total += LOAD(u32, place + 4 * word);
		place += 32;
	}
	/*
	 * What is left is followed once, and not once for each step that may be the last: the verifier takes both differences of
	 * pointers for any number.
	 */
	length = (u64)(last - place) & MOST;
	place = forget(start, place, MOST);
	for (u32 step = 0; step < 7; step++) {
		if (length < 4 || place + 4 > end)
			break;
		total += LOAD(u32, place);
		place += 4;
		length -= 4;
	}
	if (length >= 2 && place + 2 <= end) {
		total += LOAD(u16, place);
		place += 2;
		length -= 2;
	}
	if (length == 1 && place + 1 <= end) {
		total += BE16((u32)place[0] << 8);
		length = 0;
	}
	return length ? 0 : fold(total);
}

INLINE u32 transport_sum(struct context *context, u32 offset, u32 length, u32 pseudo)
{
	return sum_of_packet(XDP(context), offset, length, pseudo);
}

SECTION("xdp")
int fastpath(struct xdp_md *ctx)
{
	struct forward_counts *counts = bpf_map_lookup_elem(&FORWARDED, (const u32 *)&FIRST_ENTRY);

	if (!counts)
		return XDP_PASS;
	return forward((struct context *)ctx, counts);
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
