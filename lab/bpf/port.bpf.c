// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The least that forwards: every frame leaves by one port as it is. It measures what receiving and sending cost in the
// driver and in the kernel's XDP, which no program can save; crate `xdp` has the real one.

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

static long (*const redirect)(void *map, __u32 key, __u64 flags) = (void *)BPF_FUNC_redirect_map;

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} PORT SEC(".maps");

SEC("xdp") int forward(struct xdp_md *context)
{
	return redirect(&PORT, 0, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
