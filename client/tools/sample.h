/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sample: the clients at two moments, and the part of the time between in which the GPU worked for
 * them. The server counts GPU time and keeps no history of it. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_SAMPLE_H
#define GPUSHARE_CLIENT_TOOLS_SAMPLE_H

#include <jansson.h>
#include <stdint.h>

/* Between the two moments, for sample_take. */
#define SAMPLE_BETWEEN_NS 500000000L

struct sample {
    json_t *before, *after; /* two answers to "clients", which may be one, or NULL; owned */
};

/* Asks the server at `socket`, waits until SAMPLE_BETWEEN_NS after that, and asks again. Without
 * clients it does not wait. first: an answer that is there already, which stays the caller's, or
 * NULL; first_at: when it was asked for, by clock_now; 0: that is not known, and now counts. */
void sample_take(struct sample *sample, const char *socket, json_t *first, uint64_t first_at);
void sample_free(struct sample *sample);

/* A client's GPU time as a part of the time between, 0 to 1. client: its row of `after`. Negative
 * if that is not known: it came in between, or its worker does not answer. */
double sample_client_share(const struct sample *sample, const json_t *client);

/* The part of a device's multiprocessors that clients used, 0 to 1: each one's share, times the
 * multiprocessors that it has now. device: its row of `status`. Negative if it is not known of some
 * client. */
double sample_device_share(const struct sample *sample, const json_t *device);

/* The use that some clients made of a device in the time between: the part of the time in which it
 * worked for them, 0 to 1, and the multiprocessors that they kept busy. Both negative: it is not
 * known of some of them. */
struct sample_use {
    double time, multiprocessors;
};

/* The use of a user's clients. user, device: its uid and its index. */
struct sample_use sample_user_use(const struct sample *sample, const json_t *user,
                                  const json_t *device);

#endif
