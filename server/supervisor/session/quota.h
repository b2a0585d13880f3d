/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_quota: a client's quotas of memory, descriptors and images, its membership in the
 * totals of its user and groups, and the memory that is guaranteed to it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_QUOTA_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "server/supervisor/session/session.h"

struct config;

/* Opens the client's quotas. Returns 0, or an error number that *why explains: memory is short,
 * or the guarantee does not fit. The caller closes the quotas in any case. Quotas that are all
 * zero may be closed too. */
uint32_t session_quota_open(struct session *session, struct error *why);
void session_quota_close(struct session *session);

/* Returns what its quotas are guaranteed, as requests with their sources; the rest is unset. */
struct allowance session_quota_guarantees(const struct session *session);

/* Guarantees each of its quotas what *wanted requests of it, or changes nothing: 0, or an error
 * number that *why explains. */
uint32_t session_quota_guarantee(struct session *session, const struct allowance *wanted,
                                 struct error *why);

/* Guarantees what was guaranteed a moment ago, even if the limits of the client's totals are lower
 * by now. False: other clients have taken some of the memory, so that part of the guarantee is not
 * restored. */
bool session_quota_restore(struct session *session, const struct allowance *before);

/* Finds the totals that the client would be in under a configuration; NULL: without one. Returns 0
 * and *totals for session_quota_drop_totals; or -ENOMEM. */
int session_quota_find_totals(struct session *session, const struct config *config,
                              struct session_totals *totals);
void session_quota_drop_totals(struct server *server, struct session_totals *totals);

/* The client counts in *totals from now on. Afterwards *totals has the totals that it was in. */
void session_quota_swap_totals(struct session *session, struct session_totals *totals);

/* The limit of a total, in bytes; of a device's resource, on this device, which is NULL
 * otherwise. */
uint64_t session_quota_total_limit(const struct allowance *limits, enum resource resource,
                                   const struct device *device);

/* Sets the limits of all totals, as the configuration and administrators say. */
void session_quota_limit_totals(struct server *server, const struct config *config);

/* The most of a resource that all clients together can have, in bytes. The session has a device. */
uint64_t session_quota_whole(const struct session *session, enum resource resource);

/* Explains in *why that no more memory can be charged: the quota *culprit lacks `asked` bytes.
 * Returns the number of out_of_memory. */
uint32_t session_quota_refuse(const struct session *session, const struct quota *culprit,
                              uint64_t asked, struct error *why);

/* Explains in *why that an allocation of `asked` bytes has no room: a quota of memory or of file
 * descriptors lacks it, or, for NULL, the client's window of addresses. resource: the memory's. */
uint32_t session_quota_refuse_room(const struct session *session, enum resource resource,
                                   const struct quota *culprit, uint64_t asked, struct error *why);

#endif
