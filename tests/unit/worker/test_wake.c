/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A sleeper is woken where the device was faster than the submitter. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>

static struct peer *peer;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    peer = peer_attach(1);
    return 0;
}

static int teardown(void **state)
{
    peer_detach(peer);
    return harness_stop(state);
}

/* One thread sleeps; another pushes what it waits for, once it is asleep. */
static pid_t sleeper;
static bool about_to_sleep;

static void *push_when_asleep(void *unused)
{
    char path[64], state = 0;
    (void)unused;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)sleeper);
    while (!__atomic_load_n(&about_to_sleep, __ATOMIC_SEQ_CST))
        sched_yield();
    while (state != 'S') {
        FILE *file = fopen(path, "re");
        if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            abort();
        fclose(file);
    }
    peer_push_nop(peer, 0);
    return NULL;
}

static void the_first_thread_to_see_the_work_done_wakes_the_sleeper(void **state)
{
    (void)state;
    pthread_t thread;
    struct ring *ring = &peer->producers[0].ring;
    struct timeline timeline = {.stream = ring->status,
                                .status = ring_status_header(peer->status.base),
                                .ring = ring->header,
                                .header = ring_client_header(peer->rings.base),
                                .index = 0,
                                .eventfd = peer->doorbell};
    uint32_t other = peer_stream(peer, 0);
    assert_int_equal(peer_wait(peer, other, peer_push_nop(peer, other)), 0);
    /* Nobody else is there to wake it: the completer needs this lock for a look, and the submitter,
     * which has just seen its clients, does not. */
    pthread_mutex_lock(&harness.worker.clients_lock);
    sleeper = (pid_t)syscall(SYS_gettid);
    about_to_sleep = false;
    assert_int_equal(pthread_create(&thread, NULL, push_when_asleep, NULL), 0);
    assert_false(timeline_wait_prepare(&timeline, 1));
    __atomic_store_n(&about_to_sleep, true, __ATOMIC_SEQ_CST);
    uint64_t start = clock_now();
    while (timeline_reached(&timeline) < 1)
        timeline_sleep(timeline_word(ring->status), 0, 5000000000);
    uint64_t took = clock_now() - start;
    timeline_wait_done(&timeline);
    pthread_mutex_unlock(&harness.worker.clients_lock);
    pthread_join(thread, NULL);
    assert_true(took < 4000000000u); /* not by the bound of its sleep */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_thread_to_see_the_work_done_wakes_the_sleeper,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
