// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Runs where a frame is received: chooses a CPU by the inner flow and queues the frame there, or leaves it to the stack
 * where it is; that, too, where the CPU is the one it is on, to which a queue and the thread behind it would only add
 * work. Never changes or drops a frame.
 *
 * Compiled twice: with RXLANE_FRAGS for frames in several buffers (Linux 5.18) and buckets that move (Linux 5.19).
 */
#include "kernel.h"
#include "maps.h"

#include "xdp_frame.h"

const volatile struct settings SETTINGS = {};
DEFINE_ONLY_ENTRY;

MAP_BUCKETS;
MAP_CPUS;
MAP_COUNTS;
#ifdef RXLANE_FRAGS
MAP_ARRIVALS;
#endif

#ifdef RXLANE_FRAGS
/* Orders the loads before it and behind it: an atomic operation that gives a value does. */
INLINE void fence(u64 *own)
{
	u64 value = __sync_fetch_and_add(own, 0);

	/* A value that nobody takes would not be given. */
	asm volatile("" : : "r"(value));
}

/*
 * Whether all frames of the bucket that were sent have arrived or are lost. What arrived is read first: it only grows,
 * and never beyond what was sent, so if what is read as sent later is no more, nothing was on its way between the two.
 */
INLINE int is_drained(struct counts *own, const struct bucket *bucket, u32 number)
{
	u64 arrived = READ_ONCE(bucket->lost), sent = 0;

	for (u32 cpu = 0; cpu < CPU_COUNT && cpu < SETTINGS.cpus; cpu++) {
		const struct arrivals *arrivals = bpf_map_lookup_percpu_elem(&ARRIVALS, ONLY_ENTRY, cpu);

		if (arrivals)
			arrived += READ_ONCE(arrivals->arrived[number]);
	}
	fence(&own->held_ns[number]);
	for (u32 cpu = 0; cpu < CPU_COUNT && cpu < SETTINGS.cpus; cpu++) {
		const struct counts *counts = bpf_map_lookup_percpu_elem(&COUNTS, ONLY_ENTRY, cpu);

		if (counts)
			sent += READ_ONCE(counts->sent[number]);
	}
	return sent == arrived;
}

/* Whether a frame of the bucket came out of the queue of `cpu` within the hold before `now`, or after it. */
INLINE int is_fresh(u32 cpu, u32 number, u64 now)
{
	const struct arrivals *arrivals = bpf_map_lookup_percpu_elem(&ARRIVALS, ONLY_ENTRY, cpu);

	return arrivals && READ_ONCE(arrivals->astray_ns[number]) + SETTINGS.hold_ns > now;
}

/*
 * A bucket that waits for its move gets another frame on the CPU that receives it. The stack may hold that back for a
 * moment, to coalesce it with the next.
 */
static __attribute__((noinline)) void stamp_kept(u32 number)
{
	struct arrivals *arrivals = bpf_map_lookup_elem(&ARRIVALS, ONLY_ENTRY);

	if (arrivals)
		arrivals->astray_ns[number & (BUCKET_COUNT - 1)] = bpf_ktime_get_ns();
}

/* The CPU for the next frame of a bucket that should have another CPU, or waits for one. */
static __attribute__((noinline)) u32 settle(struct counts *counts, const struct bucket *bucket, u32 number)
{
	u32 current, wanted;
	u64 now;

	if (!counts || !bucket)
		return 0;
	number &= BUCKET_COUNT - 1;
	wanted = READ_ONCE(bucket->cpu);
	current = counts->current[number] & ~HOLDING;
	if (current == wanted)
		goto settled;
	now = bpf_ktime_get_ns();
	if (!(counts->current[number] & HOLDING)) {
		/* From here on arrivals elsewhere than where the bucket should be are stamped. */
		counts->current[number] = current | HOLDING;
		counts->held_ns[number] = now;
		return current;
	}
	/* A look at one CPU first spares that at all of them. */
	if (now - counts->held_ns[number] < SETTINGS.hold_ns || is_fresh(current, number, now))
		return current;
	/* The last one may have arrived in between; its stamp was there before it was counted. */
	if (!is_drained(counts, bucket, number) || is_fresh(current, number, now))
		return current;
settled:
	counts->current[number] = wanted;
	counts->held_ns[number] = 0;
	return wanted;
}
#else
/* Without a way to read what other CPUs counted, a bucket stays where it was first. */
INLINE u32 settle(struct counts *counts, const struct bucket *bucket, u32 number)
{
	return counts->current[number];
}
#endif

#ifdef RXLANE_FRAGS
SECTION("xdp.frags")
#else
SECTION("xdp")
#endif
int steer(struct xdp_md *ctx)
{
	u64 number = frame_bucket((struct context *)ctx, &SETTINGS);
	struct counts *counts = bpf_map_lookup_elem(&COUNTS, ONLY_ENTRY);
	u32 entry = number, cpu;
	const struct bucket *bucket;

	if (!counts)
		return XDP_PASS;
	if (RARE(number >= NO_BUCKET))
		goto left;
	bucket = bpf_map_lookup_elem(&BUCKETS, &entry);
	if (!bucket)
		goto no_cpu;
	cpu = counts->current[number];
	if (RARE(cpu != READ_ONCE(bucket->cpu)))
		goto unsettled;
settled:
	if (RARE(cpu == counts->own_cpu))
		goto kept;
	cpu &= CPU_COUNT - 1;
	/* Before the frame can arrive, so that no more ever arrive than were sent. */
	counts->sent[number]++;
	counts->sent_to[cpu]++;
	counts->reasons[REASON_STEERED]++;
	if (USUAL(bpf_redirect_map(&CPUS, cpu, XDP_PASS) == XDP_REDIRECT))
		return XDP_REDIRECT;
	counts->sent[number]--;
	counts->sent_to[cpu]--;
	counts->reasons[REASON_STEERED]--;
no_cpu:
	counts->reasons[REASON_NO_CPU]++;
	return XDP_PASS;

left:
	counts->reasons[number & (REASON_COUNT - 1)]++;
	return XDP_PASS;

kept:
#ifdef RXLANE_FRAGS
	if (RARE(counts->current[number] & HOLDING))
		stamp_kept(number);
#endif
	counts->kept[number]++;
	counts->reasons[REASON_STEERED]++;
	return XDP_PASS;

unsettled:
	cpu = settle(counts, bucket, number);
	goto settled;
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
