/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/suspicion.h"

#include <string.h>

#include "common/ipc/journal.h"
#include "common/ipc/shared_word.h"

static bool in_flight(void *shadow, uint32_t streams, uint64_t stream, uint64_t value)
{
    if (!value || stream >= streams)
        return false;
    return value > shared_word_read(ring_shadow_reached(shadow, (uint32_t)stream)) &&
           value <= shared_word_read(ring_shadow_begun(shadow, streams, (uint32_t)stream));
}

static bool any_in_flight(void *shadow, uint32_t streams)
{
    for (uint32_t i = 0; i < streams; i++)
        if (shared_word_read(ring_shadow_reached(shadow, i)) <
            shared_word_read(ring_shadow_begun(shadow, streams, i)))
            return true;
    return false;
}

static void count_kernel(struct suspicion *suspicion, uint32_t function)
{
    uint32_t at = 0;
    while (at < suspicion->count && suspicion->kernels[at].function != function)
        at++;
    if (at == SUSPICION_KERNELS) {
        suspicion->pending = false;
        return;
    }
    suspicion->kernels[at].function = function;
    suspicion->kernels[at].times++;
    if (at == suspicion->count)
        suspicion->count++;
}

void suspicion_read(struct suspicion *suspicion, void *shadow, uint32_t streams)
{
    const struct journal_entry *journal = journal_at(shadow, streams);
    *suspicion = (struct suspicion){.pending = any_in_flight(shadow, streams)};
    for (unsigned i = 0; suspicion->pending && i < JOURNAL_ENTRIES; i++) {
        struct proto_command_launch launch = {0};
        memcpy(&launch, journal[i].command,
               offsetof(struct proto_command_launch, inline_parameters));
        if (launch.opcode == PROTO_COMMAND_LAUNCH &&
            in_flight(shadow, streams, journal[i].stream, journal[i].value))
            count_kernel(suspicion, launch.function);
    }
}

void suspicion_begin(struct suspicion *suspicion, uint32_t stream, uint64_t value,
                     const struct ring_descriptor *command, bool singly)
{
    struct proto_command_launch launch;
    if (!suspicion->pending)
        return;
    memcpy(&launch, command->bytes, sizeof launch);
    suspicion->value = 0;
    /* Beside others a kernel proves nothing, and one that ran beside them may have run by now. */
    if (!singly)
        suspicion->pending = false;
    else if (launch.opcode == PROTO_COMMAND_LAUNCH) {
        suspicion->value = value;
        suspicion->stream = stream;
        suspicion->function = launch.function;
    }
}

void suspicion_reach(struct suspicion *suspicion, uint32_t stream, uint64_t reached)
{
    bool left = false;
    if (!suspicion->value || suspicion->stream != stream || reached < suspicion->value)
        return;
    suspicion->value = 0;
    for (uint32_t i = 0; i < suspicion->count; i++) {
        if (suspicion->kernels[i].function == suspicion->function && suspicion->kernels[i].times)
            suspicion->kernels[i].times--;
        left |= suspicion->kernels[i].times != 0;
    }
    if (left)
        return;
    suspicion->pending = false;
    suspicion->proven = true;
}
