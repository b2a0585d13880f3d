/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/keep/keeper.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"

#define LOG_BYTES_MIN (UINT64_C(1) << 20)

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static void name_format(char name[16], char letter, uint32_t number)
{
    char text[8];
    int length = 0;
    do
        text[length++] = digits[number % 36];
    while ((number /= 36));
    *name++ = letter;
    *name++ = '.';
    while (length)
        *name++ = text[--length];
    *name = 0;
}

/* 0: it is no name of ours. */
static uint32_t name_read(const char *name)
{
    uint32_t number = 0;
    if (!name[0] || name[1] != '.' || !name[2])
        return 0;
    for (name += 2; *name; name++) {
        const char *digit = strchr(digits, *name);
        if (!digit || number > KEEPER_FDS_MAX)
            return 0;
        number = number * 36 + (uint32_t)(digit - digits);
    }
    return number <= 2 * KEEPER_FDS_MAX ? number : 0;
}

static struct keeper_slot *slot_of(const struct keeper *keeper, uint32_t number)
{
    return number - 1 < keeper->slot_count ? &keeper->slots[number - 1] : NULL;
}

static int slots_reserve(struct keeper *keeper, uint32_t count)
{
    if (array_reserve(keeper->slots, keeper->slot_room, count) < 0)
        return -ENOMEM;
    for (; keeper->slot_count < count; keeper->slot_count++)
        keeper->slots[keeper->slot_count] = (struct keeper_slot){.fd = -1};
    return 0;
}

static void unstore_fd(struct keeper *keeper, uint32_t number)
{
    struct keeper_slot *slot = slot_of(keeper, number);
    char name[16];
    name_format(name, slot->letter, number);
    int result = notify_unstore(keeper->notify, name);
    if (slot->fd >= 0)
        close(slot->fd);
    slot->fd = -1;
    /* Without a record, so the next server drops it. Until then its number is taken: two
     * descriptors of one name can't be told apart. */
    if (result < 0)
        return;
    slot->letter = 0;
    slot->refs = 0;
    keeper->slots_used--;
    keeper->low = min(keeper->low, number - 1);
}

__attribute__((format(printf, 3, 4))) static void give_up(struct keeper *keeper, uint32_t error,
                                                          const char *format, ...)
{
    va_list arguments;
    if (!keeper->on)
        return;
    keeper->on = false;
    notify_forget_stores(keeper->notify);
    keeper->trouble.number = error;
    va_start(arguments, format);
    vsnprintf(keeper->trouble.text, sizeof keeper->trouble.text, format, arguments);
    va_end(arguments);
    log_error(MESSAGE_TEXT(log_keeping_ends), keeper->trouble.text);
    /* A later server must find no state that is not true, whether or not the service manager can be
     * told; nor that of the server before this one. */
    if (keeper->log)
        state_log_void(keeper->log->fd);
    if (keeper->old)
        state_log_void(keeper->old->fd);
    for (uint32_t number = 1; number <= keeper->slot_count; number++) {
        if (slot_of(keeper, number)->letter != KEEPER_LOG)
            continue;
        state_log_void(slot_of(keeper, number)->fd);
        unstore_fd(keeper, number);
    }
    keeper->log_number = keeper->old_number = 0;
}

static void log_end(struct state_log **log)
{
    if (*log)
        state_log_close(*log);
    free(*log);
    *log = NULL;
}

/* ---- what was passed ---- */

/* All numbers have slots. */
static int passed_take(struct keeper *keeper, const struct notify_kept *passed)
{
    uint32_t number = name_read(passed->name);
    if (!number)
        return -EINVAL;
    struct keeper_slot *slot = slot_of(keeper, number);
    if (slot->letter)
        return -EEXIST;
    *slot = (struct keeper_slot){.letter = passed->name[0], .fd = passed->fd};
    keeper->slots_used++;
    return 0;
}

/* The latest log in which something was committed. */
static enum keeper_found find_log(struct keeper *keeper, struct state_log_reader *reader,
                                  struct error *why)
{
    enum keeper_found found = KEEPER_NOTHING;
    for (uint32_t i = 0; i < keeper->slot_count; i++) {
        struct state_log_reader one;
        if (keeper->slots[i].letter != KEEPER_LOG)
            continue;
        int verdict = state_log_read(&one, keeper->slots[i].fd, keeper->layout);
        if (verdict != LOG_IS_WHOLE) {
            const char *what = verdict == LOG_IS_OTHER     ? MESSAGE_TEXT(state_of_other)
                               : verdict == LOG_IS_DAMAGED ? MESSAGE_TEXT(state_damaged)
                               : verdict == LOG_IS_STRANGE ? MESSAGE_TEXT(state_strange)
                                                           : strerror(-verdict);
            error_set(why, PROTO_ERROR_SERVER_RESOURCES, "%s", what);
            if (found == KEEPER_FOUND)
                state_log_reader_close(reader);
            return KEEPER_UNREADABLE;
        }
        if (!one.begun || (found == KEEPER_FOUND && one.generation < reader->generation)) {
            state_log_reader_close(&one);
            continue;
        }
        if (found == KEEPER_FOUND)
            state_log_reader_close(reader);
        *reader = one;
        found = KEEPER_FOUND;
    }
    return found;
}

enum keeper_found keeper_open(struct keeper *keeper, struct notify *notify,
                              const struct notify_kept *passed, size_t count, uint32_t layout,
                              struct state_log_reader *reader, struct error *why)
{
    uint32_t greatest = 0;
    *keeper = (struct keeper){.notify = notify, .layout = layout};
    for (size_t i = 0; i < count; i++)
        greatest = max(greatest, name_read(passed[i].name));
    if (greatest && slots_reserve(keeper, greatest) < 0) {
        error_set(why, PROTO_ERROR_SERVER_RESOURCES, "%s", strerror(ENOMEM));
        return KEEPER_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        if (passed_take(keeper, &passed[i]) < 0)
            close(passed[i].fd);
    return find_log(keeper, reader, why);
}

int keeper_take(struct keeper *keeper, uint32_t number, char letter)
{
    struct keeper_slot *slot = slot_of(keeper, number);
    if (!slot || slot->letter != letter)
        return -1;
    int fd = slot->fd;
    slot->fd = -1;
    return fd;
}

bool keeper_has(const struct keeper *keeper, uint32_t number, char letter)
{
    const struct keeper_slot *slot = slot_of(keeper, number);
    return slot && slot->letter == letter;
}

void keeper_drop_unnamed(struct keeper *keeper)
{
    for (uint32_t number = 1; number <= keeper->slot_count; number++) {
        const struct keeper_slot *slot = slot_of(keeper, number);
        if (slot->letter && !slot->refs && number != keeper->log_number &&
            number != keeper->old_number)
            unstore_fd(keeper, number);
    }
}

void keeper_clear(struct keeper *keeper)
{
    keeper->on = false;
    keeper->log_number = keeper->old_number = 0;
    log_end(&keeper->log);
    log_end(&keeper->old);
    for (uint32_t number = 1; number <= keeper->slot_count; number++)
        if (slot_of(keeper, number)->letter)
            unstore_fd(keeper, number);
}

/* ---- keeping ---- */

static uint32_t slot_take(struct keeper *keeper, char letter)
{
    while (keeper->low < keeper->slot_count && keeper->slots[keeper->low].letter)
        keeper->low++;
    if (keeper->slots_used >= KEEPER_FDS_MAX || slots_reserve(keeper, keeper->low + 1) < 0)
        return 0;
    keeper->slots[keeper->low].letter = letter;
    keeper->slots_used++;
    return keeper->low + 1;
}

void keeper_store(struct keeper *keeper, char letter, int fd, uint32_t *number)
{
    char name[16];
    if (*number || !keeper->on)
        return;
    uint32_t taken = slot_take(keeper, letter);
    if (!taken) {
        give_up(keeper, MESSAGE(keeping_fds_max), KEEPER_FDS_MAX);
        return;
    }
    name_format(name, letter, taken);
    int result = notify_store(keeper->notify, name, fd);
    if (result < 0) {
        give_up(keeper, MESSAGE(keeping_refused), strerror(-result));
        return;
    }
    *number = taken;
}

void keeper_pack_fd(struct keeper *keeper, struct pack *pack, char letter, int fd, uint32_t *number)
{
    /* One that was taken over may never have been passed. */
    if (fd < 0 || !keeper_has(keeper, *number, letter))
        *number = 0;
    if (fd >= 0)
        keeper_store(keeper, letter, fd, number);
    pack_fd(pack, *number);
}

/* A log that is stored already; NULL: the keeper gave up. */
static struct state_log *log_make(struct keeper *keeper, uint64_t generation, uint64_t bytes,
                                  uint32_t *number)
{
    struct state_log *log = malloc(sizeof *log);
    int result = log ? state_log_create(log, generation, keeper->layout, bytes) : -ENOMEM;
    *number = 0;
    if (result == 0)
        keeper_store(keeper, KEEPER_LOG, log->fd, number);
    else
        give_up(keeper, MESSAGE(keeping_no_memory), strerror(-result));
    if (*number)
        return log;
    if (result == 0)
        state_log_close(log);
    free(log);
    return NULL;
}

int keeper_begin(struct keeper *keeper, uint64_t generation)
{
    keeper->on = true;
    keeper->log = log_make(keeper, generation + 1, LOG_BYTES_MIN, &keeper->log_number);
    return keeper->log ? 0 : -EIO;
}

/* Goes on in a greater log. The state that counts until the next commit stays where it is. */
static int log_grow(struct keeper *keeper, uint64_t bytes)
{
    uint64_t needed = 4 * (keeper->log->living + bytes) + LOG_BYTES_MIN;
    uint32_t number;
    struct state_log *next = log_make(keeper, keeper->log->generation + 1, needed, &number);
    if (!next)
        return -EIO;
    int result = state_log_move(keeper->log, next);
    if (!keeper->old) {
        keeper->old = keeper->log;
        keeper->old_number = keeper->log_number;
    } else {
        unstore_fd(keeper, keeper->log_number);
        log_end(&keeper->log);
    }
    keeper->log = next;
    keeper->log_number = number;
    return result;
}

static void note_dropped(struct keeper *keeper, uint32_t number)
{
    struct keeper_slot *slot = slot_of(keeper, number);
    if (!slot || --slot->refs || slot->dropped)
        return;
    slot->dropped = true;
    slot->next_dropped = keeper->dropped;
    keeper->dropped = number;
}

/* The record names these from now on. */
static int name_fds(struct keeper *keeper, struct kept *kept, const uint32_t *fds, uint32_t count)
{
    uint32_t *copy = count ? malloc(count * sizeof *copy) : NULL;
    if (count && !copy)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = fds[i];
        slot_of(keeper, fds[i])->refs++;
    }
    for (uint32_t i = 0; i < kept->fd_count; i++)
        note_dropped(keeper, kept->fds[i]);
    free(kept->fds);
    kept->fds = copy;
    kept->fd_count = count;
    return 0;
}

void keeper_put(struct keeper *keeper, struct kept *kept, struct state_name name,
                const struct pack *pack)
{
    if (!keeper->on || state_log_has(keeper->log, &kept->record, pack->data, pack->bytes))
        return;
    int result = pack->failed ? -ENOMEM : 0;
    if (result == 0)
        result = state_log_put(keeper->log, &kept->record, name, pack->data, pack->bytes);
    if (result == -ENOSPC) {
        result = log_grow(keeper, pack->bytes);
        if (result == 0 && keeper->on)
            result = state_log_put(keeper->log, &kept->record, name, pack->data, pack->bytes);
    }
    if (result == 0)
        result = name_fds(keeper, kept, pack->fds, pack->fd_count);
    if (result < 0)
        give_up(keeper, MESSAGE(keeping_no_memory), strerror(-result));
}

void keeper_lack_memory(struct keeper *keeper)
{
    give_up(keeper, MESSAGE(keeping_no_memory), strerror(ENOMEM));
}

void keeper_remove(struct keeper *keeper, struct kept *kept)
{
    if (keeper->on) {
        int result = state_log_remove(keeper->log, &kept->record);
        if (result == -ENOSPC)
            result = log_grow(keeper, 0);
        if (result == 0 && keeper->on)
            result = state_log_remove(keeper->log, &kept->record);
        if (result < 0)
            give_up(keeper, MESSAGE(keeping_no_memory), strerror(-result));
    }
    list_remove(&kept->record.link);
    for (uint32_t i = 0; i < kept->fd_count; i++)
        note_dropped(keeper, kept->fds[i]);
    free(kept->fds);
    *kept = (struct kept){0};
}

bool keeper_is_stored(struct keeper *keeper)
{
    int result = keeper->on ? notify_stored(keeper->notify) : 0;
    if (result < 0)
        give_up(keeper, MESSAGE(keeping_refused), strerror(-result));
    return result != STORE_WAITS;
}

void keeper_commit(struct keeper *keeper)
{
    if (keeper->on) {
        state_log_commit(keeper->log);
        log_end(&keeper->old);
        if (keeper->old_number)
            unstore_fd(keeper, keeper->old_number);
        keeper->old_number = 0;
    }
    while (keeper->dropped) {
        uint32_t number = keeper->dropped;
        struct keeper_slot *slot = slot_of(keeper, number);
        keeper->dropped = slot->next_dropped;
        slot->dropped = false;
        if (slot->letter && !slot->refs)
            unstore_fd(keeper, number);
    }
}

void keeper_close(struct keeper *keeper)
{
    log_end(&keeper->log);
    log_end(&keeper->old);
    for (uint32_t i = 0; i < keeper->slot_count; i++)
        if (keeper->slots[i].fd >= 0)
            close(keeper->slots[i].fd);
    free(keeper->slots);
    pack_free(&keeper->pack);
    *keeper = (struct keeper){0};
}
