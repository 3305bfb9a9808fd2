/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the programs count. `layout.rs` says the same in Rust, with the meaning of every field. */
#ifndef RXLANE_STATS_H
#define RXLANE_STATS_H

#include "types.h"

#define BUCKET_COUNT 256
#define CPU_COUNT 1024
#define REASON_COUNT 16

/* In `current`: the bucket waits for its move. So it never equals the CPU that the bucket should have. */
#define HOLDING (1U << 31)

enum class {
	CLASS_PLAIN,
	CLASS_VLAN,
	CLASS_QINQ,
	CLASS_PPPOE,
	CLASS_MPLS,
};

enum reason {
	REASON_STEERED,
	REASON_CLASS_LEFT,
	REASON_PPPOE_DISCOVERY,
	REASON_PPP_CONTROL,
	REASON_PPP_OTHER,
	REASON_NOT_IP,
	REASON_TRUNCATED,
	REASON_MALFORMED,
	REASON_TOO_DEEP,
	REASON_NO_CPU,
	REASON_NOT_LINEAR,
};

struct counts {
	/* Besides what every frame counts. */
	u32 own_cpu;
	u32 spare;
	u64 reasons[REASON_COUNT];
	u64 sent[BUCKET_COUNT];
	u64 sent_to[CPU_COUNT];
	u64 held_ns[BUCKET_COUNT];
	u64 kept[BUCKET_COUNT];
	u32 current[BUCKET_COUNT];
};

struct arrivals {
	u64 arrived[BUCKET_COUNT];
	u64 strange;
	u64 astray_ns[BUCKET_COUNT];
};

#endif
