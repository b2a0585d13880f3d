/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * recording: a trace as a worker wrote it (protocol.xml: trace_header, trace_record). It is copied
 * from the worker's memory, then checked and sorted. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_TRACE_RECORDING_H
#define GPUSHARE_CLIENT_TOOLS_TRACE_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol.h"

enum recording_kind {
    RECORDING_SPAN = PROTO_TRACE_KIND_SPAN,
    RECORDING_LEASE = PROTO_TRACE_KIND_LEASE,
    RECORDING_HOLD = PROTO_TRACE_KIND_HOLD,
    RECORDING_SM_GROUPS = PROTO_TRACE_KIND_SM_GROUPS,
    RECORDING_MODE = PROTO_TRACE_KIND_MODE,
    RECORDING_RECOVERY = PROTO_TRACE_KIND_RECOVERY,
};

enum { RECORDING_HOLDS = PROTO_HOLD_COUNT, RECORDING_LANES = 256 };

struct recording {
    struct proto_trace_header header;   /* a copy; mode is a known one */
    struct proto_trace_record *records; /* sorted by `from`; within [started, ended] */
    size_t count;
    uint64_t lost;    /* records that did not fit */
    uint64_t damaged; /* records that were not finished, or have impossible values */
    /* When the trace ended; the latest time in a record if the worker did not end it. */
    uint64_t ended;
};

/* Reads a trace. fd: the trace's memory, which stays the caller's. Returns 0, and recording_free
 * frees the recording; or an error number that *why explains, and then there is nothing to free. */
uint32_t recording_read(struct recording *recording, int fd, struct error *why);
void recording_free(struct recording *recording);

/* The name of a mode: "concurrent", "strict", "fair" or "turns". The name of a reason to wait:
 * "lease", "duty", "priority" or "threads". Static. */
const char *recording_mode_name(uint32_t mode);
const char *recording_hold_name(uint32_t why);

#endif
