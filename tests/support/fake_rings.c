/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The worker's half of the fake server: it carries out the descriptors in the rings. */
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/timeline.h"
#include "tests/support/fake_state.h"

struct fake_client *fake_nth(struct fake_server *server, unsigned n)
{
    if (n >= server->attached_count)
        fake_die("fake: no such client");
    return &server->clients[server->attached[n]];
}

static struct fake_client *by_number(struct fake_server *server, uint32_t number)
{
    for (unsigned i = 0; i < server->attached_count; i++)
        if (fake_nth(server, i)->number == number)
            return fake_nth(server, i);
    fake_die("fake: no such number");
    return NULL;
}

static bool reached(struct fake_server *server, struct fake_client *client, uint32_t link,
                    uint32_t stream, uint64_t value)
{
    struct fake_client *source = link ? by_number(server, client->links[link - 1]) : client;
    const struct proto_stream_status *status = source->consumers[stream].ring.status;
    return __atomic_load_n(&status->completed, __ATOMIC_SEQ_CST) >= value;
}

static bool may_pass(struct fake_server *server, struct fake_client *client,
                     const struct proto_command_wait *wait)
{
    return reached(server, client, wait->on[0].link, wait->on[0].stream, wait->on[0].value) &&
           (wait->count < 2 ||
            reached(server, client, wait->on[1].link, wait->on[1].stream, wait->on[1].value)) &&
           (wait->count < 3 ||
            reached(server, client, wait->on[2].link, wait->on[2].stream, wait->on[2].value));
}

/*
 * Stores as the device does. In assembly, because a race detector would report it: the detector
 * sees that another thread touches the bytes, but not the order that the rings give, since each
 * side maps them at addresses of its own.
 */
static void device_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    for (; bytes > 0; bytes--)
        __asm__ volatile("ldrb w9, [%1], #1\n\tstrb w9, [%0], #1"
                         : "+r"(to), "+r"(from)
                         :
                         : "x9", "memory");
#endif
}

static void fill(const struct proto_command_fill *fill)
{
    for (uint64_t i = 0; i < fill->count; i++)
        device_copy(fill->destination + i * fill->width, (uint64_t)(uintptr_t)&fill->value,
                    fill->width);
}

/* Returns false for a wait whose values have not been reached. */
static bool carry_out(struct fake_server *server, struct fake_client *client,
                      const struct ring_descriptor *descriptor)
{
    uint16_t opcode;
    memcpy(&opcode, descriptor->bytes, sizeof opcode);
    switch (opcode) {
    case PROTO_COMMAND_WAIT:
        return may_pass(server, client, (const struct proto_command_wait *)descriptor);
    case PROTO_COMMAND_LAUNCH:
        client->launches++;
        return true;
    case PROTO_COMMAND_COPY: {
        const struct proto_command_copy *copy = (const struct proto_command_copy *)descriptor;
        device_copy(copy->destination, copy->source, copy->count);
        return true;
    }
    case PROTO_COMMAND_FILL:
        fill((const struct proto_command_fill *)descriptor);
        return true;
    case PROTO_COMMAND_EVENT_RECORD:
        client->event_times[((const struct proto_command_event_record *)descriptor)->event] =
            clock_now();
        return true;
    case PROTO_COMMAND_NOP:
        return true;
    default:
        fake_die("fake: unknown command");
        return true;
    }
}

static unsigned run_ring(struct fake_server *server, struct fake_client *client, uint32_t stream,
                         unsigned most)
{
    struct ring_consumer *consumer = &client->consumers[stream];
    unsigned n = 0;
    while (n < most && ring_ready(consumer) > 0) {
        struct ring_descriptor descriptor;
        ring_peek(consumer, &descriptor);
        if (!carry_out(server, client, &descriptor))
            break;
        ring_advance(consumer);
        n++;
    }
    if (n) {
        ring_consume(consumer);
        __atomic_store_n(&consumer->ring.status->completed, consumer->value, __ATOMIC_SEQ_CST);
        timeline_wake(timeline_word(consumer->ring.status));
    }
    return n;
}

unsigned fake_run_all(struct fake_server *server)
{
    unsigned n = 0;
    for (unsigned i = 0; i < server->attached_count; i++) {
        struct fake_client *client = fake_nth(server, i);
        for (uint32_t s = 0; s < client->granted.streams && client->fd >= 0; s++)
            if (client->streams_open & (1u << s))
                n += run_ring(server, client, s, 256);
    }
    return n;
}

/* ---- from the test ---- */

void fake_work_error(struct fake_server *server, unsigned n, uint32_t stream, uint32_t error)
{
    pthread_mutex_lock(&server->lock);
    struct proto_stream_status *status = fake_nth(server, n)->consumers[stream].ring.status;
    __atomic_store_n(&status->error, error, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&status->error_count, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&server->lock);
}

void fake_interrupt(struct fake_server *server, unsigned n, uint32_t stream, uint64_t lost_from,
                    uint64_t lost_to)
{
    pthread_mutex_lock(&server->lock);
    struct proto_stream_status *status = fake_nth(server, n)->consumers[stream].ring.status;
    __atomic_store_n(&status->lost_from, lost_from, __ATOMIC_SEQ_CST);
    __atomic_store_n(&status->lost_to, lost_to, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&server->lock);
}

unsigned fake_ready(struct fake_server *server, unsigned n, uint32_t stream)
{
    pthread_mutex_lock(&server->lock);
    int ready = ring_ready(&fake_nth(server, n)->consumers[stream]);
    pthread_mutex_unlock(&server->lock);
    return ready > 0 ? (unsigned)ready : 0;
}

bool fake_peek(struct fake_server *server, unsigned n, uint32_t stream,
               struct ring_descriptor *descriptor)
{
    pthread_mutex_lock(&server->lock);
    struct ring_consumer *consumer = &fake_nth(server, n)->consumers[stream];
    bool there = ring_ready(consumer) > 0;
    if (there)
        ring_peek(consumer, descriptor);
    pthread_mutex_unlock(&server->lock);
    return there;
}

unsigned fake_run(struct fake_server *server, unsigned n, uint32_t stream, unsigned most)
{
    pthread_mutex_lock(&server->lock);
    unsigned done = run_ring(server, fake_nth(server, n), stream, most);
    pthread_mutex_unlock(&server->lock);
    return done;
}

void fake_parameters(struct fake_server *server, unsigned n, uint32_t stream,
                     const struct ring_descriptor *descriptor, void *to)
{
    const struct proto_command_launch *launch = (const struct proto_command_launch *)descriptor;
    if (launch->parameter_bytes <= PROTO_PARAMETERS_INLINE) {
        memcpy(to, launch->inline_parameters, launch->parameter_bytes);
        return;
    }
    pthread_mutex_lock(&server->lock);
    if (!ring_arena_copy(&fake_nth(server, n)->consumers[stream], launch->parameter_offset,
                         launch->parameter_bytes, to))
        fake_die("fake: parameters outside of the arena");
    pthread_mutex_unlock(&server->lock);
}

void fake_automatic(struct fake_server *server, bool automatic)
{
    pthread_mutex_lock(&server->lock);
    server->automatic = automatic;
    pthread_mutex_unlock(&server->lock);
}

unsigned fake_launches(struct fake_server *server, unsigned n)
{
    pthread_mutex_lock(&server->lock);
    unsigned launches = fake_nth(server, n)->launches;
    pthread_mutex_unlock(&server->lock);
    return launches;
}

bool fake_sleep(struct fake_server *server, unsigned n)
{
    pthread_mutex_lock(&server->lock);
    struct fake_client *client = fake_nth(server, n);
    struct proto_client_header *header = ring_client_header(client->rings.base);
    uint64_t bits;
    bool sleeps = true;
    while (doorbell_take(header, client->granted.streams, &bits) >= 0)
        for (uint32_t s = 0; s < client->granted.streams; s++)
            sleeps = sleeps && ring_ready(&client->consumers[s]) == 0;
    if (sleeps)
        sleeps = doorbell_prepare_sleep(header);
    pthread_mutex_unlock(&server->lock);
    return sleeps;
}

unsigned fake_rings(struct fake_server *server, unsigned n)
{
    uint64_t count = 0;
    pthread_mutex_lock(&server->lock);
    if (read(fake_nth(server, n)->eventfd, &count, sizeof count) < 0)
        count = 0;
    pthread_mutex_unlock(&server->lock);
    return (unsigned)count;
}
