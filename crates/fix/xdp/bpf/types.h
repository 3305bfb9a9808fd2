/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Integers, and the field types of headers. A field that is compared with numbers from a registry is a structure of its
 * own, in network byte order: an EtherType does not compile where an IP protocol is expected. Its member is a whole word,
 * so that a register that was loaded from 8 or 16 bits is not masked again.
 */
#ifndef RXLANE_TYPES_H
#define RXLANE_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define INLINE static inline __attribute__((always_inline))
#define RARE(condition) __builtin_expect(!!(condition), 0)
#define USUAL(condition) __builtin_expect(!!(condition), 1)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE16(number) ((u16)(((number) & 0xff) << 8 | ((number) >> 8 & 0xff)))
#define FROM_BE16(field) ((u16)__builtin_bswap16(field))
#else
#define BE16(number) ((u16)(number))
#define FROM_BE16(field) ((u16)(field))
#endif

/*
 * The same number or address, of which the compiler knows nothing more: it neither narrows it, nor puts a constant in its
 * place behind a comparison, nor joins comparisons to a switch, nor computes early what is needed late. No instruction.
 */
#define OPAQUE(value) \
	({ \
		__typeof__(value) opaque_ = (value); \
		asm("" : "+r"(opaque_)); \
		opaque_; \
	})

/* IANA "IEEE 802 Numbers" */
struct ethertype {
	u32 be;
};
#define ETHERTYPE(number) ((struct ethertype){ BE16(number) })
#define ETHERTYPE_IPV4 ETHERTYPE(0x0800)
#define ETHERTYPE_VLAN ETHERTYPE(0x8100)
#define ETHERTYPE_IPV6 ETHERTYPE(0x86dd)
#define ETHERTYPE_MPLS ETHERTYPE(0x8847)
#define ETHERTYPE_MPLS_UPSTREAM ETHERTYPE(0x8848)
#define ETHERTYPE_PPPOE_DISCOVERY ETHERTYPE(0x8863)
#define ETHERTYPE_PPPOE_SESSION ETHERTYPE(0x8864)
#define ETHERTYPE_SERVICE_VLAN ETHERTYPE(0x88a8)

INLINE int is_ethertype(struct ethertype found, struct ethertype wanted)
{
	return found.be == wanted.be;
}

/* IEEE 802.1Q and 802.1ad, and the three that vendors used for outer tags before 802.1ad. */
INLINE int is_tag(struct ethertype type)
{
	return is_ethertype(type, ETHERTYPE_VLAN) || is_ethertype(type, ETHERTYPE_SERVICE_VLAN) ||
	       is_ethertype(type, ETHERTYPE(0x9100)) || is_ethertype(type, ETHERTYPE(0x9200)) ||
	       is_ethertype(type, ETHERTYPE(0x9300));
}

INLINE int is_mpls(struct ethertype type)
{
	return is_ethertype(type, ETHERTYPE_MPLS) || is_ethertype(type, ETHERTYPE_MPLS_UPSTREAM);
}

/* IANA "Point-to-Point (PPP) Protocol Field Assignments" */
struct ppp_protocol {
	u32 be;
};
#define PPP_PROTOCOL(number) ((struct ppp_protocol){ BE16(number) })
#define PPP_IPV4 PPP_PROTOCOL(0x0021)
#define PPP_IPV6 PPP_PROTOCOL(0x0057)
#define PPP_MPLS PPP_PROTOCOL(0x0281)
#define PPP_MPLS_MULTICAST PPP_PROTOCOL(0x0283)

INLINE int is_ppp_protocol(struct ppp_protocol found, struct ppp_protocol wanted)
{
	return found.be == wanted.be;
}

/* IANA "Assigned Internet Protocol Numbers" */
struct ip_protocol {
	u32 number;
};
#define IP_PROTOCOL(value) ((struct ip_protocol){ value })
#define IP_HOP_BY_HOP IP_PROTOCOL(0)
#define IP_TCP IP_PROTOCOL(6)
#define IP_UDP IP_PROTOCOL(17)
#define IP_ROUTING IP_PROTOCOL(43)
#define IP_FRAGMENT IP_PROTOCOL(44)
#define IP_AUTHENTICATION IP_PROTOCOL(51)
#define IP_DESTINATION_OPTIONS IP_PROTOCOL(60)
#define IP_SCTP IP_PROTOCOL(132)

INLINE int is_ip_protocol(struct ip_protocol found, struct ip_protocol wanted)
{
	return found.number == wanted.number;
}

/* Whether the header starts with two ports: RFC 9293, RFC 768, RFC 9260. */
INLINE int has_ports(struct ip_protocol protocol)
{
	return is_ip_protocol(protocol, IP_TCP) || is_ip_protocol(protocol, IP_UDP) ||
	       is_ip_protocol(protocol, IP_SCTP);
}

/* Extension headers of IPv6 (RFC 8200 section 4), and AH, which IPv4 has too (RFC 4302). */
INLINE int is_extension(struct ip_protocol protocol)
{
	return is_ip_protocol(protocol, IP_HOP_BY_HOP) || is_ip_protocol(protocol, IP_ROUTING) ||
	       is_ip_protocol(protocol, IP_FRAGMENT) || is_ip_protocol(protocol, IP_AUTHENTICATION) ||
	       is_ip_protocol(protocol, IP_DESTINATION_OPTIONS);
}

/*
 * Fields stand at any address. On the BPF target a plain load is one instruction (and what the verifier wants: on
 * processors that cannot load unaligned words it knows where NET_IP_ALIGN puts the IP header); elsewhere the compiler
 * has to know it.
 */
#ifdef __bpf__
#define LOAD(type, place) (*(const type *)(place))
#else
#define LOAD(type, place) \
	({ \
		type loaded_; \
		__builtin_memcpy(&loaded_, (place), sizeof(loaded_)); \
		loaded_; \
	})
#endif
#ifdef __bpf__
#define STORE(type, place, value) (*(type *)(place) = (value))
#else
#define STORE(type, place, value) \
	({ \
		type stored_ = (value); \
		__builtin_memcpy((place), &stored_, sizeof(stored_)); \
	})
#endif

INLINE u16 load_be16(const u8 *place)
{
	u64 number = FROM_BE16(LOAD(u16, place));

#ifdef __bpf__
	/* The verifiers of Linux 6.1 and 6.12 know no bound of a number whose bytes were swapped; clang drops a mask. */
	asm volatile("%0 &= 0xffff" : "+r"(number));
#endif
	return number;
}

INLINE struct ethertype load_ethertype(const u8 *place)
{
	return (struct ethertype){ LOAD(u16, place) };
}

INLINE struct ppp_protocol load_ppp_protocol(const u8 *place)
{
	return (struct ppp_protocol){ LOAD(u16, place) };
}

/* One load or store, neither torn nor left out nor repeated. */
#define READ_ONCE(place) (*(const volatile __typeof__(place) *)&(place))

/*
 * The same address, of which the verifier knows no more than that it is at most `most` bytes behind `start` (`most`
 * is a power of two less one, and holds). It takes the difference of two pointers for any number, and so follows what
 * comes next once, instead of once for every number of headers before.
 */
INLINE const u8 *forget(const u8 *start, const u8 *header, u64 most)
{
	return start + ((u64)(header - start) & most);
}

#endif
