/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * id_name: the names of users and groups, as this system's directories have them (passwd(5), LDAP
 * and others, see nsswitch.conf(5)).
 *
 * A lookup can take as long as the slowest directory does. Any thread.
 */
#ifndef GPUSHARE_COMMON_ID_NAME_H
#define GPUSHARE_COMMON_ID_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum id_name_kind { ID_NAME_USER, ID_NAME_GROUP };

/* Whether the text can be a name: it has something beside digits and dashes. Other texts are
 * numbers and ranges, maybe wrong ones, and are not looked up. */
bool id_name_is_possible(const char *text);

/* Stores the uid or gid of this name. Returns 0, or the number that it set in *why: there is no
 * such name, or the lookup failed. *id is then unchanged. */
uint32_t id_name_find(enum id_name_kind kind, const char *name, uint32_t *id, struct error *why);

/* The name of a uid or gid, malloc'ed; NULL where it has none, or the lookup failed. */
char *id_name_of(enum id_name_kind kind, uint32_t id);

#endif
