/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * refusal: why a request of the supervisor is not carried out, in one sentence for the
 * client's "failed". Any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_REFUSAL_H
#define GPUSHARE_SERVER_WORKER_REFUSAL_H

#include <stdint.h>

#include "common/cuda_driver.h"
#include "protocol.h"

struct refusal {
    char text[sizeof((struct proto_failed){0}.text)];
};

/* Writes the sentence; returns error, so that a function can end with it. */
uint32_t refusal_say(struct refusal *why, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "CALL: what the driver says"; returns the error number of the result. */
uint32_t refusal_from_cuda(struct refusal *why, const char *call, cuda_result result);

#endif
