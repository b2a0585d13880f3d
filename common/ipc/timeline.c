/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/timeline.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/cpu.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/shared_word.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the low half of a timeline word comes first");

const uint32_t *timeline_word(const struct proto_stream_status *stream)
{
    return (const uint32_t *)&stream->completed;
}

static uint32_t fault_of(const struct timeline *timeline)
{
    return shared_word_look(&timeline->status->fault);
}

uint64_t timeline_reached(const struct timeline *timeline)
{
    return shared_word_look(&timeline->stream->completed);
}

void timeline_sleep(const uint32_t *word, uint32_t seen, uint64_t nanoseconds)
{
    struct timespec limit = clock_timespec(nanoseconds);
    /* Not FUTEX_PRIVATE_FLAG: the threads that sleep and wake are in different processes. */
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

void timeline_wake(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool timeline_wait_prepare(const struct timeline *timeline, uint64_t value)
{
    shared_word_add(&timeline->ring->waiter, 1);
    /* Announced before this look: it sees the device's write, or the completer sees the
     * announcement. */
    return timeline_reached(timeline) >= value || fault_of(timeline);
}

void timeline_wait_done(const struct timeline *timeline)
{
    shared_word_subtract(&timeline->ring->waiter, 1);
}

bool timeline_is_watched(const struct proto_ring_header *ring)
{
    return shared_word_look(&ring->waiter) != 0;
}

static bool spin_until(const struct timeline *timeline, uint64_t value, uint64_t end)
{
    do {
        /* Most looks are at the value. Reading the clock and the fault word each time would
         * delay seeing it. */
        for (int i = 0; i < 64; i++) {
            if (timeline_reached(timeline) >= value)
                return true;
            cpu_pause();
        }
    } while (!fault_of(timeline) && clock_now() < end);
    return false;
}

/* The server's threads may want this processor. */
static bool yield_until(const struct timeline *timeline, uint64_t value, uint64_t end)
{
    while (!fault_of(timeline) && clock_now() < end) {
        sched_yield();
        if (timeline_reached(timeline) >= value)
            return true;
    }
    return false;
}

static bool await_awake(const struct timeline *timeline, uint64_t value,
                        const struct timeline_spin *spin, bool yields, uint64_t began)
{
    return spin_until(timeline, value, began + spin->spin_ns) ||
           (yields && yield_until(timeline, value, began + spin->spin_ns + spin->yield_ns));
}

/* Whether the next wait yields, after this one has slept. One that yielded in vain was too long for
 * that. Twice: where it pays to yield, the wake-ups took as long as that. */
static bool yields_next(const struct timeline_spin *spin, bool yielded, uint64_t began)
{
    return !yielded && clock_now() - began < spin->spin_ns + 2 * spin->yield_ns;
}

uint32_t timeline_wait(const struct timeline *timeline, uint64_t value, struct timeline_spin *spin,
                       bool (*alive)(void *), void *context)
{
    if (timeline_reached(timeline) >= value)
        return 0;
    bool spins = spin && spin->spin_ns;
    uint64_t began = spins ? clock_now() : 0;
    /* Relaxed: a guess. */
    bool yields = spins && atomic_load_explicit(&spin->yields, memory_order_relaxed);
    if (spins && await_awake(timeline, value, spin, yields, began))
        return 0;
    uint32_t result = 0;
    bool ready = timeline_wait_prepare(timeline, value);
    /* The submitter looks for announcements when it visits the client, and tells the completer
     * to look often. The doorbell makes it visit a client that it does not scan now. */
    if (!ready)
        doorbell_ring(timeline->header, timeline->index, timeline->eventfd);
    while (!ready) {
        uint64_t reached = timeline_reached(timeline);
        if (reached >= value || fault_of(timeline))
            break;
        timeline_sleep(timeline_word(timeline->stream), (uint32_t)reached, TIMELINE_SLEEP_NS);
        if (alive && timeline_reached(timeline) < value && !fault_of(timeline) && !alive(context)) {
            result = PROTO_ERROR_CONNECTION_LOST;
            break;
        }
    }
    timeline_wait_done(timeline);
    if (spins)
        atomic_store_explicit(&spin->yields, yields_next(spin, yields, began),
                              memory_order_relaxed);
    /* Work that was done before the connection failed is done. */
    if (timeline_reached(timeline) >= value)
        return 0;
    uint32_t fault = fault_of(timeline);
    return fault ? fault : result;
}

void timeline_fail(struct proto_status_header *status, struct proto_stream_status *streams,
                   uint32_t count, uint32_t error)
{
    /* Set before the wake-ups: a thread that is woken finds the fault, and does not sleep again. */
    shared_word_set_first(&status->fault, error);
    for (uint32_t i = 0; i < count; i++) {
        timeline_wake(timeline_word(&streams[i]));
        timeline_wake(&streams[i].head);
    }
}
