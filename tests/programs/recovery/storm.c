/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/programs/recovery/crew.h"
#include "tests/support/admin_answer.h"

/* FAULTS_SPARE: a fault does not count for a client that ran alone afterwards, where another one
 * did not. */
enum { HONEST = 4, REST = 10, COMPANY_FAULTS = 3, FAULTS_SPARE = 2 };

struct sums {
    uint64_t steps, interruptions;
};

/* A client that faults in company looks for a kernel that has 10 sleeps left. */
enum { COMPANY_REST = 50 };

static struct sums sum(const struct crew *crew)
{
    struct sums sums = {0};
    for (int i = 0; i < HONEST; i++) {
        sums.steps += atomic_load(&crew->pages[i].steps);
        sums.interruptions += atomic_load(&crew->pages[i].interruptions);
    }
    return sums;
}

/* Each honest client goes on, and none is disconnected. */
static void watch(struct crew *crew, double seconds)
{
    for (double end = crew_now() + seconds; crew_now() < end; usleep(20000))
        crew_await_batches(crew, 0);
    for (int i = 0; i < HONEST; i++) {
        uint64_t batches = atomic_load(&crew->pages[i].batches);
        double end = crew_now() + crew_patience();
        while (atomic_load(&crew->pages[i].batches) == batches) {
            crew_check(crew);
            if (crew_now() > end)
                crew_die(crew, "client %d does not go on", i);
            usleep(1000);
        }
    }
}

/* On busy CPUs a client needs longer than the storm to connect, to load a module and to fault. */
static void await_verdict(struct crew *crew)
{
    double end = crew_now() + crew_patience();
    while (!atomic_load(&crew->pages[HONEST].faults)) {
        crew_check(crew);
        if (crew_now() > end)
            crew_die(crew, "the client that faults is not found guilty");
        usleep(1000);
    }
}

static void run_storm(const char *wait, unsigned seconds, unsigned seed, const char *again)
{
    const char *const args[] = {"--offender-wait", wait, NULL};
    struct crew crew = {.rest = REST, .random = seed, .again = again};
    crew_open(&crew, args);
    crew_fill(&crew, HONEST);
    watch(&crew, 0.5);
    struct sums alone = sum(&crew);
    watch(&crew, 1);
    double pace = (double)(sum(&crew).steps - alone.steps);
    struct sums before = sum(&crew);
    double began = crew_now();
    crew_join(&crew, HONEST, honest_storm);
    watch(&crew, seconds);
    await_verdict(&crew);
    struct sums after = sum(&crew);
    double took = crew_now() - began;
    char *log = crew_log(&crew);
    unsigned named = crew_mentions(log, ") made it fail: ");
    unsigned innocent = 0;
    for (int i = 0; i < HONEST; i++) {
        char text[64];
        snprintf(text, sizeof text, "'client-%d' (pid %d, uid %u) made it fail", i,
                 (int)crew.pids[i], (unsigned)getuid());
        innocent += crew_mentions(log, text);
    }
    free(log);
    uint64_t faults = atomic_load(&crew.pages[HONEST].faults);
    if (innocent || !named)
        crew_die(&crew, "the log names %u clients as guilty, %u of them innocent", named, innocent);
    printf("storm, --offender-wait %s: %llu kernels that fault in %.1f s, named %llu times; four "
           "honest clients: %.0f steps a second against %.0f alone, %llu interruptions\n",
           wait, (unsigned long long)atomic_load(&crew.pages[HONEST].batches), took,
           (unsigned long long)faults, (double)(after.steps - before.steps) / took, pace,
           (unsigned long long)(after.interruptions - before.interruptions));
    fflush(stdout);
    crew_leave(&crew);
    crew_close(&crew);
}

static bool is_isolated(struct crew *crew, int i)
{
    json_t *client = admin_answer_client(crew->server, atomic_load(&crew->pages[i].client));
    const char *blame = json_string_value(json_object_get(client, "blame"));
    bool isolated = blame && blame[0] == 'i';
    json_decref(client);
    return isolated;
}

/* A client may be isolated before it has counted its last fault. Returns how many it has counted.
 */
static uint32_t await_faults(struct crew *crew, int i, uint32_t least)
{
    double end = crew_now() + crew_patience();
    while (atomic_load(&crew->pages[i].faults) < least) {
        crew_check(crew);
        if (crew_now() > end)
            crew_die(crew, "client %d is isolated after %u faults, not %u", i,
                     atomic_load(&crew->pages[i].faults), least);
        usleep(1000);
    }
    return atomic_load(&crew->pages[i].faults);
}

/* It is isolated at the third common fault, and guilty of nothing. */
static void run_company(unsigned seconds, unsigned seed, const char *again)
{
    static const char *const args[] = {"--offender-wait", "0", NULL};
    struct crew crew = {.rest = COMPANY_REST, .random = seed, .again = again};
    crew_open(&crew, args);
    crew_fill(&crew, HONEST);
    crew_join(&crew, HONEST, honest_company);
    double end = crew_now() + crew_patience();
    while (!atomic_load(&crew.pages[HONEST].batches) || !is_isolated(&crew, HONEST)) {
        crew_check(&crew);
        if (crew_now() > end)
            crew_die(&crew, "a client that faults in company only is not isolated after %u faults",
                     atomic_load(&crew.pages[HONEST].faults));
        usleep(10000);
    }
    uint32_t faults = await_faults(&crew, HONEST, COMPANY_FAULTS);
    if (faults > COMPANY_FAULTS + FAULTS_SPARE)
        crew_die(&crew, "a client that faults in company only is isolated after %u faults, not %d",
                 faults, COMPANY_FAULTS);
    uint64_t runs = atomic_load(&crew.pages[HONEST].batches);
    watch(&crew, seconds);
    uint32_t later = atomic_load(&crew.pages[HONEST].faults) - faults;
    runs = atomic_load(&crew.pages[HONEST].batches) - runs;
    char *log = crew_log(&crew);
    if (crew_mentions(log, ") made it fail: "))
        crew_die(&crew, "a client is called guilty that faults in company only");
    free(log);
    if (later > 1 || !runs)
        crew_die(&crew, "an isolated client has faulted %u times more in %llu runs", later,
                 (unsigned long long)runs);
    printf("company: isolated after %u common faults; then %u more in %llu runs, and nobody was "
           "called guilty\n",
           faults, later, (unsigned long long)runs);
    /* Its kernels read the others' memory, which is gone once they have left. */
    crew_order(&crew, HONEST, ORDER_LEAVE);
    if (crew_await_end(&crew, HONEST) != 0)
        crew_die(&crew, "the client that faults in company only did not leave well: %s",
                 crew.pages[HONEST].words);
    crew_leave(&crew);
    crew_close(&crew);
}

void recovery_storm(unsigned seconds, unsigned seed, const char *again)
{
    run_storm("1s", seconds, seed, again);
    run_storm("0", seconds, seed, again);
    run_company(seconds, seed, again);
}
