/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the programs use of the kernel's interface, so that nothing but clang is needed to compile them.
 * Numbers are those of the kernel's include/uapi/linux/bpf.h, which never change.
 */
#ifndef RXLANE_KERNEL_H
#define RXLANE_KERNEL_H

#include "action.h"
#include "types.h"

/* enum bpf_map_type */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_DEVMAP 14
#define BPF_MAP_TYPE_CPUMAP 16
#define BPF_MAP_TYPE_DEVMAP_HASH 25

/* The context of an XDP program. Its first two words become pointers when they are loaded. */
struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

/* Addresses and ports are as they stand in a packet. Fields that the kernel writes have another meaning then. */
struct bpf_fib_lookup {
	u8 family;
	u8 l4_protocol;
	u16 sport, dport;
	u16 tot_len;
	/* In: by which the packet arrives; out: by which it leaves. */
	u32 ifindex;
	/* Of IPv4 the TOS in the first byte, of IPv6 traffic class and flow label. */
	union {
		u8 tos;
		u32 flowinfo;
	};
	union {
		u32 ipv4_src;
		u64 ipv6_src[2] __attribute__((aligned(4)));
	};
	union {
		u32 ipv4_dst;
		u64 ipv6_dst[2] __attribute__((aligned(4)));
	};
	u32 vlan;
	u8 smac[6], dmac[6];
};

/* What bpf_fib_lookup returns. */
#define FIB_SUCCESS 0
#define FIB_NO_NEIGHBOUR 7
#define FIB_TOO_LONG 8

/* The value of a BPF_MAP_TYPE_CPUMAP as user space writes it. */
struct bpf_cpumap_val {
	u32 qsize;
	u32 prog_fd;
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_xdp_adjust_head)(struct xdp_md *ctx, int bytes) = (void *)44;
static long (*const bpf_redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const bpf_xdp_adjust_tail)(struct xdp_md *ctx, int bytes) = (void *)65;
static long (*const bpf_fib_lookup)(void *ctx, struct bpf_fib_lookup *fib, int length, u32 flags) = (void *)69;
/* Linux 5.11 */
static u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;
/* Linux 5.18 */
static u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
/* Linux 5.19 */
static void *(*const bpf_map_lookup_percpu_elem)(void *map, const void *key, u32 cpu) = (void *)195;

#define SECTION(name) __attribute__((section(name), used))

/* The section ".maps" holds types, which the loader reads from BTF; nothing is ever stored in it. */
#define MAP(name, map_type, entries, key_type, value_type) \
	struct { \
		int (*type)[map_type]; \
		int (*max_entries)[entries]; \
		key_type *key; \
		value_type *value; \
	} name SECTION(".maps")

/* enum bpf_map_flags: an entry takes memory when it is made, and not with the map; a process may map it into its memory. */
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024

#define MAP_WITHOUT_MEMORY(name, map_type, entries, key_type, value_type) \
	MAP_WITH_FLAGS(name, map_type, BPF_F_NO_PREALLOC, entries, key_type, value_type)

#define MAP_WITH_FLAGS(name, map_type, flags, entries, key_type, value_type) \
	struct { \
		int (*type)[map_type]; \
		int (*max_entries)[entries]; \
		int (*map_flags)[flags]; \
		key_type *key; \
		value_type *value; \
	} name SECTION(".maps")

#endif
