/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * saved: what administrators have set with `gpusharectl set --save`, and the GPUs that they drain,
 * in a file that outlives the server. The idea is systemctl set-property's: a change holds at once
 * and after the next start.
 *
 * The file is a JSON object with an object for each kind below; its members are GPUs by UUID, users
 * by uid, groups by gid and control groups by path. Each has the values of the request that set it,
 * as they were written; one that is drained has the name of the administrator who drains it:
 * {"schema_version": 1, "gpus": {"GPU-...": {"mode": "fair"}},
 *  "users": {"1001": {"memory": {"limit": "4G"}}}, "groups": {}, "cgroups": {},
 *  "drained": {"GPU-...": {"by": "uid 0 (pid 17)"}}}
 *
 * A file that can't be read stays as it is: nothing is kept until somebody has mended or removed
 * it. Loop thread; the file is written on another one.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SAVED_H
#define GPUSHARE_SERVER_SUPERVISOR_SAVED_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <uv.h>

#include "common/error.h"
#include "common/list.h"
#include "server/supervisor/account/total_override.h"

enum saved_kind { SAVED_GPU, SAVED_USER, SAVED_GROUP, SAVED_CGROUP, SAVED_DRAINED, SAVED_KINDS };

/* The name of an object is its GPU's UUID as limits_format_uuid writes it, its uid or gid, or the
 * path of its control group. */
enum { SAVED_NAME = ACCOUNT_CGROUP_MAX + 1 };

struct saved {
    uv_loop_t *loop;
    char folder[PATH_MAX]; /* "": there is none */
    char file[PATH_MAX];   /* its path, for messages */
    json_t *document;      /* what is to be kept */
    json_t *written;       /* what the file has; NULL: nothing */
    struct queue writes;   /* that have not ended; the first one is under way */
    struct error trouble;  /* number 0: the file was read, or there was none */
    int failed;            /* why the latest write failed: an errno; 0: it did not */
};

/* result: 0, or -errno of what failed. */
typedef void saved_done(void *context, int result);

/* Reads the file of a folder, which need not exist; NULL or "": nothing can be kept. Returns 0, or
 * an error number that *why explains; *saved can be used then, but keeps nothing. */
uint32_t saved_open(struct saved *saved, uv_loop_t *loop, const char *folder, struct error *why);

/* No write is under way. Does nothing for one that is all zero. */
void saved_close(struct saved *saved);

/* 0, or an error number: why nothing can be kept. */
uint32_t saved_check(const struct saved *saved, struct error *why);

/* All objects of a kind, by name; NULL: there are none. They stay the saved's own, and are only
 * read. */
json_t *saved_all(const struct saved *saved, enum saved_kind kind);

/* The values of an object that the file has, which could not be written after every change; NULL:
 * none. They stay the saved's own, and are only read. */
json_t *saved_written(const struct saved *saved, enum saved_kind kind, const char *name);

/* Keeps values beside those that are kept of the object; one that is kept already is replaced.
 * Returns 0 or -ENOMEM. The file is not written. */
int saved_put(struct saved *saved, enum saved_kind kind, const char *name, const json_t *values);

/* Keeps a value no longer, or only one member of it; member: NULL for the whole. Returns whether it
 * was kept. The file is not written. */
bool saved_take(struct saved *saved, enum saved_kind kind, const char *name, const char *value,
                const char *member);

/* The kind of an owner of totals, and its name, which is written and returned. */
enum saved_kind saved_kind_of(const struct account_owner *owner);
const char *saved_name_of(const struct account_owner *owner, char name[SAVED_NAME]);

/* The same as saved_take of parts of a GPU's schedule (bits of enum schedule_part), and of an
 * owner's totals (RESOURCE_BITs), all members. */
bool saved_take_schedule(struct saved *saved, const char *uuid, unsigned parts);
bool saved_take_totals(struct saved *saved, const struct account_owner *owner, unsigned parts);

/* Keeps nothing any more of what was set; what is drained stays so. Returns whether something was
 * kept. The file is not written. */
bool saved_clear(struct saved *saved);

/* Writes the file with what is kept now. Writes are carried out in order. done, which may be NULL,
 * is called once, from the loop and never before this function returns. Returns 0; or -ENOMEM,
 * and done is not called. */
int saved_write(struct saved *saved, saved_done *done, void *context);

#endif
