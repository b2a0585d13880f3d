/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * outbox: lines on their way to a file (line_file.h), which outlive this process until they are in
 * it.
 *
 *   outbox_add ─> outbox_put, the keeper's commit ─> outbox_go: another thread writes
 *                                                          written ─> the next commit drops them
 *
 * A server that is killed before the commit makes the line again; one that is killed after it finds
 * the line here. Whether that line is in the file already, the file's end says. So each line is
 * there once, unless the file was moved away between the two servers. Without a keeper lines are
 * written as they come.
 *
 * While the file can't be written, lines wait, OUTBOX_MAX of them; later ones are lost, and
 * counted. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEP_OUTBOX_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEP_OUTBOX_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/list.h"
#include "server/supervisor/keep/keeper.h"
#include "server/supervisor/keep/kept_table.h"
#include "server/supervisor/keep/state_log.h"

enum { OUTBOX_MAX = 16384 };

/* Stands for the form of the records. */
enum { OUTBOX_FORM = 1 };

struct outbox {
    uv_loop_t *loop; /* NULL: it is not open, and has no lines */
    char path[PATH_MAX];
    struct list lines;
    size_t count;
    uint64_t lost;              /* lines that found no room, since the log said so */
    struct kept_table table;    /* of the lines; used with a keeper */
    struct keeper *keeper;      /* NULL: lines are lost with this process */
    bool looks;                 /* lines of the last server may be in the file */
    bool failing;               /* the file could not be written last time */
    int error;                  /* why: an errno; it is read while `failing` is set */
    bool tries;                 /* the file is to be opened, even if there are no lines */
    bool ending;                /* nothing waits for another attempt */
    bool waits;                 /* for `retry` */
    struct outbox_write *write; /* under way; NULL: none is */
    uv_timer_t retry;
};

void outbox_open(struct outbox *outbox, uv_loop_t *loop);

/* Keeps lines from now on, of which there are none yet: outbox_put comes before each commit. */
void outbox_keep(struct outbox *outbox, struct keeper *keeper);

/* Tries once more to write what is left, and loses it otherwise. Returns whether nothing is left;
 * if not, the loop's turn calls it again. Then closes its handles, once. */
bool outbox_end(struct outbox *outbox);

/* The file has this path from now on: if that is new, has it opened, so that the log says at once
 * if it can't be written. */
void outbox_try(struct outbox *outbox, const char *path);

/* Adds a line, which is copied, for the file with this path. text: with its newline. Nothing
 * is written yet. */
void outbox_add(struct outbox *outbox, const char *path, const char *text);

/* Whether half of the lines that may wait do so: who can add a line later should. */
bool outbox_is_crowded(const struct outbox *outbox);

/* Puts what has changed into the keeper, under this kind. */
void outbox_put(struct outbox *outbox, uint16_t kind);

/* All that is there was kept, where there is a keeper: begins to write it. To be called at the end
 * of each turn. */
void outbox_go(struct outbox *outbox);

/* Takes over the last server's lines. path: for those, "" if there is none now: they are lost then,
 * and counted. */
void outbox_read(struct outbox *outbox, const struct state_log_reader *reader, uint16_t kind,
                 const char *path);

#endif
