// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What XDP sees behind the MAC addresses: SEEN counts frames that start with a customer tag, a service tag, PPPoE,
// anything else. All of them are dropped.

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define htons(number) ((__u16)__builtin_bswap16(number))

static void *(*const lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} SEEN SEC(".maps");

SEC("xdp")
int tags(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end;
	__u16 *ethertype = (void *)(long)context->data + 12;
	if ((void *)(ethertype + 1) > end)
		return XDP_ABORTED;
	__u32 kind = *ethertype == htons(0x8100) ? 0 : *ethertype == htons(0x88a8) ? 1 : *ethertype == htons(0x8864) ? 2 : 3;
	__u64 *seen = lookup(&SEEN, &kind);
	if (seen)
		__sync_fetch_and_add(seen, 1);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
