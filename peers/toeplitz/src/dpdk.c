/* Calls into DPDK's Toeplitz functions, one pass over all inputs a call, so that they are inlined into
 * their loops as in a DPDK program. */

#include <stdint.h>
#include <string.h>

#include <rte_thash.h>

#if defined(RTE_THASH_GFNI_DEFINED)
#define HAVE_GFNI 1
#else
#define HAVE_GFNI 0
#endif

enum { BULK = 32 };

/* Not rte_thash_gfni_supported(): that asks EAL for the widest vectors allowed, and no EAL runs here.
 * -march=native has compiled the functions in only where the processor has the instructions. */
int dpdk_has_gfni(void)
{
	return HAVE_GFNI;
}

void dpdk_matrices(uint64_t *matrices, const uint8_t *key, int bytes)
{
	rte_thash_complete_matrix(matrices, key, bytes);
}

/* words: the inputs as numbers in host order, which rte_softrss wants. */
#define SOFTRSS(name, words_each)                                                                        \
	void name(const uint8_t *key, uint32_t *words, uint32_t *hashes, long count)                     \
	{                                                                                                \
		for (long i = 0; i < count; i++)                                                         \
			hashes[i] = rte_softrss(words + words_each * i, words_each, key);                \
	}

SOFTRSS(dpdk_softrss_12, 3)
SOFTRSS(dpdk_softrss_36, 9)

#if HAVE_GFNI
#define GFNI(bytes)                                                                                     \
	void dpdk_gfni_##bytes(const uint64_t *m, const uint8_t *inputs, uint32_t *hashes, long count)  \
	{                                                                                                \
		for (long i = 0; i < count; i++)                                                         \
			hashes[i] = rte_thash_gfni(m, inputs + bytes * i, bytes);                      \
	}                                                                                                \
	/* Pointers as the function wants them, prepared beforehand. */                                  \
	void dpdk_bulk_##bytes(const uint64_t *m, uint8_t **inputs, uint32_t *hashes, long count)       \
	{                                                                                                \
		for (long i = 0; i < count; i += BULK)                                                   \
			rte_thash_gfni_bulk(m, bytes, inputs + i, hashes + i, BULK);                    \
	}                                                                                                \
	/* Each hash is XORed into the next input. */                                                    \
	uint32_t dpdk_chain_into_##bytes(const uint64_t *m, const uint8_t *inputs, long count)          \
	{                                                                                                \
		uint32_t hash = 0;                                                                       \
		uint8_t input[bytes];                                                                   \
		for (long i = 0; i < count; i++) {                                                       \
			uint32_t first;                                                                  \
			memcpy(input, inputs + bytes * i, bytes);                                      \
			memcpy(&first, input, 4);                                                        \
			first ^= hash;                                                                   \
			memcpy(input, &first, 4);                                                        \
			hash = rte_thash_gfni(m, input, bytes);                                         \
		}                                                                                        \
		return hash;                                                                             \
	}                                                                                                \
	/* Each hash says which of 64 inputs is next. */                                                 \
	uint32_t dpdk_chain_choice_##bytes(const uint64_t *m, const uint8_t *inputs, long count)        \
	{                                                                                                \
		uint32_t hash = 0;                                                                       \
		for (long i = 0; i < count; i++)                                                         \
			hash = rte_thash_gfni(m, inputs + bytes * ((i + hash) & 63), bytes);           \
		return hash;                                                                             \
	}
#else
#define GFNI(bytes)                                                                                     \
	void dpdk_gfni_##bytes(const uint64_t *m, const uint8_t *inputs, uint32_t *hashes, long count) {} \
	void dpdk_bulk_##bytes(const uint64_t *m, uint8_t **inputs, uint32_t *hashes, long count) {}    \
	uint32_t dpdk_chain_into_##bytes(const uint64_t *m, const uint8_t *inputs, long count)          \
	{                                                                                                \
		return 0;                                                                                \
	}                                                                                                \
	uint32_t dpdk_chain_choice_##bytes(const uint64_t *m, const uint8_t *inputs, long count)        \
	{                                                                                                \
		return 0;                                                                                \
	}
#endif

GFNI(12)
GFNI(36)
