/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * keeper: what outlives this process: records in a state_log, and the descriptors that they name,
 * which the service manager stores.
 *
 * A descriptor is stored before the record that names it is committed, and dropped after the commit
 * of the records that name it no more. So each committed record finds its descriptors, whenever
 * this process is killed. Names are a letter, a dot and a number in base 36: "w.3". The letters are
 * the same in every version, so that a version which can't read the records knows the workers:
 *
 *   s  the log    w  the socket to a worker    p  its process    b  its barrier    d  anything else
 *
 * If the service manager or memory fails, the keeper gives up: it voids and drops the log, and the
 * end of the server ends its clients, as if nothing were kept. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEP_KEEPER_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEP_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/keep/pack.h"
#include "server/supervisor/keep/state_log.h"
#include "server/supervisor/loop/notify.h"

#define KEEPER_LOG     's'
#define KEEPER_LINK    'w'
#define KEEPER_PROCESS 'p'
#define KEEPER_BARRIER 'b'
#define KEEPER_DATA    'd'

/* Names and the colons between them have to fit into one string of the environment (128 KiB). */
#define KEEPER_FDS_MAX 16000

/* One record: a member of what it describes. All zero: nothing is kept. */
struct kept {
    struct state_record record;
    uint32_t *fds;
    uint32_t fd_count;
};

struct keeper_slot {
    char letter;           /* 0: free */
    uint32_t refs;         /* records that name it */
    int fd;                /* that was passed by the service manager, until it is taken; else -1 */
    bool dropped;          /* it is in keeper->dropped, free or not */
    uint32_t next_dropped; /* number of the next one there; 0: none */
};

struct keeper {
    struct notify *notify;
    bool on;
    uint32_t layout;
    struct state_log *log, *old; /* old: what counts until the next commit; or NULL */
    uint32_t log_number, old_number;
    struct keeper_slot *slots; /* by number - 1 */
    uint32_t slot_count, slot_room, slots_used;
    uint32_t low; /* no slot before this one is free */
    /* The first of the numbers to look at after the next commit; 0: none. The slots are the list,
     * since a number that finds no memory to be noted in would stay taken for ever. */
    uint32_t dropped;
    struct pack pack;     /* for callers, one record at a time */
    struct error trouble; /* why it gave up */
};

enum keeper_found {
    KEEPER_NOTHING,    /* no server was here before */
    KEEPER_FOUND,      /* *reader has what it left */
    KEEPER_UNREADABLE, /* it left what this version can't read; *why says it */
    KEEPER_NO_MEMORY   /* nothing was taken over, and nothing may be stored: the names are taken */
};

/*
 * Takes over the descriptors that the service manager passed, and reads the log among them.
 * notify is borrowed. *reader is closed by the caller after KEEPER_FOUND alone.
 */
enum keeper_found keeper_open(struct keeper *keeper, struct notify *notify,
                              const struct notify_kept *passed, size_t count, uint32_t layout,
                              struct state_log_reader *reader, struct error *why);

/* Begins a new log, whose generation is above `generation`. Returns 0 or -errno: nothing is kept.
 */
int keeper_begin(struct keeper *keeper, uint64_t generation);

/* Closes what was passed and not taken, and frees all. Nothing is told to the service manager. */
void keeper_close(struct keeper *keeper);

/* ---- what was passed ---- */

/* The descriptor of this number and letter, which is the caller's now; -1: there is none. */
int keeper_take(struct keeper *keeper, uint32_t number, char letter);

/* Whether there is one, taken or not. */
bool keeper_has(const struct keeper *keeper, uint32_t number, char letter);

/* Has the service manager drop all that no record names, and closes it. To be called after the
 * first commit. */
void keeper_drop_unnamed(struct keeper *keeper);

/* Has it drop everything: the server ends for good. */
void keeper_clear(struct keeper *keeper);

/* ---- keeping ---- */

/* Has the descriptor stored, if *number is 0, and sets that. */
void keeper_store(struct keeper *keeper, char letter, int fd, uint32_t *number);

/* pack_fd of a descriptor that is stored first; fd -1 is none, and *number is 0 then. */
void keeper_pack_fd(struct keeper *keeper, struct pack *pack, char letter, int fd,
                    uint32_t *number);

/* Sets the record that *kept is the place of, if it differs. */
void keeper_put(struct keeper *keeper, struct kept *kept, struct state_name name,
                const struct pack *pack);

/* Takes the record out. Idempotent. */
void keeper_remove(struct keeper *keeper, struct kept *kept);

/* Memory was missing where a change had to be noted: it gives up. */
void keeper_lack_memory(struct keeper *keeper);

/* Whether the service manager has all descriptors that were to be stored. False: it has no room for
 * them yet, and nothing may be committed. If it takes none for a second, the keeper gives up, and
 * there is nothing to wait for. Never blocks. */
bool keeper_is_stored(struct keeper *keeper);

/* All that was put and removed counts from now on; then drops descriptors that no record names. To
 * be called when keeper_is_stored. */
void keeper_commit(struct keeper *keeper);

#endif
