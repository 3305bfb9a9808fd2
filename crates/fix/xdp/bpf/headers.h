/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Lengths and checksums of headers, for the programs that forward packets. */
#ifndef RXLANE_HEADERS_H
#define RXLANE_HEADERS_H

#include "types.h"

/* A constant that is loaded where it is used: clang would load it before each branch that may lead there. */
#define LATE(constant) ({ asm volatile("" : : "i"(constant)); (constant); })

#define ETHERNET_LENGTH 14
#define TAG_LENGTH 4
#define PPPOE_LENGTH 6
#define PPP_LENGTH 2
#define IPV4_LENGTH 20
#define IPV6_LENGTH 40
#define UDP_LENGTH 8
#define TCP_LENGTH 20

/* Whether a station can have this address: it is no group's, and not zero. A bridge drops other senders' frames (br_handle_frame). */
INLINE int is_station(const u8 *mac)
{
	return !(mac[0] & 1) && (LOAD(u32, mac) | LOAD(u16, mac + 4));
}

INLINE int is_known_tag(struct ethertype type)
{
	return is_ethertype(type, ETHERTYPE_VLAN) || is_ethertype(type, ETHERTYPE_SERVICE_VLAN);
}

/* The sum of two 16-bit numbers, folded to one. */
INLINE u32 fold_two(u32 sum)
{
	return (sum & 0xffff) + (sum >> 16);
}

/* A sum below 2^48, folded to 16 bits: no more than 2^32 + 0xfffe is left of it at first, then 0x1fffe. */
INLINE u32 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return fold_two(sum);
}

/* A checksum, of which a part has changed by that much, folded (RFC 1624, equation 3). */
INLINE u16 corrected(u16 checksum, u32 delta)
{
	return ~fold_two((u16)~checksum + delta);
}

INLINE u32 sum_of_ipv4_header(const u8 *ip)
{
	return fold((u64)LOAD(u32, ip) + LOAD(u32, ip + 4) + LOAD(u32, ip + 8) + LOAD(u32, ip + 12) + LOAD(u32, ip + 16));
}

#endif
