/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/util.h"
#include "server/supervisor/loop/job.h"

/* A pool that hangs would hang the test. */
#define HANG_SECONDS 60
#define FLOOD        64

struct flood_job {
    struct job job;
    unsigned steps, taken;
    sem_t *gate;          /* each step passes it; NULL: none */
    atomic_uint *counter; /* of steps; NULL: none */
    unsigned seen;        /* the value of *watched when the job was done */
    atomic_uint *watched; /* NULL: none */
    int result;
    bool done;
};

struct fixture {
    uv_loop_t loop;
    struct job_pool pool;
};

static int step(struct job *job)
{
    struct flood_job *flood = container_of(job, struct flood_job, job);
    if (flood->gate)
        sem_wait(flood->gate);
    if (flood->counter)
        atomic_fetch_add(flood->counter, 1);
    job->at++;
    return ++flood->taken < flood->steps ? JOB_AGAIN : flood->result;
}

static void done(struct job *job, int result)
{
    struct flood_job *flood = container_of(job, struct flood_job, job);
    assert_false(flood->done);
    assert_int_equal(result, flood->result);
    assert_int_equal(job->at, flood->steps);
    flood->done = true;
    if (flood->watched)
        flood->seen = atomic_load(flood->watched);
}

static void flood_start(struct flood_job jobs[], unsigned count, struct job_client *client,
                        struct flood_job like)
{
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = like;
        job_start(&jobs[i].job, client, step, done);
    }
}

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    alarm(HANG_SECONDS);
    uv_loop_init(&fixture->loop);
    job_pool_open(&fixture->pool, &fixture->loop);
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    alarm(0);
    assert_null(fixture->pool.users);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
    return 0;
}

static void a_job_is_done_once_with_the_last_steps_result(void **state)
{
    struct fixture *fixture = *state;
    struct job_client client;
    struct flood_job jobs[3];
    assert_int_equal(job_client_open(&client, &fixture->pool, 1), 0);
    flood_start(jobs, 1, &client, (struct flood_job){.steps = 1});
    flood_start(jobs + 1, 1, &client, (struct flood_job){.steps = 9, .result = -EIO});
    flood_start(jobs + 2, 1, &client, (struct flood_job){.steps = 200});
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(jobs[i].done);
        assert_int_equal(jobs[i].taken, jobs[i].steps);
    }
    job_client_close(&client);
    job_client_close(&client);
}

static void steps_of_one_user_that_wait_leave_another_user_a_thread(void **state)
{
    struct fixture *fixture = *state;
    struct job_client greedy[2], other;
    static struct flood_job flood[2][FLOOD];
    struct flood_job one;
    sem_t gate;
    sem_init(&gate, 0, 0);
    assert_int_equal(job_client_open(&other, &fixture->pool, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(job_client_open(&greedy[i], &fixture->pool, 1), 0);
        flood_start(flood[i], FLOOD, &greedy[i], (struct flood_job){.steps = 1, .gate = &gate});
    }
    flood_start(&one, 1, &other, (struct flood_job){.steps = 3});
    while (!one.done)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    for (unsigned i = 0; i < 2 * FLOOD; i++)
        sem_post(&gate);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_true(flood[1][FLOOD - 1].done);
    for (unsigned i = 0; i < 2; i++)
        job_client_close(&greedy[i]);
    job_client_close(&other);
    sem_destroy(&gate);
}

/* uids: of the client with the flood and of the one that has two steps to do. */
static void turn_comes_soon(struct fixture *fixture, uid_t greedy_uid, uid_t uid)
{
    struct job_client greedy, other;
    static struct flood_job flood[FLOOD];
    struct flood_job one;
    atomic_uint steps = 0;
    assert_int_equal(job_client_open(&greedy, &fixture->pool, greedy_uid), 0);
    assert_int_equal(job_client_open(&other, &fixture->pool, uid), 0);
    flood_start(flood, FLOOD, &greedy, (struct flood_job){.steps = 50, .counter = &steps});
    flood_start(&one, 1, &other, (struct flood_job){.steps = 2, .watched = &steps});
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(steps, FLOOD * 50);
    /* Three steps of the flood are at work, and three more get threads before each step of the
     * other client at worst. A late wake-up of a thread may cost a few rounds more. */
    assert_in_range(one.seen, 0, 50);
    job_client_close(&greedy);
    job_client_close(&other);
}

static void another_users_turn_comes_before_a_flood_is_over(void **state)
{
    turn_comes_soon(*state, 1, 2);
}

static void another_clients_turn_comes_before_a_flood_of_its_own_user_is_over(void **state)
{
    turn_comes_soon(*state, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_done_once_with_the_last_steps_result, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(steps_of_one_user_that_wait_leave_another_user_a_thread,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(another_users_turn_comes_before_a_flood_is_over,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            another_clients_turn_comes_before_a_flood_of_its_own_user_is_over, open_fixture,
            close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
