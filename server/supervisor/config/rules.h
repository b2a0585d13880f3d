/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_rules: which limits of a configuration hold for a client.
 *
 * Every rule that fits applies, and so do the ceilings and the profile that the client asks for;
 * for each value the strictest one holds. So the order of rules means nothing, and a client's name,
 * which it chooses itself, can tighten a limit and never lift one.
 *
 * For a client that the kernel does not identify, every rule counts as fitting. But a rule that is
 * not certain to be meant for the client gives it no request. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_RULES_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/config/config.h"

/* A client. The kernel vouches for all members but name and profile, which the client chose. */
struct config_who {
    bool identified; /* false: its pid or uid is not visible from here, so every rule fits */
    uint32_t uid;
    const uint32_t *gids; /* NULL: not known, so every gid fits */
    size_t gid_count;
    const char *cgroup;  /* path; NULL: not known, so every pattern fits */
    const char *name;    /* "": none */
    const char *profile; /* the profile that it asks for; "": none */
};

/*
 * Whether a pattern fits a text. '*' stands for any text without '/'. whole: the pattern must fit
 * all of the text. Otherwise it may also end before a '/' of the text: "/a" fits "/a/b", and "/"
 * fits all.
 */
bool config_rules_pattern_fits(const char *pattern, const char *text, bool whole);

/* Computes the limits for a client on a device (device < config->device_count), after
 * config_resolve. Returns 0, or -ENOENT if the profile that the client asks for does not exist. */
int config_rules_choose(const struct config *config, uint32_t device, const struct config_who *who,
                        struct allowance *limits);

/* Writes the names of the profiles that hold for a client: those of the rules that apply to it, and
 * the one that it asks for. ", " between two; cut to fit. Returns text. */
char *config_rules_profiles(const struct config *config, const struct config_who *who, char *text,
                            size_t bytes);

/* Whether the client is to be an account of its own: a rule that is certain to be meant for it says
 * so. */
bool config_rules_per_client(const struct config *config, const struct config_who *who);

/* How much of a cgroup's path, in bytes, a pattern stands for: as many of its folders as the
 * pattern names; 0: the pattern does not fit. */
size_t config_rules_pattern_covers(const char *pattern, const char *path);

/* How much of a path the control group covers that an entry makes an account; 0: it does not fit.
 */
size_t config_rules_cgroup_covers(const struct config_cgroup *entry, const char *path);

/* Computes the shares of the control group with this path: the strictest of the entries that make
 * it an account; NULL: of all entries. */
void config_rules_cgroup(const struct config *config, const char *path, struct allowance *limits);

/* Stands for clients that can't be identified: no user and no group has this number, and every
 * entry of totals fits it. */
#define CONFIG_ID_UNKNOWN UINT32_MAX

/* Whether an entry is about this user or group. */
bool config_rules_total_fits(const struct config_total *total, uint32_t id);

/* Computes the limits of a user's or group's total: the strictest of the entries that fit. Returns
 * false, and limits that are not set, if no entry fits. */
bool config_rules_total(const struct config_total *totals, size_t count, uint32_t id,
                        struct allowance *limits);

#endif
