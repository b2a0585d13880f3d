/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * copies: the copies of the configuration in force and of this server's start, which a server that
 * takes over may need (config/accepted.h). One that can't be written is tried again every few
 * seconds, for the disk may only be full for a while; administrators are warned meanwhile
 * (view_warning). Only where a keeper is. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_COPIES_H
#define GPUSHARE_SERVER_SUPERVISOR_COPIES_H

#include <uv.h>

struct supervisor;

struct copies {
    uv_timer_t again;
    int config_failed; /* why the last try failed: an errno; 0: it did not */
    int start_failed;  /* the same of what the server was started with */
    char *const *argv; /* of the start; NULL: it is not kept */
};

/* The copies are all zero before, and the timer is closed when the loop has run after
 * copies_close. */
void copies_open(struct supervisor *supervisor);
void copies_close(struct supervisor *supervisor);

/* Keeps the configuration that is in force now. */
void copies_keep_config(struct supervisor *supervisor);

/* Keeps what this server was started with. argv: borrowed for the supervisor's life, ended by NULL.
 */
void copies_keep_start(struct supervisor *supervisor, char *const *argv);

#endif
