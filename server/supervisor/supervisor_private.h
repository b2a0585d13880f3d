/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor_private: the one object that holds all others. Only the files that carry out what
 * supervisor, clients, view, change, owner_total, trace, reading and reload promise include it.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/error.h"
#include "server/supervisor/config/copies.h"
#include "server/supervisor/worker/discovery.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/saved.h"
#include "server/supervisor/supervisor.h"

struct reload;
struct reload_file;

struct supervisor {
    struct server server;
    struct supervisor_events events;
    uint32_t next_number;     /* number of the latest session */
    uint32_t over_limit;      /* sessions that are kept only until their hello is refused */
    uv_prepare_t before_wait; /* the loop's turn: before it sleeps */
    uv_check_t after_wait;    /* the loop's turn: after callbacks of descriptors */
    uint8_t uuids[DEVICES_MAX][LIMITS_UUID_BYTES];
    struct reload *reload;           /* the reload under way, or NULL */
    struct reload_file *reload_file; /* the one whose file is being read, or NULL */
    struct {
        uint32_t clients, settings;
    } reloaded; /* how many the latest reload of the file changed; view.h */
    struct {
        struct error why; /* number 0: the file was not refused when it was read last */
        bool copied;      /* the copy of the last server's is in force since */
    } refused;            /* of the configuration file */
    struct copies copies; /* with server.keeper */
    struct saved *saved;  /* empty until admin_saved_restore has read it */
    bool ready, stopping, stopped;
    bool tells_ready; /* when what is kept says so, too */
    struct discovery discovery;
    struct kept kept_server, kept_overrides, kept_offenders;
    uint64_t epoch;      /* servers before this one, in a row */
    bool took_over;      /* and nothing was committed since */
    uv_timer_t show;     /* shows workers that there is a server, where they outlive it */
    uint64_t started_at; /* the first server of the row */
    uint64_t process_started_at;
};

/* The part of supervisor_start that starts no worker: tests adopt fake workers afterwards. */
uint32_t supervisor_add_devices(struct supervisor *supervisor, const struct discovery *discovery,
                                bool taking_over, struct error *why);

#endif
