/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The keyed hash of a flow, and its bucket.
 *
 * Pairs of 32-bit words, each plus a word of the key, are multiplied to 64 bits and summed: NH of UMAC (RFC 4418
 * section 5.2.2), whose collisions nobody can predict without the key. Its high bits alone would not be even over
 * consecutive addresses, so a multiplication mixes the sum.
 *
 * Words are addresses, ports and protocol as the processor loads them: the hash is that of this machine.
 */
#ifndef RXLANE_FLOW_H
#define RXLANE_FLOW_H

#include "parse.h"

/* 2^64 divided by the golden ratio, made odd. */
#define MIX 0x9e3779b97f4a7c15ULL

INLINE u64 nh(u32 first, u32 first_key, u32 second, u32 second_key)
{
	return (u64)(u32)(first + first_key) * (u32)(second + second_key);
}

/* Whether source and destination change places, so that both directions of a flow have one hash. */
INLINE int is_turned(const u32 *source, const u32 *destination, int words, u32 ports)
{
	for (int word = 0; word < words; word++)
		if (source[word] != destination[word])
			return source[word] > destination[word];
	return (u16)ports > ports >> 16;
}

INLINE u32 swap_ports(u32 ports)
{
	return ports >> 16 | ports << 16;
}

INLINE u32 mix(u64 hash)
{
	return (hash ^ hash >> 32) * MIX >> 56;
}

/* `addresses` are eight octets of an IPv4 header; `key` and `symmetric` are those of the settings. */
INLINE u32 bucket_ipv4(const u8 *addresses, u32 ports, u32 protocol, const volatile u32 *key, u32 symmetric)
{
	u32 source = LOAD(u32, addresses), destination = LOAD(u32, addresses + 4);

	if (RARE(symmetric) && is_turned(&source, &destination, 1, ports)) {
		u32 swapped = source;

		source = destination;
		destination = swapped;
		ports = swap_ports(ports);
	}
	return mix(nh(ports, key[0], protocol, key[1]) + nh(source, key[2], destination, key[3]));
}

/* `addresses` are 32 octets of an IPv6 header. */
INLINE u32 bucket_ipv6(const u8 *addresses, u32 ports, u32 protocol, const volatile u32 *key, u32 symmetric)
{
	u32 source[4], destination[4];
	u64 hash;

	for (int word = 0; word < 4; word++) {
		source[word] = LOAD(u32, addresses + 4 * word);
		destination[word] = LOAD(u32, addresses + 16 + 4 * word);
	}
	if (RARE(symmetric) && is_turned(source, destination, 4, ports)) {
		for (int word = 0; word < 4; word++) {
			u32 swapped = source[word];

			source[word] = destination[word];
			destination[word] = swapped;
		}
		ports = swap_ports(ports);
	}
	hash = nh(ports, key[0], protocol, key[1]);
	for (int word = 0; word < 4; word++)
		hash += nh(source[word], key[2 + 2 * word], destination[word], key[3 + 2 * word]);
	return mix(hash);
}

INLINE u32 parsed_bucket(const struct parsed *parsed, const volatile u32 *key, u32 symmetric)
{
	u32 protocol = parsed->protocol.number;

	if (!parsed->is_ipv6)
		return bucket_ipv4(parsed->addresses, parsed->ports, protocol, key, symmetric);
	return bucket_ipv6(parsed->addresses, parsed->ports, protocol, key, symmetric);
}

/* In place of a bucket: the frame has none, and the low bits are the reason. */
#define NO_BUCKET 0x100

/* The bucket of any frame, or NO_BUCKET and the reason. Not inlined, so that what is common stays in registers. */
static __attribute__((noinline)) u32 bucket_of_any(struct context *context, u32 classes, const volatile u32 *key,
						   u32 symmetric)
{
	struct parsed parsed;
	enum reason reason = parse_any(context, classes, &parsed);

	return reason == REASON_STEERED ? parsed_bucket(&parsed, key, symmetric) : NO_BUCKET | reason;
}

/* The bucket of a frame, or NO_BUCKET and the reason. */
INLINE u32 frame_bucket(struct context *context, u32 classes, const volatile u32 *key, u32 symmetric)
{
	struct frame frame = frame_of(context);
	struct parsed parsed;

	if (parse_common(frame.start, frame.end, classes, &parsed))
		return parsed_bucket(&parsed, key, symmetric);
	return bucket_of_any(context, classes, key, symmetric);
}

#endif
