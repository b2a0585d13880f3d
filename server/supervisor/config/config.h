/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config: the administrator's file, gpushared.yaml, read and checked.
 *
 * A configuration is read whole or not at all, and never changes after config_resolve. A setting
 * that this version can't enforce is refused, not ignored. docs/configuration.md has the file's
 * form and meaning, schemas/gpushared-config.schema.json its schema. Failures are one sentence
 * "FILE:LINE: reason". One thread at a time. config_parse does no I/O,
 * but names of users and groups are looked up (common/id_name.h), which can take a while where the
 * directory is on another machine.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_CONFIG_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/limits.h"
#include "server/supervisor/config/limits.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/config/tree.h"

#define CONFIG_PATH         "/etc/gpushare/gpushared.yaml"
#define CONFIG_PROFILES_MAX 256
#define CONFIG_RULES_MAX    1024
#define CONFIG_ITEMS_MAX    256 /* items of a list in a rule */
#define CONFIG_PATTERN_MAX  1024
#define CONFIG_NO_PROFILE   UINT32_MAX

struct config_profile {
    char name[LIMITS_NAME_MAX + 1];
    struct allowance limits;
};

struct config_gpu {
    unsigned line;
    char said[72];                 /* the GPU's name in the file */
    struct limits_selector device; /* its ordinals are those of the server's devices */
    struct allowance limits;       /* for every client on it */
    struct schedule schedule;      /* only the parts in schedule_parts are set */
    unsigned schedule_parts;       /* bits of enum schedule_part */
};

struct config_range {
    uint32_t first, last;
};

/* The clients that a rule matches: each list that is not empty must have an item that fits. */
struct config_match {
    struct config_range *uids, *gids;
    char **cgroups, **names; /* patterns */
    size_t uid_count, gid_count, cgroup_count, name_count;
};

struct config_rule {
    unsigned line;
    struct config_match match;
    bool excepts;
    struct config_match except;
    uint32_t profile; /* index, or CONFIG_NO_PROFILE */
    bool per_client;  /* each of these clients is an account of its own */
    struct allowance limits;
};

/* The limits of a total: of all clients of a user, or of a group's members, together. */
struct config_total {
    struct config_range *ids; /* NULL: each user or each group has this total */
    size_t id_count;
    struct allowance limits; /* time, threads and memory (for each GPU), and host_memory */
};

/* The shares of all clients in one cgroup: each path that a pattern fits is a cgroup. */
struct config_cgroup {
    char **patterns;
    size_t pattern_count;
    struct allowance limits; /* time and threads */
};

struct config_accounting {
    char *file;           /* that clients' use is appended to; NULL: not said */
    uint64_t interval_ns; /* between two lines of a client; 0: not said */
};

struct config {
    char *file; /* its path, for messages */
    char *text; /* what config_load read; NULL after config_parse */
    size_t text_bytes;
    struct config_tree tree;  /* the text as it was read */
    unsigned time_line;       /* the first line that asks for time; 0: none does */
    struct allowance clients; /* limits of every client */
    struct allowance shared;  /* limits of every client, from NVIDIA's block `sharing` */
    bool time_sliced;         /* that block asks for time slicing */
    struct config_gpu *gpus;
    struct config_profile *profiles;
    struct config_rule *rules;
    struct config_total *users, *groups;
    struct config_cgroup *cgroups;
    struct config_accounting accounting;
    size_t gpu_count, profile_count, rule_count, user_count, group_count, cgroup_count;
    /* For each device, set by config_resolve: */
    struct allowance ceilings[DEVICES_MAX];
    struct schedule schedules[DEVICES_MAX];
    unsigned schedule_parts[DEVICES_MAX]; /* that the file sets; bits of schedule_part */
    unsigned device_count;
};

/* Reads a text. After an error *out is NULL. */
uint32_t config_parse(struct config **out, const char *file, const char *text, size_t bytes,
                      struct error *why);

/* Reads a file, which must be a regular one. */
uint32_t config_load(struct config **out, const char *path, struct error *why);

/*
 * Finds the GPUs that the file names among the server's, and how each is shared: as
 * `unsaid` in what the file does not say. To be called once before config_rules_choose. It is an
 * error if a GPU does not exist or is named twice.
 */
uint32_t config_resolve(struct config *config, const struct schedule *unsaid,
                        const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count,
                        struct error *why);

/* The profile of this name, of those that have been read; NULL: there is none. */
const struct config_profile *config_find_profile(const struct config *config, const char *name);

/* How a device is shared by a configuration; by `unsaid` if config is NULL. */
const struct schedule *config_schedule(const struct config *config, uint32_t device,
                                       const struct schedule *unsaid);

/* Frees a configuration. NULL is allowed. */
void config_free(struct config *config);

#endif
