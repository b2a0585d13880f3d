/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/keep/outbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/regular_file.h"
#include "common/util.h"
#include "server/supervisor/keep/line_file.h"
#include "server/supervisor/keep/pack.h"

/* A disk that was full may have room again. */
#define RETRY_MS 2000
/* Of one write: others wait for the same threads. */
#define WRITE_BYTES ((size_t)256 << 10)
/* All lines that a last server may have written without knowing it are in its last write. */
#define TAIL_BYTES     (4 * WRITE_BYTES)
#define LINE_MAX_BYTES ((uint64_t)64 << 10)

struct line {
    struct list_link link;
    uint32_t row;  /* of the table */
    bool writing;  /* it is part of the write under way */
    bool was_kept; /* by the last server, which may have written it */
    uint32_t bytes;
    char text[];
};

/* The thread has its own copies. */
struct outbox_write {
    uv_work_t work;
    struct outbox *outbox;
    char path[PATH_MAX];
    bool looks;
    int result;
    size_t bytes;
    char text[];
};

/* ---- lines ---- */

static void line_free(struct outbox *outbox, struct line *line)
{
    if (outbox->keeper)
        kept_table_remove(&outbox->table, &line->row);
    list_remove(&line->link);
    outbox->count--;
    free(line);
}

static bool line_add(struct outbox *outbox, const char *text, size_t bytes, bool was_kept)
{
    struct line *line = outbox->count < OUTBOX_MAX ? malloc(sizeof *line + bytes) : NULL;
    if (!line) {
        outbox->lost++;
        return false;
    }
    *line = (struct line){.bytes = (uint32_t)bytes, .was_kept = was_kept};
    memcpy(line->text, text, bytes);
    list_append(&outbox->lines, &line->link);
    outbox->count++;
    if (outbox->keeper)
        kept_table_add(&outbox->table, line, &line->row);
    return true;
}

bool outbox_is_crowded(const struct outbox *outbox)
{
    return outbox->count >= OUTBOX_MAX / 2;
}

void outbox_try(struct outbox *outbox, const char *path)
{
    if (strcmp(outbox->path, path) == 0)
        return;
    snprintf(outbox->path, sizeof outbox->path, "%s", path);
    outbox->tries = true;
    /* A mistake of another file says nothing of this one. */
    outbox->failing = outbox->waits = false;
}

void outbox_add(struct outbox *outbox, const char *path, const char *text)
{
    outbox_try(outbox, path);
    line_add(outbox, text, strlen(text), false);
}

/* ---- the thread ---- */

/* Takes lines out that the end of the file has. Each line is like no other. */
static size_t leave_out_written(const char *tail, size_t tail_bytes, char *text, size_t bytes)
{
    size_t kept = 0;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end + 1 - (text + at)) : bytes - at;
        if (!memmem(tail, tail_bytes, text + at, length)) {
            memmove(text + kept, text + at, length);
            kept += length;
        }
        at += length;
    }
    return kept;
}

static int look_at_file(struct outbox_write *write)
{
    char *tail = malloc(TAIL_BYTES);
    const long bytes = tail ? line_file_tail(write->path, tail, TAIL_BYTES) : -ENOMEM;
    if (bytes > 0)
        write->bytes = leave_out_written(tail, (size_t)bytes, write->text, write->bytes);
    free(tail);
    return bytes < 0 ? (int)bytes : 0;
}

static void write_run(uv_work_t *work)
{
    struct outbox_write *write = work->data;
    write->result = write->looks ? look_at_file(write) : 0;
    if (write->result == 0)
        write->result = line_file_append(write->path, write->text, write->bytes);
}

/* ---- and back ---- */

/* Of all lines, or of those of the write that has ended. */
static void lines_free(struct outbox *outbox, bool all)
{
    struct list_link *link = list_first(&outbox->lines), *next;
    for (; link; link = next) {
        struct line *line = container_of(link, struct line, link);
        next = list_next(&outbox->lines, link);
        if (all || line->writing)
            line_free(outbox, line);
    }
}

static void lines_lose(struct outbox *outbox)
{
    outbox->lost += outbox->count;
    lines_free(outbox, true);
}

static void say_lost(struct outbox *outbox)
{
    if (outbox->lost)
        log_error(MESSAGE_TEXT(log_accounting_lost), (unsigned long long)outbox->lost,
                  outbox->path);
    outbox->lost = 0;
}

static void retry_due(uv_timer_t *timer)
{
    struct outbox *outbox = timer->data;
    outbox->waits = false; /* the loop's turn, which follows, tries again */
}

static void write_failed(struct outbox *outbox, const struct outbox_write *write)
{
    const bool elsewhere = strcmp(write->path, outbox->path) != 0;
    struct line *line;
    LIST_FOR_EACH (line, &outbox->lines, link)
        line->writing = false;
    if (elsewhere && !outbox->ending)
        return; /* the next turn tries the other file */
    if (!outbox->failing)
        log_error(MESSAGE_TEXT(log_accounting_not_written), write->path,
                  regular_file_reason(-write->result));
    outbox->failing = true;
    outbox->error = -write->result;
    if (outbox->ending) {
        lines_lose(outbox);
        say_lost(outbox);
        return;
    }
    outbox->waits = true;
    uv_timer_start(&outbox->retry, retry_due, RETRY_MS, 0);
}

static void write_done(struct outbox *outbox)
{
    lines_free(outbox, false);
    outbox->looks = false;
    struct line *line;
    LIST_FOR_EACH (line, &outbox->lines, link)
        outbox->looks |= line->was_kept;
    if (outbox->failing)
        log_notice(MESSAGE_TEXT(log_accounting_written), outbox->path);
    outbox->failing = false;
    say_lost(outbox);
}

static void write_ended(uv_work_t *work, int status)
{
    struct outbox_write *write = work->data;
    struct outbox *outbox = write->outbox;
    (void)status; /* never cancelled */
    outbox->write = NULL;
    if (write->result < 0)
        write_failed(outbox, write);
    else
        write_done(outbox);
    free(write);
}

/* Returns false without memory: a later turn tries again. */
static bool write_begin(struct outbox *outbox)
{
    struct outbox_write *write = malloc(sizeof *write + WRITE_BYTES);
    if (!write)
        return false;
    *write = (struct outbox_write){.outbox = outbox, .looks = outbox->looks};
    snprintf(write->path, sizeof write->path, "%s", outbox->path);
    struct line *line;
    LIST_FOR_EACH (line, &outbox->lines, link) {
        if (line->bytes > WRITE_BYTES - write->bytes)
            break;
        memcpy(write->text + write->bytes, line->text, line->bytes);
        write->bytes += line->bytes;
        line->writing = true;
    }
    write->work.data = write;
    outbox->write = write;
    outbox->tries = false;
    /* It fails only without a function to run. */
    uv_queue_work(outbox->loop, &write->work, write_run, write_ended);
    return true;
}

/* ---- its life ---- */

void outbox_open(struct outbox *outbox, uv_loop_t *loop)
{
    *outbox = (struct outbox){.loop = loop};
    list_init(&outbox->lines);
    uv_timer_init(loop, &outbox->retry);
    outbox->retry.data = outbox;
}

void outbox_keep(struct outbox *outbox, struct keeper *keeper)
{
    outbox->keeper = keeper;
}

void outbox_go(struct outbox *outbox)
{
    if (outbox->loop && (outbox->count || outbox->tries) && !outbox->write && !outbox->waits)
        write_begin(outbox);
}

bool outbox_end(struct outbox *outbox)
{
    if (!outbox->loop)
        return true;
    outbox->ending = true;
    outbox->waits = false;
    if (outbox->count && !outbox->write && !write_begin(outbox))
        lines_lose(outbox);
    if (outbox->count || outbox->write)
        return false;
    say_lost(outbox);
    if (outbox->keeper)
        kept_table_clear(&outbox->table, outbox->keeper);
    uv_close((uv_handle_t *)&outbox->retry, NULL);
    outbox->loop = NULL;
    return true;
}

/* ---- for another server ---- */

static void line_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    const struct line *line = item;
    (void)context;
    (void)row;
    if (!line)
        return;
    pack_number(pack, line->bytes);
    pack_bytes(pack, line->text, line->bytes);
}

void outbox_put(struct outbox *outbox, uint16_t kind)
{
    kept_table_put(&outbox->table, outbox->keeper, kind, 0, line_pack, NULL);
}

static void page_read(struct outbox *outbox, const struct state_log_entry *entry)
{
    struct unpack unpack = unpack_begin(entry->data, entry->bytes);
    while (!unpack_is_whole(&unpack)) {
        const uint64_t bytes = unpack_number_max(&unpack, LINE_MAX_BYTES);
        const char *text = unpack_take(&unpack, bytes);
        if (unpack.failed || !text)
            return;
        outbox->looks |= line_add(outbox, text, bytes, true);
    }
}

void outbox_read(struct outbox *outbox, const struct state_log_reader *reader, uint16_t kind,
                 const char *path)
{
    size_t count;
    const struct state_log_entry *entries = state_log_find(reader, kind, 0, &count);
    snprintf(outbox->path, sizeof outbox->path, "%s", path);
    for (size_t i = 0; i < count; i++)
        page_read(outbox, &entries[i]);
    if (!*path)
        lines_lose(outbox);
    if (!*path)
        say_lost(outbox);
}
