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

#include "maps.h"
#include "parse.h"

/* 2^64 divided by the golden ratio, made odd. */
#define MIX 0x9e3779b97f4a7c15ULL

INLINE u64 nh(u32 first, u32 first_key, u32 second, u32 second_key)
{
	return (u64)(u32)(first + first_key) * (u32)(second + second_key);
}

INLINE u64 mix(u64 hash)
{
	return (hash ^ hash >> 32) * MIX >> 56;
}

/* `words` of an address are hashed in turn with those of the other. */
INLINE u64 bucket_of(const u8 *source, const u8 *destination, int words, u32 ports, u32 protocol,
		     const volatile u32 *key)
{
	/* Computed before anything else is loaded: there are not registers for all. */
	u64 hash = OPAQUE(nh(ports, key[0], protocol, key[1]));

	for (int word = 0; word < words; word++)
		hash += nh(LOAD(u32, source + 4 * word), key[2 + 2 * word], LOAD(u32, destination + 4 * word),
			   key[3 + 2 * word]);
	return mix(hash);
}

/* Whether source and destination change places, so that both directions of a flow have one hash. */
INLINE int is_turned(const u8 *source, const u8 *destination, int words, u32 ports)
{
	for (int word = 0; word < words; word++) {
		u32 ours = LOAD(u32, source + 4 * word), theirs = LOAD(u32, destination + 4 * word);

		if (ours != theirs)
			return ours > theirs;
	}
	return (u16)ports > ports >> 16;
}

/* The same hash for both directions. */
INLINE u64 symmetric_bucket(const u8 *source, const u8 *destination, int words, u32 ports, u32 protocol,
			    const volatile u32 *key)
{
	if (is_turned(source, destination, words, ports))
		return bucket_of(destination, source, words, ports >> 16 | ports << 16, protocol, key);
	return bucket_of(source, destination, words, ports, protocol, key);
}

/* Not inlined: who does not want it has its registers for the other. */
static __attribute__((noinline)) u64 symmetric_bucket_ipv4(const u8 *addresses, u32 ports, u32 protocol,
							   const volatile u32 *key)
{
	return symmetric_bucket(addresses, addresses + 4, 1, ports, protocol, key);
}

static __attribute__((noinline)) u64 symmetric_bucket_ipv6(const u8 *addresses, u32 ports, u32 protocol,
							   const volatile u32 *key)
{
	return symmetric_bucket(addresses, addresses + 16, 4, ports, protocol, key);
}

/* `addresses` are source and destination as they stand in the IP header, four bytes each. */
INLINE u64 bucket_ipv4(const u8 *addresses, u32 ports, u32 protocol, const volatile struct settings *settings)
{
	if (USUAL(!settings->symmetric))
		return bucket_of(addresses, addresses + 4, 1, ports, protocol, settings->key);
	return symmetric_bucket_ipv4(addresses, ports, protocol, settings->key);
}

/* The same, 16 bytes each. */
INLINE u64 bucket_ipv6(const u8 *addresses, u32 ports, u32 protocol, const volatile struct settings *settings)
{
	if (USUAL(!settings->symmetric))
		return bucket_of(addresses, addresses + 16, 4, ports, protocol, settings->key);
	return symmetric_bucket_ipv6(addresses, ports, protocol, settings->key);
}

/* In place of a bucket: the frame has none, and the low bits are the reason. */
#define NO_BUCKET 0x100

/* The bucket of any frame, or NO_BUCKET and the reason. Not inlined, so that what is common stays in registers. */
static __attribute__((noinline)) u64 bucket_of_any(struct context *context, const volatile struct settings *settings)
{
	struct parsed parsed;
	enum reason reason = parse_any(context, settings->classes, &parsed);

	if (reason != REASON_STEERED)
		return NO_BUCKET | reason;
	return parsed.is_ipv6 ? bucket_ipv6(parsed.addresses, parsed.ports, parsed.protocol.number, settings) :
				bucket_ipv4(parsed.addresses, parsed.ports, parsed.protocol.number, settings);
}

#endif
