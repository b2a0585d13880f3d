/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* failed: the refusal of a request, as a peer that a test plays sends it. */
#ifndef GPUSHARE_TESTS_SUPPORT_FAILED_H
#define GPUSHARE_TESTS_SUPPORT_FAILED_H

#include <stdarg.h>
#include <stdio.h>

#include "common/ipc/channel.h"

/* Sends "failed", with a sentence that is cut to the size of its field. Returns as channel_send. */
__attribute__((format(printf, 5, 6))) static inline int
failed_send(int fd, uint64_t serial, uint32_t client, uint32_t error, const char *format, ...)
{
    struct proto_failed body = {.error = error};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body.text, sizeof body.text, format, arguments);
    va_end(arguments);
    return channel_send(
        fd, &(struct channel_packet){
                .opcode = PROTO_FAILED, .serial = serial, .client = client, .body = &body});
}

#endif
