/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/honest_private.h"

#include <string.h>
#include <unistd.h>

static gpushare_address slot_address(const struct honest *honest, int slot)
{
    return honest->slots + (gpushare_address)(slot % SLOTS) * WORDS * 4;
}

/* As the kernel of the same name does it. */
static void compute(uint32_t to[WORDS], const uint32_t from[WORDS])
{
    for (uint32_t i = 0; i < WORDS; i++)
        to[i] = from[i] * 1664525 + 1013904223 + i;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        gpushare_error try_error = (call);                                                         \
        if (try_error != GPUSHARE_SUCCESS)                                                         \
            return try_error;                                                                      \
    } while (0)

static gpushare_error push_step(struct honest *honest, int i)
{
    const struct gpushare_dim grid = {BLOCKS, 1, 1}, block = {WORDS / BLOCKS, 1, 1};
    gpushare_stream *stream = honest->streams[i % 2], *copies = honest->streams[2];
    gpushare_address to = slot_address(honest, honest->slot + i + 1),
                     from = slot_address(honest, honest->slot + i),
                     count = honest->counts + 4 * (gpushare_address)i, stamp = honest->stamp;
    uint32_t rest = honest_draw(honest, honest->spec->rest + 1);
    void *parameters[] = {&to, &from, &count, &stamp, &rest};
    if (i > 0)
        TRY(gpushare_stream_wait_event(honest->gpu, stream, honest->stepped[i - 1]));
    TRY(gpushare_launch(honest->step, grid, block, 0, stream, parameters));
    atomic_store(&honest->page->in_flight, 1);
    TRY(gpushare_event_record(honest->stepped[i], stream));
    honest->step_noted[i] = true;
    TRY(gpushare_stream_wait_event(honest->gpu, copies, honest->stepped[i]));
    TRY(gpushare_copy_from_device_async(honest->gpu, honest->results[i], to, WORDS * 4, copies));
    TRY(gpushare_event_record(honest->copied[i], copies));
    honest->copy_noted[i] = true;
    return GPUSHARE_SUCCESS;
}

gpushare_error batch_push(struct honest *honest, int length)
{
    memset(honest->step_noted, 0, sizeof honest->step_noted);
    memset(honest->copy_noted, 0, sizeof honest->copy_noted);
    memset(honest->results, 0, sizeof *honest->results * STEPS);
    memcpy(honest->expected[0], honest->state, sizeof honest->state);
    for (int i = 0; i < length; i++)
        compute(honest->expected[i + 1], honest->expected[i]);
    honest->length = length;
    honest_phase(honest, PHASE_pushing);
    for (int i = 0; i < length; i++)
        TRY(push_step(honest, i));
    return GPUSHARE_SUCCESS;
}

static gpushare_error wait_for_streams(const struct honest *honest)
{
    for (int i = 0; i < 3; i++)
        TRY(gpushare_stream_synchronize(honest->gpu, honest->streams[i]));
    return GPUSHARE_SUCCESS;
}

static gpushare_error wait_for_events(const struct honest *honest)
{
    for (int i = 0; i < honest->length; i++) {
        TRY(gpushare_event_synchronize(honest->stepped[i]));
        TRY(gpushare_event_synchronize(honest->copied[i]));
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error poll_stream(const struct honest *honest)
{
    gpushare_error error;
    while ((error = gpushare_stream_query(honest->gpu, honest->streams[2])) ==
           GPUSHARE_ERROR_NOT_READY)
        usleep(50);
    return error;
}

gpushare_error batch_wait(struct honest *honest)
{
    honest_phase(honest, PHASE_waiting);
    switch (honest_draw(honest, 4)) {
    case 0:
        TRY(wait_for_streams(honest));
        break;
    case 1:
        TRY(wait_for_events(honest));
        break;
    case 2:
        TRY(poll_stream(honest));
        break;
    default:
        break;
    }
    return gpushare_synchronize(honest->gpu);
}

/* ---- what must hold ---- */

/* The result of an earlier event that was lost is lost, too. */
static bool is_done(const struct honest *honest, gpushare_event *event, bool noted)
{
    if (!noted)
        return false;
    gpushare_error error = gpushare_event_query(event);
    if (error != GPUSHARE_SUCCESS && error != GPUSHARE_ERROR_INTERRUPTED)
        honest_fail(honest, "an event of settled streams says %s: %s", gpushare_error_name(error),
                    gpushare_error_text());
    return error == GPUSHARE_SUCCESS;
}

static void demand(const struct honest *honest, const uint32_t *found, int step, const char *where)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (found[i] != honest->expected[step + 1][i])
            honest_fail(honest,
                        "word %u of step %d is %#x in %s, instead of %#x: finished work is wrong",
                        i, step, found[i], where, honest->expected[step + 1][i]);
}

static uint64_t blocks_of(const struct honest *honest, int i, const uint32_t *counts, bool done)
{
    uint32_t blocks = counts[i] - honest->ran[i];
    if (blocks > BLOCKS)
        honest_fail(honest, "step %d ran in %u blocks instead of %d: it ran twice", i, blocks,
                    BLOCKS);
    if (done && blocks != BLOCKS)
        honest_fail(honest, "step %d is done, and %u of its %d blocks ran", i, blocks, BLOCKS);
    return blocks;
}

static void recover_streams(struct honest *honest)
{
    uint64_t dropped = 0;
    honest_phase(honest, PHASE_recovering);
    for (int i = 0; i < 3; i++) {
        struct gpushare_recovery recovery = {.size = sizeof recovery};
        MUST(honest, gpushare_stream_recover(honest->gpu, honest->streams[i], &recovery));
        dropped += recovery.dropped;
    }
    if (dropped == 0)
        honest_fail(honest, "a stream was interrupted, and nothing was lost");
    atomic_fetch_add(&honest->page->interruptions, 1);
}

/* Of a batch: the number of its first steps that are done, and how many blocks counted themselves
 * in a step that is not known to be done. */
struct findings {
    int finished;
    uint64_t open;
};

static struct findings check_steps(struct honest *honest, const uint32_t *counts,
                                   const uint32_t (*slots)[WORDS])
{
    int finished = 0, begun = 0;
    uint64_t open = 0;
    bool done[STEPS] = {false};
    for (int i = 0; i < honest->length; i++) {
        bool copied = is_done(honest, honest->copied[i], honest->copy_noted[i]);
        done[i] = is_done(honest, honest->stepped[i], honest->step_noted[i]);
        uint64_t blocks = blocks_of(honest, i, counts, done[i]);
        if (blocks) {
            begun = i;
            open = done[i] ? 0 : blocks;
        }
        if (copied && !done[i])
            honest_fail(honest, "the copy of step %d is done before the step", i);
        if (copied)
            demand(honest, honest->results[i], i, "the host buffer");
        if (done[i] && finished != i)
            honest_fail(honest, "step %d is done, and the one before it is not", i);
        finished += done[i];
    }
    /* Finished steps, and each step before one that has begun. */
    for (int i = 0; i < honest->length; i++) {
        if (i < begun && counts[i] - honest->ran[i] != BLOCKS)
            honest_fail(honest, "step %d began before step %d was done", begun, i);
        if (i < begun || done[i])
            demand(honest, slots[(honest->slot + i + 1) % SLOTS], i, "device memory");
    }
    return (struct findings){.finished = finished, .open = open};
}

/* A block counts itself in its step's word and then in the module's variable: a worker that is
 * killed between the two leaves the variable behind, by the blocks of the last step at most. */
static void check_total(struct honest *honest, const uint32_t *counts, uint64_t total,
                        uint64_t open)
{
    uint64_t blocks = 0, grown = total - honest->sum;
    for (int i = 0; i < STEPS; i++)
        blocks += counts[i] - honest->ran[i];
    if (grown > blocks || blocks - grown > open)
        honest_fail(honest,
                    "the module's variable grew by %lld, and %llu blocks ran, of which %llu may be "
                    "unfinished",
                    (long long)grown, (unsigned long long)blocks, (unsigned long long)open);
    honest->sum = total;
    memcpy(honest->ran, counts, sizeof honest->ran);
}

void batch_settle(struct honest *honest, bool interrupted)
{
    uint32_t counts[STEPS], slots[SLOTS][WORDS];
    uint64_t total;
    atomic_store(&honest->page->in_flight, 0);
    if (interrupted)
        recover_streams(honest);
    honest_phase(honest, PHASE_checking);
    honest_fetch(honest, counts, honest->counts, sizeof counts);
    honest_fetch(honest, slots, honest->slots, sizeof slots);
    honest_fetch(honest, &total, honest->total, sizeof total);
    struct findings findings = check_steps(honest, counts, (const uint32_t(*)[WORDS])slots);
    int finished = findings.finished;
    if (!interrupted && finished != honest->length)
        honest_fail(honest, "%d of %d steps are done, and nobody was interrupted", finished,
                    honest->length);
    check_total(honest, counts, total, findings.open);
    memcpy(honest->state, honest->expected[finished], sizeof honest->state);
    honest->slot = (honest->slot + finished) % SLOTS;
    atomic_fetch_add(&honest->page->steps, (uint64_t)finished);
    atomic_fetch_add(&honest->page->lost, (uint64_t)(honest->length - finished));
    atomic_fetch_add(&honest->page->batches, 1);
}
