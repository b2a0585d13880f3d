/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_rules: which limits of a configuration hold for a client.
 *
 * Every rule that fits applies, and so do the ceilings and the profile that the
 * client asks for; in each respect the strictest holds. The order of rules means
 * nothing, and a client's name, which it chooses itself, can tighten and never free.
 * Of a client that the kernel does not identify every rule is taken to fit; but what
 * is not certain to be meant for it gives it no request.
 * Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_RULES_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/config/config.h"

/* A client. The kernel vouches for all but its name and profile, which it chose itself. */
struct config_who {
    bool identified; /* false: pid or uid could not be seen from here; every rule fits */
    uint32_t uid;
    const uint32_t *gids; /* NULL: not known, every gid fits */
    size_t gid_count;
    const char *cgroup;  /* path; NULL: not known, every pattern fits */
    const char *name;    /* "": none */
    const char *profile; /* that it asks for; "": none */
};

/*
 * '*' stands for any text without '/'. whole: the pattern must fit all of the text,
 * otherwise it may also end before a '/' of it ("/a" fits "/a/b", and "/" all).
 */
bool config_rules_pattern_fits(const char *pattern, const char *text, bool whole);

/* 0; -ENOENT: there is no such profile. device < config->device_count. */
int config_rules_choose(const struct config *config, uint32_t device, const struct config_who *who,
                        struct allowance *limits);

/* No user and no group has this number; every entry of totals fits it. */
#define CONFIG_ID_UNKNOWN UINT32_MAX

/* The limit of a user or a group in total: the strictest of the entries that fit. False: none
 * does. */
bool config_rules_total(const struct config_total *totals, size_t count, uint32_t id,
                        struct allowance *limits);

#endif
