/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/trace/recording.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/ipc/shared_word.h"
#include "common/ipc/shm.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"

#define TRACE_NS_MAX (UNITS_SECOND * (PROTO_TRACE_SECONDS_MAX + 60))

const char *recording_mode_name(uint32_t mode)
{
    const char *name = proto_mode_name(mode);
    return name ? name : "unknown";
}

const char *recording_hold_name(uint32_t why)
{
    const char *name = proto_hold_name(why);
    return name ? name : "unknown";
}

static bool record_is_valid(const struct recording *recording,
                            const struct proto_trace_record *record)
{
    const struct proto_trace_header *header = &recording->header;
    if (record->from < header->started || record->to < record->from ||
        record->to - header->started > TRACE_NS_MAX)
        return false;
    switch (record->kind) {
    case RECORDING_SPAN:
        return record->client && record->stream < PROTO_STREAMS_MAX;
    case RECORDING_LEASE:
        return record->client && record->value < RECORDING_LANES;
    case RECORDING_SM_GROUPS:
        return record->client != 0;
    case RECORDING_HOLD:
        return record->client && record->value < RECORDING_HOLDS;
    case RECORDING_MODE:
        return proto_mode_name(record->value) != NULL;
    case RECORDING_RECOVERY:
        return true; /* of the device, or of any client */
    default:
        return false;
    }
}

static int compare_times(const void *a, const void *b)
{
    const struct proto_trace_record *one = a, *other = b;
    if (one->from != other->from)
        return one->from < other->from ? -1 : 1;
    return one->to < other->to ? -1 : one->to > other->to;
}

static int copy_records(struct recording *recording, const struct shm *memory)
{
    const struct proto_trace_record *shared =
        (const void *)((const char *)memory->base + sizeof(struct proto_trace_header));
    uint64_t room = (memory->bytes - sizeof(struct proto_trace_header)) / sizeof *shared;
    uint64_t made = recording->header.next;
    if (room > recording->header.capacity)
        room = recording->header.capacity;
    uint64_t count = min(made, room);
    recording->lost = made - count;
    recording->records = malloc((count ? count : 1) * sizeof *shared);
    if (!recording->records)
        return -ENOMEM;
    recording->ended = recording->header.ended;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t kind = shared_word_read(&shared[i].kind);
        struct proto_trace_record *record = &recording->records[recording->count];
        memcpy(record, &shared[i], sizeof *record);
        record->kind = kind;
        if (!record_is_valid(recording, record)) {
            recording->damaged++;
            continue;
        }
        recording->count++;
        if (!recording->header.ended && record->to > recording->ended)
            recording->ended = record->to;
    }
    qsort(recording->records, recording->count, sizeof *recording->records, compare_times);
    return 0;
}

uint32_t recording_read(struct recording *recording, int fd, struct error *why)
{
    *recording = (struct recording){0};
    struct proto_trace_header *header = &recording->header;
    struct stat status;
    struct shm memory;
    if (fstat(fd, &status) < 0 || status.st_size < (off_t)sizeof *header ||
        status.st_size > PROTO_TRACE_BYTES)
        return error_set(why, MESSAGE(ctl_trace_size));
    int adopted = shm_adopt(&memory, fd, (size_t)status.st_size, false);
    if (adopted == -EBADF)
        return error_set(why, MESSAGE(ctl_trace_unsealed));
    if (adopted < 0)
        return error_set(why, error_from_errno(adopted), MESSAGE_TEXT(ctl_trace_unreadable),
                         strerror(-adopted));
    memory.fd = -1; /* stays the caller's: shm_release must not close it */
    /* First, for it is published behind the records: those of an ended trace are all there. */
    uint64_t ended = shared_word_read(&((const struct proto_trace_header *)memory.base)->ended);
    memcpy(header, memory.base, sizeof *header);
    header->ended = ended;
    uint32_t error = 0;
    if (header->version != 1 || header->record_bytes != sizeof(struct proto_trace_record) ||
        !proto_mode_name(header->mode) || (header->ended && header->ended < header->started))
        error = header->version ? error_set(why, MESSAGE(ctl_trace_version))
                                : error_set(why, MESSAGE(ctl_trace_unbegun));
    if (!error && copy_records(recording, &memory) < 0)
        error = error_set(why, MESSAGE(ctl_trace_no_memory));
    if (recording->ended < header->started)
        recording->ended = header->started;
    shm_release(&memory);
    return error;
}

void recording_free(struct recording *recording)
{
    free(recording->records);
    *recording = (struct recording){0};
}
