/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * copies: the copies of the configuration in force and of this server's start, which a server that
 * takes over may need (accepted.h). One that can't be written is tried again every few
 * seconds, for the disk may only be full for a while; administrators are warned meanwhile
 * (view_warning). Only where a keeper is. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_COPIES_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_COPIES_H

#include <uv.h>

struct config;

struct copies {
    uv_timer_t again;
    const char *folder;           /* as accepted_keep takes it */
    struct config *const *config; /* what is in force */
    int config_failed;            /* why the last try failed: an errno; 0: it did not */
    int start_failed;             /* the same of what the server was started with */
    char *const *argv;            /* of the start; NULL: it is not kept */
};

/* folder, and where the configuration in force stands, are borrowed until copies_close. The timer
 * is closed when the loop has run after that. */
void copies_open(struct copies *copies, uv_loop_t *loop, const char *folder,
                 struct config *const *config);
void copies_close(struct copies *copies);

/* Keeps the configuration that is in force now. */
void copies_keep_config(struct copies *copies);

/* Keeps what this server was started with. argv: borrowed until copies_close, ended by NULL. */
void copies_keep_start(struct copies *copies, char *const *argv);

#endif
