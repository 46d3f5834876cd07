/* SPDX-License-Identifier: GPL-2.0 */
/* Calls of ioctl(2) on the nodes. Not built: 1 to 3, performance counters; 7 and 8, apertures. */
#ifndef XEMU_UAPI_H
#define XEMU_UAPI_H

#include <linux/ioctl.h>

#define XEMU_PERF_START		_IOW('q', 1, void *)
#define XEMU_PERF_STOP		_IOW('q', 2, void *)
#define XEMU_PERF_GET		_IOR('q', 3, void *)
#define XEMU_ADDRMODE_SET	_IOW('q', 4, int)	/* 0 memory, 1 fixed address */
#define XEMU_ADDRMODE_GET	_IOR('q', 5, int)
#define XEMU_ALIGN_GET		_IOR('q', 6, int)
#define XEMU_APERTURE_R		_IOW('q', 7, void *)
#define XEMU_APERTURE_W		_IOW('q', 8, void *)

#endif
