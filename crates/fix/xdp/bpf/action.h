/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What an XDP program decides. Numbers are those of the kernel's include/uapi/linux/bpf.h. */
#ifndef RXLANE_ACTION_H
#define RXLANE_ACTION_H

enum xdp_action {
	XDP_ABORTED,
	XDP_DROP,
	XDP_PASS,
	XDP_TX,
	XDP_REDIRECT,
};

#endif
