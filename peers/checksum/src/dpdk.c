/* Calls into DPDK's checksum, one pass over all inputs a call, so that it is inlined into its loop as in a DPDK
 * program. */

#include <stdint.h>

#include <rte_ip.h>

/* The exclusive or of the sums of all inputs, which start `stride` bytes apart. */
uint16_t dpdk_raw_cksum(const uint8_t *inputs, long stride, long bytes, long count)
{
	uint16_t all = 0;
	for (long i = 0; i < count; i++)
		all ^= rte_raw_cksum(inputs + stride * i, bytes);
	return all;
}
