/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The frame that an XDP program runs on, for the parser. */
#ifndef RXLANE_XDP_FRAME_H
#define RXLANE_XDP_FRAME_H

#include "common.h"
#include "kernel.h"

INLINE struct frame frame_of(struct context *context)
{
	struct xdp_md *ctx = (struct xdp_md *)context;

	return (struct frame){ (const u8 *)(long)ctx->data, (const u8 *)(long)ctx->data_end, context };
}

INLINE u64 frame_length(const struct frame *frame)
{
#ifdef RXLANE_FRAGS
	return bpf_xdp_get_buff_len((struct xdp_md *)frame->context);
#else
	return frame->end - frame->start;
#endif
}

#endif
