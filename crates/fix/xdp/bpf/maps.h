/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Settings and maps. `layout.rs` says the same in Rust, with the meaning of every field. */
#ifndef RXLANE_MAPS_H
#define RXLANE_MAPS_H

#include "kernel.h"
#include "stats.h"

#define KEY_WORDS 12

struct settings {
	u32 key[KEY_WORDS];
	u32 classes;
	u32 symmetric;
	u32 cpus;
	u32 spare;
	u64 hold_ns;
};

struct bucket {
	u32 cpu;
	u32 spare;
	u64 lost;
};

/* Each program defines those that it uses; the loader gives maps of the same name to both. */
#define MAP_BUCKETS MAP(BUCKETS, BPF_MAP_TYPE_ARRAY, BUCKET_COUNT, u32, struct bucket)
#define MAP_CPUS MAP(CPUS, BPF_MAP_TYPE_CPUMAP, CPU_COUNT, u32, struct bpf_cpumap_val)
#define MAP_COUNTS MAP(COUNTS, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct counts)
#define MAP_ARRIVALS MAP(ARRIVALS, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct arrivals)

/*
 * The key of the only entry of a map that has one. Read-only data of the program, like SETTINGS: on the stack it would be
 * written for every frame.
 */
#define ONLY_ENTRY ((const u32 *)&FIRST_ENTRY)
#define DEFINE_ONLY_ENTRY const volatile u32 FIRST_ENTRY = 0

#endif
