/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/recovery/crew.h"
#include "tests/programs/recovery/culprit.h"

enum { CLIENTS = 8, REST = 100, FAULTS_MAX = 2 };

struct tally {
    unsigned faults[FAULTS_MAX + 1]; /* rounds by the fault that named the guilty client */
    unsigned beside[CLIENTS];        /* by the number of others with work in flight */
    unsigned phases[PHASE_COUNT];    /* of the others when the order came */
    unsigned interruptions;          /* of the others */
};

static uint64_t sum_interruptions(const struct crew *crew, int but)
{
    uint64_t sum = 0;
    for (int i = 0; i < CLIENTS; i++)
        sum += i == but ? 0 : atomic_load(&crew->pages[i].interruptions);
    return sum;
}

static void rest_all(struct crew *crew, int but)
{
    double end = crew_now() + crew_patience();
    for (int i = 0; i < CLIENTS; i++)
        if (i != but)
            crew_order(crew, i, ORDER_REST);
    for (int i = 0; i < CLIENTS; i++)
        while (i != but && atomic_load(&crew->pages[i].phase) != PHASE_resting) {
            crew_check(crew);
            if (crew_now() > end)
                crew_die(crew, "client %d does not come to rest", i);
            usleep(100);
        }
}

static void check_verdict(struct crew *crew, int who, const struct culprit *culprit, unsigned most)
{
    const struct page *page = &crew->pages[who];
    if (atomic_load(&page->failed))
        crew_die(crew, "client %u (%d), which faulted: %s", page->client, who, page->words);
    if (page->faults > most || page->verdict != (uint32_t)culprit->error)
        crew_die(crew, "%s: client %u was told error %u instead of %d at fault %u: %s",
                 culprit->kernel, page->client, page->verdict, (int)culprit->error, page->faults,
                 page->words);
    if (!strstr(page->words, "the kernel was this client's") ||
        !strstr(page->words, culprit->kernel))
        crew_die(crew, "client %u was not told that it is guilty: %s", page->client, page->words);
}

/* The log names this client and no other. */
static void check_log(struct crew *crew, int who)
{
    char named[32];
    char *log = crew_log(crew);
    snprintf(named, sizeof named, ": client %u '", crew->pages[who].client);
    /* The suspects' line has the same words, without one client's process. */
    unsigned verdicts = 0;
    for (char *rest, *at = strtok_r(log, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        if (!strstr(at, ") made it fail: "))
            continue;
        verdicts++;
        if (!strstr(at, named))
            crew_die(crew, "client %u faulted, and the log names another: %s",
                     crew->pages[who].client, at);
    }
    free(log);
    if (verdicts != 1)
        crew_die(crew, "the log names %u clients instead of client %u", verdicts,
                 crew->pages[who].client);
}

static void run_round(struct crew *crew, uint32_t kind, bool alone, struct tally *tally)
{
    const struct culprit *culprit = &culprits[kind];
    int who = (int)crew_draw(crew, CLIENTS);
    if (alone)
        rest_all(crew, who);
    uint64_t interruptions = sum_interruptions(crew, who);
    usleep(crew_draw(crew, 3000));
    atomic_store(&crew->pages[who].kind, kind);
    atomic_store(&crew->pages[who].company, alone ? 0 : CLIENTS - 1);
    for (int i = 0; i < CLIENTS; i++)
        if (i != who)
            tally->phases[atomic_load(&crew->pages[i].phase)]++;
    crew_order(crew, who, ORDER_FAULT);
    int status = crew_await_end(crew, who);
    check_verdict(crew, who, culprit, alone ? 1 : FAULTS_MAX);
    if (status != 0)
        crew_die(crew, "client %u ended with wait status %#x", crew->pages[who].client,
                 (unsigned)status);
    check_log(crew, who);
    tally->faults[crew->pages[who].faults]++;
    tally->beside[crew->pages[who].beside]++;
    interruptions = sum_interruptions(crew, who) - interruptions;
    if (alone && interruptions)
        crew_die(crew, "a client without work in flight was interrupted");
    tally->interruptions += (unsigned)interruptions;
    crew_join(crew, who, honest_run);
    for (int i = 0; i < CLIENTS; i++)
        crew_order(crew, i, ORDER_WORK);
    crew_await_batches(crew, 1);
}

static void run_kind(struct crew *crew, uint32_t kind, unsigned rounds, bool alone)
{
    static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    struct tally tally = {0};
    double began = crew_now();
    const unsigned wanted = alone ? 0 : CLIENTS - 1;
    unsigned made = 0;
    /* The others can be between two batches at the fault: such a round is not one of those asked
     * for, though all that it shows is verified. How many there are depends on how busy the CPUs
     * are, so the bound is a time. */
    for (; tally.beside[wanted] < rounds; made++) {
        if (crew_now() > began + crew_patience() * rounds)
            crew_die(crew, "of %u rounds only %u had all eight in flight", made,
                     tally.beside[wanted]);
        run_round(crew, kind, alone, &tally);
    }
    printf(
        "%s (%d), %s: %u rounds in %.1f s, and %u with fewer; named at the first fault %u, at the "
        "second %u; interruptions of others %u\n",
        culprits[kind].kernel, (int)culprits[kind].error, alone ? "alone" : "all eight in flight",
        rounds, crew_now() - began, made - rounds, tally.faults[1], tally.faults[2],
        tally.interruptions);
    crew_print("others in flight", numbers, tally.beside, CLIENTS);
    crew_print("phases of the others", crew_phases, tally.phases, PHASE_COUNT);
}

void recovery_sticky(unsigned rounds, unsigned seed, const char *again)
{
    /* All clients are of one user, who would have to wait. */
    static const char *const args[] = {"--offender-wait", "0", NULL};
    struct crew crew = {.rest = REST, .random = seed, .again = again};
    uint64_t steps = 0, lost = 0;
    crew_open(&crew, args);
    crew_fill(&crew, CLIENTS);
    free(crew_log(&crew));
    for (uint32_t kind = 0; kind < CULPRITS; kind++)
        for (int alone = 1; alone >= 0; alone--)
            run_kind(&crew, kind, rounds, alone);
    for (int i = 0; i < CLIENTS; i++) {
        steps += atomic_load(&crew.pages[i].steps);
        lost += atomic_load(&crew.pages[i].lost);
    }
    crew_leave(&crew);
    crew_close(&crew);
    printf("sticky: %u rounds of %d errors; of the clients at the end: %llu steps verified, %llu "
           "lost; nothing wrong, nothing twice, nobody innocent disconnected or named\n",
           2 * rounds * CULPRITS, CULPRITS, (unsigned long long)steps, (unsigned long long)lost);
}
