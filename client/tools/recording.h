/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * recording: a trace as a worker wrote it (protocol.xml: trace_header, trace_record). It is copied
 * from the worker's memory, checked and sorted. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_RECORDING_H
#define GPUSHARE_CLIENT_TOOLS_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol.h"

enum recording_kind {
    RECORDING_SPAN = PROTO_TRACE_KIND_SPAN,
    RECORDING_LEASE = PROTO_TRACE_KIND_LEASE,
    RECORDING_HOLD = PROTO_TRACE_KIND_HOLD,
    RECORDING_SHARE = PROTO_TRACE_KIND_SHARE,
    RECORDING_MODE = PROTO_TRACE_KIND_MODE,
};

enum { RECORDING_HOLDS = PROTO_HOLD_COUNT, RECORDING_LANES = 256 };

struct recording {
    struct proto_trace_header header;   /* a copy; mode is a known one */
    struct proto_trace_record *records; /* in the order of `from`; within [started, ended] */
    size_t count;
    uint64_t lost;    /* records for which there was no room */
    uint64_t damaged; /* records that were begun and not finished, or have impossible values */
    uint64_t ended;   /* when the trace ended; if it was not ended, the latest time in a record */
};

/* fd: of the trace's memory; stays the caller's. Returns 0, or an error number that *why explains:
 * then there is nothing to free. */
uint32_t recording_read(struct recording *recording, int fd, struct error *why);
void recording_free(struct recording *recording);

/* "concurrent", "strict", "fair", "turns"; "lease", "duty", "priority", "threads". Static. */
const char *recording_mode_name(uint32_t mode);
const char *recording_hold_name(uint32_t why);

#endif
