// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The least that steers: PPPoE session frames with IPv4 and without options go to the CPU of their flow's bucket.
// It measures what steering can gain before there is anything to steer with; crate `xdp` has the real program.

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define htons(number) ((__u16)__builtin_bswap16(number))

static void *(*const lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const redirect)(void *map, __u32 key, __u64 flags) = (void *)BPF_FUNC_redirect_map;

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} CPUS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} BUCKETS SEC(".maps");

// Ethernet, PPPoE, PPP, IPv4 up to the ports, as they follow each other without options.
struct frame {
	__u8 stations[12];
	__u16 ethertype;
	__u8 version_type, code;
	__u16 session, length, protocol;
	__u8 version_ihl, tos;
	__u16 total, identification, fragment;
	__u8 ttl, transport;
	__u16 checksum;
	__u32 source, destination, ports;
} __attribute__((packed));

SEC("xdp")
int steer(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end;
	struct frame *frame = (void *)(long)context->data;
	if ((void *)(frame + 1) > end)
		return XDP_PASS;
	if (frame->ethertype != htons(0x8864) || frame->protocol != htons(0x0021) || frame->version_ihl != 0x45)
		return XDP_PASS;
	__u32 hash = frame->source ^ (frame->destination * 0x9e3779b1u) ^ (frame->ports * 0x85ebca6bu);
	hash ^= hash >> 16;
	hash *= 0xc2b2ae35u;
	hash ^= hash >> 13;
	__u32 bucket = hash & 255;
	__u32 *cpu = lookup(&BUCKETS, &bucket);
	if (!cpu)
		return XDP_PASS;
	return (int)redirect(&CPUS, *cpu, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
