// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a test run costs by itself. */
#include "../kernel.h"

SECTION("xdp.frags")
int empty(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
