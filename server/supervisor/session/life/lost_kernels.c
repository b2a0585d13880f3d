/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/lost_kernels.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/ipc/journal.h"
#include "common/ipc/shared_word.h"
#include "common/util.h"
#include "server/supervisor/session/server.h"

enum { SHOWN = 3, NAME_MAX_SHOWN = 80 };

/* A name, seven numbers and what stands between them. */
#define LAUNCH_TEXT (NAME_MAX_SHOWN + 100)

struct launches {
    struct proto_command_launch shown[SHOWN];
    unsigned count; /* of different ones; SHOWN + 1: more than are shown */
};

static bool in_flight(void *shadow, uint32_t streams, const struct journal_entry *entry)
{
    if (!entry->value || entry->stream >= streams)
        return false;
    uint32_t stream = (uint32_t)entry->stream;
    return entry->value > shared_word_read(ring_shadow_reached(shadow, stream)) &&
           entry->value <= shared_word_read(ring_shadow_begun(shadow, streams, stream));
}

static bool is_same(const struct proto_command_launch *a, const struct proto_command_launch *b)
{
    return a->function == b->function && !memcmp(a->grid, b->grid, sizeof a->grid) &&
           !memcmp(a->block, b->block, sizeof a->block) && a->shared_bytes == b->shared_bytes;
}

static void launches_add(struct launches *launches, const struct proto_command_launch *launch)
{
    for (unsigned i = 0; i < launches->count && i < SHOWN; i++)
        if (is_same(&launches->shown[i], launch))
            return;
    if (launches->count < SHOWN)
        launches->shown[launches->count] = *launch;
    if (launches->count <= SHOWN)
        launches->count++;
}

static void launches_find(struct launches *launches, void *shadow, uint32_t streams)
{
    const struct journal_entry *journal = journal_at(shadow, streams);
    for (unsigned i = 0; i < JOURNAL_ENTRIES; i++) {
        struct proto_command_launch launch = {0};
        struct journal_entry entry;
        /* A worker that is not lost yet may write meanwhile. */
        if (!journal_read(&journal[i], &entry))
            continue;
        memcpy(&launch, entry.command, offsetof(struct proto_command_launch, inline_parameters));
        if (in_flight(shadow, streams, &entry) && launch.opcode == PROTO_COMMAND_LAUNCH)
            launches_add(launches, &launch);
    }
}

static const char *launch_format(const struct session *session,
                                 const struct proto_command_launch *launch, char text[LAUNCH_TEXT])
{
    const struct object *kernel =
        objects_find(&session->objects, OBJECT_FUNCTION, launch->function);
    const char *name = kernel && kernel->function.name ? kernel->function.name : "?";
    uint32_t bytes = kernel && kernel->function.name ? kernel->function.name_bytes : 1;
    snprintf(text, LAUNCH_TEXT, "%.*s<<<(%u,%u,%u),(%u,%u,%u),%u>>>",
             bytes < NAME_MAX_SHOWN ? (int)bytes : NAME_MAX_SHOWN, name, launch->grid[0],
             launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
             launch->shared_bytes);
    return text;
}

const char *session_lost_kernels(struct session *session, char text[LOST_KERNELS_TEXT])
{
    struct launches launches = {.count = 0};
    char one[LAUNCH_TEXT];
    size_t used = 0;
    void *shadow = mmap(NULL, session->shadow.bytes, PROT_READ, MAP_SHARED, session->shadow.fd, 0);
    snprintf(text, LOST_KERNELS_TEXT, "unknown");
    if (shadow == MAP_FAILED)
        return text;
    launches_find(&launches, shadow, session->server->settings->streams);
    munmap(shadow, session->shadow.bytes);
    for (unsigned i = 0; i < min(launches.count, (unsigned)SHOWN) && used < LOST_KERNELS_TEXT; i++)
        used += (size_t)snprintf(text + used, LOST_KERNELS_TEXT - used, "%s%s", i ? ", " : "",
                                 launch_format(session, &launches.shown[i], one));
    if (launches.count > SHOWN && used < LOST_KERNELS_TEXT)
        snprintf(text + used, LOST_KERNELS_TEXT - used, " and others");
    return text;
}
