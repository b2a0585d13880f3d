/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/copies.h"

#include "server/supervisor/config/accepted.h"

/* A try writes a megabyte at most, and only while the warning stands. */
#define AGAIN_MS 5000

static void write_config(struct copies *copies, bool again)
{
    copies->config_failed = -accepted_keep(copies->folder, *copies->config, again);
}

static void write_start(struct copies *copies, bool again)
{
    copies->start_failed = -accepted_keep_start(copies->folder, copies->argv, again);
}

static void try_again(uv_timer_t *timer)
{
    struct copies *copies = timer->data;
    if (copies->config_failed)
        write_config(copies, true);
    if (copies->start_failed)
        write_start(copies, true);
    if (!copies->config_failed && !copies->start_failed)
        uv_timer_stop(timer);
}

static void watch(struct copies *copies)
{
    if ((copies->config_failed || copies->start_failed) &&
        !uv_is_active((const uv_handle_t *)&copies->again))
        uv_timer_start(&copies->again, try_again, AGAIN_MS, AGAIN_MS);
}

void copies_open(struct copies *copies, uv_loop_t *loop, const char *folder,
                 struct config *const *config)
{
    *copies = (struct copies){.folder = folder, .config = config};
    uv_timer_init(loop, &copies->again);
    copies->again.data = copies;
}

void copies_close(struct copies *copies)
{
    uv_close((uv_handle_t *)&copies->again, NULL);
}

void copies_keep_config(struct copies *copies)
{
    write_config(copies, false);
    watch(copies);
}

void copies_keep_start(struct copies *copies, char *const *argv)
{
    copies->argv = argv;
    write_start(copies, false);
    watch(copies);
}
