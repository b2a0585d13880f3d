/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: which devices the server has, and which of them this process sees.
 */
#ifndef GPUSHARE_CLIENT_SESSION_DEVICE_H
#define GPUSHARE_CLIENT_SESSION_DEVICE_H

#include <stdint.h>

#include "client/session/environment.h"
#include "client/gpushare.h"
#include "client/session/session.h"

struct device_survey {
    unsigned visible;                     /* how many */
    unsigned indices[LIMITS_DEVICES_MAX]; /* the server's index of visible device i */
    uint64_t memory[LIMITS_DEVICES_MAX];  /* limit that the environment asks for; PROTO_UNSET */
    struct proto_device_info info[LIMITS_DEVICES_MAX]; /* by the server's index */
    uint32_t error[LIMITS_DEVICES_MAX];                /* why the server can't describe it, or 0 */
    char text[LIMITS_DEVICES_MAX][128];                /* the beginning of its sentence */
};

/* Asks the server about all its devices and applies the environment. */
gpushare_error device_survey(struct session *session, const struct proto_welcome *welcome,
                             const struct environment *environment, struct device_survey *survey);

/* Is `ordinal` a visible device that works? SUCCESS and the server's index, or INVALID_DEVICE,
 * NO_DEVICE, DEVICE_NOT_READY. */
gpushare_error device_choose(const struct device_survey *survey, uint32_t ordinal, uint32_t *index);

/* Into the public form; device->size is not touched. */
void device_describe(const struct proto_device_info *info, uint32_t ordinal,
                     struct gpushare_device *device);

/*
 * Hands a struct out to a caller that may know fewer members: `size` bytes of it,
 * with its size member kept. INVALID_VALUE (naming what) if size is not one.
 */
gpushare_error device_hand_out(void *to, const void *from, size_t bytes, const char *what);

#endif
