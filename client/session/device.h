/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: the devices of the server, and those of them that this process can see. Any thread.
 */
#ifndef GPUSHARE_CLIENT_SESSION_DEVICE_H
#define GPUSHARE_CLIENT_SESSION_DEVICE_H

#include <stdint.h>

#include "client/gpushare.h"
#include "client/session/environment.h"
#include "client/session/session.h"

struct device_survey {
    unsigned visible;                  /* number of visible devices */
    unsigned there;                    /* number of the server's devices */
    const char *visible_from;          /* the variable that chose among them, or NULL */
    bool hidden;                       /* it names no device at all */
    char unseen[LIMITS_SELECTOR_TEXT]; /* a device with a limit of memory that is not among the
                                          visible ones, for a sentence; "" for none */
    unsigned indices[DEVICES_MAX];     /* the server's index of visible device i */
    /* limit that the environment asks for, in bytes; or PROTO_UNSET */
    uint64_t memory[DEVICES_MAX];
    struct proto_device_info info[DEVICES_MAX]; /* by the server's index */
    struct proto_kernel_heap heap[DEVICES_MAX]; /* servers before 2.4 don't tell: 0 */
    uint32_t error[DEVICES_MAX];                /* why the server can't describe the device, or 0 */
    char text[DEVICES_MAX][128];                /* the beginning of that error's sentence */
};

/* Asks the server about all its devices, and applies the environment to them. */
gpushare_error device_survey(struct session *session, const struct proto_welcome *welcome,
                             const struct environment *environment, struct device_survey *survey);

/* Finds the server's index of the visible device `ordinal`. Returns INVALID_DEVICE, NO_DEVICE,
 * or the error that the server gave for this device, such as DEVICE_NOT_READY. */
gpushare_error device_choose(const struct device_survey *survey, uint32_t ordinal, uint32_t *index);

/* Writes the whole public description of the device that device_choose found. device->size becomes
 * the size of this library's struct. */
void device_describe(const struct device_survey *survey, uint32_t index, uint32_t ordinal,
                     struct gpushare_device *device);

/*
 * Open a session, ask the server, and close the session. options: a whole struct, not NULL. They
 * return the errors of environment_read, session_dial, device_survey and device_choose. Results are
 * written on success only. Any thread.
 */
gpushare_error device_count(const struct gpushare_options *options, uint32_t *count);
gpushare_error device_query(const struct gpushare_options *options, struct gpushare_device *device);

#endif
