// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Runs on the CPU that a frame was sent to, when it comes out of the queue: counts it and lets it go on to the stack.
 * Finds the bucket as steer.bpf.c did, from the frame itself.
 */
#include "kernel.h"
#include "maps.h"

#include "xdp_frame.h"

const volatile struct settings SETTINGS = {};
DEFINE_ONLY_ENTRY;

#ifdef RXLANE_FRAGS
MAP_BUCKETS;
#endif
MAP_ARRIVALS;

#ifdef RXLANE_FRAGS
SECTION("xdp.frags/cpumap")
#else
SECTION("xdp/cpumap")
#endif
int arrive(struct xdp_md *ctx)
{
	u64 number = frame_bucket((struct context *)ctx, &SETTINGS);
	struct arrivals *arrivals = bpf_map_lookup_elem(&ARRIVALS, ONLY_ENTRY);

	if (!arrivals)
		return XDP_PASS;
	if (RARE(number >= NO_BUCKET)) {
		arrivals->strange++;
		return XDP_PASS;
	}
#ifdef RXLANE_FRAGS
	u32 entry = number;
	const struct bucket *bucket = bpf_map_lookup_elem(&BUCKETS, &entry);

	/*
	 * The bucket is on its way elsewhere; whoever moves it waits until this frame is delivered. An exchange, so that
	 * who sees the arrival counted sees when it was.
	 */
	if (bucket && RARE(READ_ONCE(bucket->cpu) != bpf_get_smp_processor_id()))
		__sync_lock_test_and_set(&arrivals->astray_ns[number & (BUCKET_COUNT - 1)], bpf_ktime_get_ns());
#endif
	arrivals->arrived[number & (BUCKET_COUNT - 1)]++;
	return XDP_PASS;
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
