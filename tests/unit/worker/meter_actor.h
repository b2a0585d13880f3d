/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Clients whose batches a test submits to a meter by hand, at times of its choice. */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_METER_ACTOR_H
#define GPUSHARE_TESTS_UNIT_WORKER_METER_ACTOR_H

#include "tests/unit/worker/fake.h"

#include "server/worker/client/client.h"
#include "server/worker/sharing/meter.h"
#include "server/worker/sharing/stream_pool.h"

#define MS UINT64_C(1000000)

static struct cuda_driver driver;
static struct partition_table partitions;
static struct meter meter;

/* A client with two streams, on some of four SM groups. */
struct actor {
    struct client client;
    struct partition partition;
    struct client_stream streams[2];
    struct pool_stream on;
    uint64_t shadows[2];
};

static inline void actor_open(struct actor *actor, uint64_t sm_groups)
{
    memset(actor, 0, sizeof *actor);
    actor->partition.sm_groups.bits[0] = sm_groups;
    actor->client.shared.partition = &actor->partition;
    actor->on.partition = &actor->partition;
    for (int i = 0; i < 2; i++) {
        actor->streams[i].client = &actor->client;
        actor->streams[i].shadow = &actor->shadows[i];
        actor->streams[i].bound = &actor->on;
    }
}

static inline int setup(void **state)
{
    (void)state;
    fake_reset();
    driver = fake_driver();
    partitions = (struct partition_table){.count = 4, .sm_group_size = 8};
    return meter_open(&meter, &driver, &partitions) == CUDA_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    meter_close(&meter);
    assert_int_equal(fake.live_events, 0);
    return 0;
}

/* The fake's clock is in milliseconds, and each record advances it by one. */
static inline void begin_at(struct actor *actor, int stream, uint64_t when)
{
    fake.clock = when - 1;
    meter_begin(&meter, &actor->streams[stream], false);
}

static inline void end_at(struct actor *actor, int stream, uint64_t when)
{
    fake.clock = when - 1;
    meter_end(&meter, &actor->streams[stream], ++actor->streams[stream].ring.value);
    actor->shadows[stream] = actor->streams[stream].ring.value;
}

static inline void used(const struct actor *actor, double milliseconds)
{
    double said = (double)actor->client.usage.gpu_nanoseconds / MS;
    if (said < milliseconds - 0.001 || said > milliseconds + 0.001)
        print_message("used %f ms, not %f\n", said, milliseconds);
    assert_true(said > milliseconds - 0.001 && said < milliseconds + 0.001);
}

#endif
