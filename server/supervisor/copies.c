/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/copies.h"

#include "server/supervisor/config/accepted.h"
#include "server/supervisor/supervisor_private.h"

/* A try writes a megabyte at most, and only while the warning stands. */
#define AGAIN_MS 5000

static void write_config(struct supervisor *supervisor, bool again)
{
    supervisor->copies.config_failed =
        -accepted_keep(supervisor->server.settings->state, supervisor->server.config, again);
}

static void write_start(struct supervisor *supervisor, bool again)
{
    supervisor->copies.start_failed =
        -accepted_keep_start(supervisor->server.settings->state, supervisor->copies.argv, again);
}

static void try_again(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    struct copies *copies = &supervisor->copies;
    if (copies->config_failed)
        write_config(supervisor, true);
    if (copies->start_failed)
        write_start(supervisor, true);
    if (!copies->config_failed && !copies->start_failed)
        uv_timer_stop(timer);
}

static void watch(struct copies *copies)
{
    if ((copies->config_failed || copies->start_failed) &&
        !uv_is_active((const uv_handle_t *)&copies->again))
        uv_timer_start(&copies->again, try_again, AGAIN_MS, AGAIN_MS);
}

void copies_open(struct supervisor *supervisor)
{
    uv_timer_init(supervisor->server.loop, &supervisor->copies.again);
    supervisor->copies.again.data = supervisor;
}

void copies_close(struct supervisor *supervisor)
{
    uv_close((uv_handle_t *)&supervisor->copies.again, NULL);
}

void copies_keep_config(struct supervisor *supervisor)
{
    write_config(supervisor, false);
    watch(&supervisor->copies);
}

void copies_keep_start(struct supervisor *supervisor, char *const *argv)
{
    supervisor->copies.argv = argv;
    write_start(supervisor, false);
    watch(&supervisor->copies);
}
