/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_quota: a client's accounts of memory, descriptors and images, the totals of
 * its user and groups in which it counts, and what is guaranteed to it.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_QUOTA_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/session/session.h"

struct config;
struct allowance;

/* Opens its accounts. 0, or an error number that *why explains: what is to be guaranteed does not
 * fit. Close them in any case; all zero, they are closed. */
uint32_t session_quota_open(struct session *session, struct error *why);
void session_quota_close(struct session *session);

/* Guarantees it so much memory, device's and host's, or changes nothing: 0, or an error number with
 * a sentence in why. */
uint32_t session_quota_guarantee(struct session *session, uint64_t memory, uint64_t host,
                                 struct error *why);

/* As it was a moment ago, whatever its totals say by now. False: others have taken some of it, and
 * what they have taken stays as it is. */
bool session_quota_restore(struct session *session, uint64_t memory, uint64_t host);

/* The totals that it would be in under a configuration (NULL: in none). 0 or -ENOMEM. */
int session_quota_find_totals(struct session *session, const struct config *config,
                              struct session_totals *totals);
void session_quota_drop_totals(struct server *server, struct session_totals *totals);

/* It is in these from now on, and *totals are those that it was in. */
void session_quota_swap_totals(struct session *session, struct session_totals *totals);

/* What these limits of a total come to on this device, in bytes. */
uint64_t session_quota_total_memory(const struct device *device, const struct allowance *limits);

/* Gives all totals their limits. */
void session_quota_limit_totals(struct server *server, const struct config *config);

/* Explains in *why that so much more memory can't be charged; returns out_of_memory. */
uint32_t session_quota_refuse(const struct session *session, const struct quota *culprit,
                              uint64_t asked, struct error *why);

#endif
