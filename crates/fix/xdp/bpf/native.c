// SPDX-License-Identifier: MIT OR GPL-2.0
/* The parser and the hash as a library of this machine, for tests that hold them to what the programs do. */
#include "common.h"
#include "envelope.h"

struct context {
	const u8 *start;
	u64 readable, length;
};

INLINE struct frame frame_of(struct context *context)
{
	return (struct frame){ context->start, context->start + context->readable, context };
}

INLINE u64 frame_length(const struct frame *frame)
{
	return frame->context->length;
}

/* Both in the order of ALL in layout.rs. */
const u32 REASONS[] = { REASON_STEERED,	  REASON_CLASS_LEFT, REASON_PPPOE_DISCOVERY, REASON_PPP_CONTROL,
			REASON_PPP_OTHER, REASON_NOT_IP,     REASON_TRUNCATED,	     REASON_MALFORMED,
			REASON_TOO_DEEP,  REASON_NO_CPU,     REASON_NOT_LINEAR };
const u32 CLASSES[] = { CLASS_PLAIN, CLASS_VLAN, CLASS_QINQ, CLASS_PPPOE, CLASS_MPLS };

struct decision {
	u32 reason;
	/* Of a steered frame. */
	u32 class;
	u64 bucket;
};

/*
 * Of the frame's `length` bytes the first `readable` are at `start`. Gives whether both ways through the parser say the
 * same; the class is only known to the long one.
 */
int decide(const u8 *start, u64 readable, u64 length, const u32 *key, u32 classes, u32 symmetric,
	   struct decision *decision)
{
	struct context context = { start, readable, length };
	struct settings settings = { .classes = classes, .symmetric = symmetric };
	u64 bucket;
	struct parsed parsed;

	__builtin_memcpy(settings.key, key, sizeof(settings.key));
	bucket = frame_bucket(&context, &settings);
	decision->reason = bucket < NO_BUCKET ? REASON_STEERED : bucket & ~NO_BUCKET;
	decision->class = parse_any(&context, classes, &parsed) == REASON_STEERED ? parsed.class : 0;
	decision->bucket = bucket;
	return bucket == bucket_of_any(&context, &settings);
}

/* Gives whether the frame is refused where payloads have at most `limit` bytes. */
int envelope(const u8 *start, u64 readable, u64 length, u32 limit, u32 *kind)
{
	struct context context = { start, readable, length };
	struct frame frame = frame_of(&context);
	struct enveloped found = envelope_of(&frame);

	*kind = found.kind;
	return is_too_long(&frame, &found, limit);
}
