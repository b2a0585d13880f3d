/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * state_log: records in a memory file that are true whenever their writer is killed.
 *
 * A record has a name of three numbers, and takes the place of an earlier one with the same name.
 * Records are appended, and count from state_log_commit on, all of those since the last commit at
 * once: one word of the file says how far they reach. A writer that is killed at any instruction
 * leaves the records of its last commit.
 *
 * The file has two halves. When one is full, the records that still count are written to the other,
 * and the same word says which half it is. So a record is written twice at most for each time that
 * it changes, on average.
 *
 * The numbers are in the order of this machine. A header says which version and which layout wrote
 * the file; the caller chooses the layout's number. One thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEP_STATE_LOG_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEP_STATE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

/* Raised whenever this file's own format changes. */
#define STATE_LOG_FORMAT 2

struct state_name {
    uint16_t kind;
    uint32_t key;  /* whose it is */
    uint32_t page; /* of things that are kept in several records */
};

/* A record's place: a member of what it describes. All zero: it is not in a log. */
struct state_record {
    struct list_link link; /* in the log */
    uint64_t offset;       /* of its payload, in the file */
    uint32_t bytes;
    struct state_name name;
};

struct state_log {
    int fd;        /* -1: there is none */
    uint8_t *base; /* the whole file, mapped */
    uint64_t half_bytes;
    uint64_t generation;
    uint64_t half;   /* 0 or 1: that is written to */
    uint64_t tail;   /* bytes of it that were written, committed or not */
    uint64_t living; /* bytes of records that count */
    struct list living_list;
};

/* Makes an empty log with room for `bytes` of records that count. generation: greater than that of
 * any log that may lie beside it. Returns 0 or -errno. */
int state_log_create(struct state_log *log, uint64_t generation, uint32_t layout, uint64_t bytes);

/* Unmaps and closes it. Its records' places are zeroed. Idempotent for a log of zeros with fd -1.
 */
void state_log_close(struct state_log *log);

/* Sets a record; *record is where it is kept. Returns 0; or -ENOSPC: the log is too small for what
 * counts, and has not changed: state_log_move takes it to a greater one. */
int state_log_put(struct state_log *log, struct state_record *record, struct state_name name,
                  const void *data, size_t bytes);

/* Whether the record's payload is exactly this. */
bool state_log_has(const struct state_log *log, const struct state_record *record, const void *data,
                   size_t bytes);

/* Takes a record out, if it is in. Returns as state_log_put does. */
int state_log_remove(struct state_log *log, struct state_record *record);

/* All that was put and removed counts from now on. */
void state_log_commit(struct state_log *log);

/* Nothing of the log in this file counts any more. fd may be -1, or any descriptor whose owner
 * takes it for a log. */
void state_log_void(int fd);

/* Moves all records to `to`, an empty log with more room, where they count from its next commit on.
 * *from has none afterwards, and its file is as it was. Returns 0 or -ENOSPC: nothing has changed.
 */
int state_log_move(struct state_log *from, struct state_log *to);

/* ---- reading ---- */

enum state_log_verdict {
    LOG_IS_WHOLE,
    LOG_IS_STRANGE, /* no log of this program */
    LOG_IS_OTHER,   /* of another format or layout */
    LOG_IS_DAMAGED  /* what was committed is not whole */
};

struct state_log_entry {
    struct state_name name;
    const void *data; /* in the reader's memory */
    size_t bytes;
};

struct state_log_reader {
    uint64_t generation;
    bool begun;                      /* something was committed */
    struct state_log_entry *entries; /* by kind, then by key, then by page */
    size_t count;
    void *base; /* mapped */
    size_t mapped;
};

/* Reads a log's committed records. fd stays the caller's, and may be anything. *reader is to be
 * closed after LOG_IS_WHOLE alone. -ENOMEM and other -errno are possible too. */
int state_log_read(struct state_log_reader *reader, int fd, uint32_t layout);
void state_log_reader_close(struct state_log_reader *reader);

/* The entries of this kind and key, of which there are *count, by page. */
const struct state_log_entry *state_log_find(const struct state_log_reader *reader, uint16_t kind,
                                             uint32_t key, size_t *count);

#endif
