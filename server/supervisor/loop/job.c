/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

/* As many threads as libuv has unless its environment says otherwise. A step that is given to
 * libuv would wait there without turns. */
#define THREADS 4

struct job_user {
    struct job_turn turn;
    struct job_user *next;
    uid_t uid;
    uint32_t clients;
};

/* ---- turns ---- */

static void turn_open(struct job_turn *turn, struct job_turn *above, unsigned running_max)
{
    *turn = (struct job_turn){.above = above, .running_max = running_max};
}

static bool turn_has_work(const struct job_turn *turn)
{
    return turn->running < turn->running_max &&
           !(queue_is_empty(&turn->jobs) && queue_is_empty(&turn->turns));
}

/* Puts a turn that has work, and those above it, behind the others that have. */
static void turn_offer(struct job_turn *turn)
{
    for (; turn->above && !turn->queued && turn_has_work(turn); turn = turn->above) {
        turn->queued = true;
        queue_append(&turn->above->turns, &turn->link);
    }
}

/* The next job of a turn that has work. */
static struct job *turn_take(struct job_turn *turn)
{
    turn->running++;
    struct job *job = QUEUE_TAKE(&turn->jobs, struct job, link);
    if (job)
        return job;
    struct job_turn *first = QUEUE_TAKE(&turn->turns, struct job_turn, link);
    first->queued = false;
    job = turn_take(first);
    turn_offer(first);
    return job;
}

static void turn_end(struct job_turn *turn)
{
    for (struct job_turn *each = turn; each; each = each->above)
        each->running--;
    for (struct job_turn *each = turn; each; each = each->above)
        turn_offer(each);
}

/* ---- steps ---- */

static void pool_work(struct job_pool *pool);

static void step_run(uv_work_t *work)
{
    struct job *job = container_of(work, struct job, work);
    job->result = job->run(job);
}

static void step_ended(uv_work_t *work, int status)
{
    struct job *job = container_of(work, struct job, work);
    struct job_client *client = job->client;
    int result = status < 0 ? status : job->result;
    if (result == JOB_AGAIN)
        queue_append(&client->turn.jobs, &job->link);
    turn_end(&client->turn);
    pool_work(client->pool);
    if (result != JOB_AGAIN)
        job->done(job, result);
}

/* Gives the pool's free threads a step each. */
static void pool_work(struct job_pool *pool)
{
    while (turn_has_work(&pool->turn)) {
        struct job *job = turn_take(&pool->turn);
        int result = uv_queue_work(pool->loop, &job->work, step_run, step_ended);
        assert(result == 0); /* it refuses a missing function alone */
        (void)result;
    }
}

/* ---- clients ---- */

void job_pool_open(struct job_pool *pool, uv_loop_t *loop)
{
    *pool = (struct job_pool){.loop = loop};
    turn_open(&pool->turn, NULL, THREADS);
}

static struct job_user *user_join(struct job_pool *pool, uid_t uid)
{
    struct job_user *user = pool->users;
    while (user && user->uid != uid)
        user = user->next;
    if (!user && (user = calloc(1, sizeof *user))) {
        /* A step can wait for longer than it works: for a page that the kernel has to find. */
        turn_open(&user->turn, &pool->turn, THREADS - 1);
        user->uid = uid;
        user->next = pool->users;
        pool->users = user;
    }
    if (user)
        user->clients++;
    return user;
}

int job_client_open(struct job_client *client, struct job_pool *pool, uid_t uid)
{
    *client = (struct job_client){.pool = pool, .user = user_join(pool, uid)};
    if (!client->user)
        return -ENOMEM;
    turn_open(&client->turn, &client->user->turn, THREADS - 1);
    return 0;
}

void job_client_close(struct job_client *client)
{
    struct job_user *user = client->user;
    client->user = NULL;
    if (!user || --user->clients)
        return;
    struct job_user **link = &client->pool->users;
    while (*link != user)
        link = &(*link)->next;
    *link = user->next;
    free(user);
}

void job_start(struct job *job, struct job_client *client, int (*run)(struct job *job),
               void (*done)(struct job *job, int result))
{
    job->client = client;
    job->run = run;
    job->done = done;
    job->at = 0;
    queue_append(&client->turn.jobs, &job->link);
    turn_offer(&client->turn);
    pool_work(client->pool);
}
