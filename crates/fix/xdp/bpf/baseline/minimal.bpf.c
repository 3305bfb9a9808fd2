// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What steering would cost that knows one kind of frame: a tag, PPPoE, IPv4 without options, TCP or UDP. Looks at no
 * more fields than it takes to find the addresses, hashes them with a multiplication, and redirects. A measure for
 * steer.bpf.c, twice: with RXLANE_COUNTED it makes the same map accesses.
 */
#include "../maps.h"

MAP_CPUS;
#ifdef RXLANE_COUNTED
MAP_BUCKETS;
MAP_COUNTS;
#endif

/* Ethernet 14, tag 4, PPPoE 6, PPP 2. */
#define IP 26

SECTION("xdp.frags")
int minimal(struct xdp_md *ctx)
{
	const u8 *start = (const u8 *)(long)ctx->data, *end = (const u8 *)(long)ctx->data_end;
	u32 hash, cpu;
#ifdef RXLANE_COUNTED
	struct counts *counts = bpf_map_lookup_elem(&COUNTS, &(u32){ 0 });
	const struct bucket *bucket;

	if (!counts)
		return XDP_PASS;
#endif
	if (start + IP + 24 > end || !is_ethertype(load_ethertype(start + 12), ETHERTYPE_VLAN) ||
	    !is_ethertype(load_ethertype(start + 16), ETHERTYPE_PPPOE_SESSION) ||
	    !is_ppp_protocol(load_ppp_protocol(start + 24), PPP_IPV4))
		return XDP_PASS;
	hash = LOAD(u32, start + IP + 12) ^ LOAD(u32, start + IP + 16) ^ LOAD(u32, start + IP + 20);
	hash = hash * 0x9e3779b1 >> 24;
#ifdef RXLANE_COUNTED
	bucket = bpf_map_lookup_elem(&BUCKETS, &hash);
	if (!bucket)
		return XDP_PASS;
	hash &= BUCKET_COUNT - 1;
	cpu = counts->current[hash];
	if (cpu != READ_ONCE(bucket->cpu))
		return XDP_PASS;
	cpu &= CPU_COUNT - 1;
	counts->sent[hash]++;
	counts->sent_to[cpu]++;
	counts->reasons[REASON_STEERED]++;
#else
	cpu = hash & 1;
#endif
	return bpf_redirect_map(&CPUS, cpu, XDP_PASS);
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
