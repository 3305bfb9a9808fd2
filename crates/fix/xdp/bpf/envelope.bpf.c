// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Runs where a frame is received, on an interface whose MTU was raised to make room for headers: drops a frame whose
 * payload behind tags and PPPoE is longer than the MTU was before, and lets every other one go on to the stack.
 *
 * Compiled twice: with RXLANE_FRAGS for frames in several buffers (Linux 5.18).
 */
#include "kernel.h"

#include "xdp_frame.h"

#include "envelope.h"

/* Octets of payload that a frame may have. */
const volatile u32 LIMIT = 0;
const volatile u32 FIRST_ENTRY = 0;

MAP(ENVELOPE, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct envelope_counts);

#ifdef RXLANE_FRAGS
SECTION("xdp.frags")
#else
SECTION("xdp")
#endif
int envelope(struct xdp_md *ctx)
{
	struct frame frame = frame_of((struct context *)ctx);
	struct enveloped found = envelope_of(&frame);
	struct envelope_counts *counts = bpf_map_lookup_elem(&ENVELOPE, (const u32 *)&FIRST_ENTRY);
	u32 place = found.kind & (ENVELOPE_PLACES - 1);

	if (RARE(is_too_long(&frame, &found, LIMIT))) {
		if (counts)
			counts->refused[place]++;
		return XDP_DROP;
	}
	if (counts)
		counts->passed[place]++;
	return XDP_PASS;
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
