/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/recovery.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/recovery/crew.h"
#include "tests/programs/recovery/remains.h"
#include "tests/support/crash_signal.h"

enum { CLIENTS = 5, REST = 100, LEAVE_EACH = 100, HIT_PERCENT = 70, TWO_EACH = 10, JUDGED = 100 };

/* Each victim has a function that finds and signals it. */
enum victim { VICTIM_WORKER, VICTIM_CLIENT, VICTIM_SUPERVISOR, VICTIMS };
/* The last is for the supervisor alone: it hands over to the next one, as at an upgrade. */
enum way { WAY_KILL, WAY_CRASH, WAY_STOP, WAY_UPGRADE, WAYS };

static const char *const victim_names[VICTIMS] = {"worker", "client", "supervisor"};
static const char *const way_names[WAYS] = {"SIGKILL", "SIGSEGV", "SIGSTOP", "SIGUSR2"};
/* The age of a worker that was signalled. */
static const char *const age_names[] = {"below 20 ms", "below 100 ms", "below a second", "older"};

struct tally {
    unsigned signals[VICTIMS][WAYS];
    unsigned phases[PHASE_COUNT]; /* of clients that were signalled */
    unsigned others[PHASE_COUNT]; /* of all clients when the worker or the supervisor was */
    unsigned ages[4];
    unsigned rounds, hits, two;
    uint64_t steps, lost, interruptions;
};

/* A process that was stopped, and what comes next for it: SIGKILL, or it goes on. */
struct stopped {
    pid_t pid;
    bool dies;
};

/* Of each client: the number of the batch that it has in flight, from 1 on; 0: it has none. */
struct busy {
    uint64_t batch[CLIENTS];
};

static struct busy look(const struct crew *crew)
{
    struct busy busy = {{0}};
    for (int i = 0; i < CLIENTS; i++) {
        uint64_t batch = atomic_load(&crew->pages[i].batches) + 1;
        busy.batch[i] = atomic_load(&crew->pages[i].in_flight) ? batch : 0;
    }
    return busy;
}

static bool was_busy(const struct busy *busy)
{
    bool any = false;
    for (int i = 0; i < CLIENTS; i++)
        any |= busy->batch[i] > 0;
    return any;
}

/* Whether a client had seen no end of its work when the signal was sent: it had it in flight before
 * and behind. */
static bool was_hit(const struct crew *crew, const struct busy *before)
{
    struct busy now = look(crew);
    bool hit = false;
    for (int i = 0; i < CLIENTS; i++)
        hit |= before->batch[i] && now.batch[i] == before->batch[i];
    return hit;
}

static const int signals[WAYS] = {SIGKILL, SIGSEGV, SIGSTOP, SIGUSR2};

static enum way signal_one(struct crew *crew, pid_t pid, struct stopped *stopped)
{
    enum way way = (enum way)crew_draw(crew, WAY_UPGRADE);
    kill(pid, crash_signal(signals[way]));
    if (way == WAY_STOP)
        *stopped = (struct stopped){.pid = pid, .dies = crew_draw(crew, 2)};
    return way;
}

/* By the process, in steps of the kernel's clock; a worker serves after about 30 ms. */
static unsigned age_of_worker(pid_t worker)
{
    char path[64], text[512] = "";
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)worker);
    FILE *file = fopen(path, "re");
    const char *behind = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (behind)
        (void)sscanf(behind + 1,
                     "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                     "%*s %*s %*s %llu",
                     &start);
    if (file)
        fclose(file);
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    double age = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
                 (double)start / (double)sysconf(_SC_CLK_TCK);
    return age < 0.02 ? 0 : age < 0.1 ? 1 : age < 1 ? 2 : 3;
}

static void note_others(const struct crew *crew, struct tally *tally)
{
    for (int i = 0; i < crew->count; i++)
        tally->others[atomic_load(&crew->pages[i].phase)]++;
}

/* The worker may be between two lives: the next one is awaited. Returns whether clients had work in
 * flight. */
static bool hit_worker(struct crew *crew, struct tally *tally, struct stopped *stopped)
{
    pid_t worker;
    double end = crew_now() + crew_patience();
    while (server_workers(crew->server, &worker, 1) != 1) {
        if (crew_now() > end)
            crew_die(crew, "there is no worker");
        usleep(200);
    }
    tally->ages[age_of_worker(worker)]++;
    struct busy before = look(crew);
    enum way way = signal_one(crew, worker, stopped);
    bool hit = was_hit(crew, &before);
    tally->signals[VICTIM_WORKER][way]++;
    note_others(crew, tally);
    return hit;
}

/* A server that hands over ends well; one that was stopped hands over when it goes on. */
static void replace_supervisor(struct crew *crew, enum way way)
{
    int signal = crash_signal(signals[way]), wanted = way == WAY_UPGRADE ? 0 : 128 + signal;
    int status = server_replace(crew->server, signal);
    if (status != wanted)
        crew_die(crew, "the server ended by %s with status %d and not %d", way_names[way], status,
                 wanted);
}

static bool hit_supervisor(struct crew *crew, struct tally *tally, struct stopped *stopped)
{
    struct busy before = look(crew);
    enum way way = (enum way)crew_draw(crew, WAYS);
    tally->signals[VICTIM_SUPERVISOR][way]++;
    note_others(crew, tally);
    if (way == WAY_STOP) {
        *stopped = (struct stopped){.pid = server_pid(crew->server), .dies = crew_draw(crew, 2)};
        kill(stopped->pid, SIGSTOP);
        return was_hit(crew, &before);
    }
    /* A look behind it would come when the next server serves: the clients go on meanwhile. */
    replace_supervisor(crew, way);
    return was_busy(&before);
}

static bool hit_client(struct crew *crew, struct tally *tally, int who, struct stopped *stopped)
{
    enum way way = signal_one(crew, crew->pids[who], stopped);
    tally->signals[VICTIM_CLIENT][way]++;
    if (way != WAY_STOP) {
        int status = crew_await_end(crew, who);
        if (!WIFSIGNALED(status))
            crew_die(crew, "client %d ended with wait status %#x: %s", who, (unsigned)status,
                     crew->pages[who].words);
    } else {
        int status;
        waitpid(crew->pids[who], &status, WUNTRACED);
        if (!WIFSTOPPED(status)) {
            crew->pids[who] = 0;
            crew_die(crew, "client %d ended with wait status %#x before it was stopped: %s", who,
                     (unsigned)status, crew->pages[who].words);
        }
    }
    /* It does nothing any more, so this is what it did when the signal came. */
    tally->phases[atomic_load(&crew->pages[who].phase)]++;
    return atomic_load(&crew->pages[who].in_flight);
}

/* A stopped process goes on, or is killed after all. */
static void end_stop(struct crew *crew, const struct stopped *stopped)
{
    if (!stopped->pid)
        return;
    if (stopped->pid == server_pid(crew->server) && stopped->dies) {
        replace_supervisor(crew, WAY_KILL);
        return;
    }
    kill(stopped->pid, stopped->dies ? SIGKILL : SIGCONT);
    for (int i = 0; i < crew->count; i++)
        if (crew->pids[i] == stopped->pid && stopped->dies)
            (void)crew_await_end(crew, i);
}

/* Any moment; in four of five rounds, one at which the client has work in flight, or had just now.
 */
static void await_moment(struct crew *crew, int who)
{
    bool busy = crew_draw(crew, 5) > 0;
    usleep(crew_draw(crew, 8000));
    for (int left = 20000; busy && left > 0 && !atomic_load(&crew->pages[who].in_flight); left--)
        usleep(50);
    usleep(crew_draw(crew, 1000));
}

static void run_round(struct crew *crew, struct tally *tally)
{
    struct stopped stopped[2] = {{0}};
    bool hit = false, two = tally->rounds % TWO_EACH == 0;
    int first = (int)crew_draw(crew, CLIENTS);
    await_moment(crew, first);
    /* Half of those with two end the server while its clients are restored. */
    bool restoring = two && crew_draw(crew, 2);
    for (int i = 0; i < 1 + two; i++) {
        /* Each is hit in a run of few rounds, too. */
        enum victim victim = tally->rounds < VICTIMS
                                 ? (enum victim)((tally->rounds + (unsigned)i) % VICTIMS)
                                 : (enum victim)crew_draw(crew, VICTIMS);
        if (restoring) {
            victim = i == 0 ? VICTIM_WORKER : VICTIM_SUPERVISOR;
            usleep(i == 0 ? 0 : crew_draw(crew, 60000));
        }
        /* Two clients at once are different ones. */
        if (victim == VICTIM_WORKER)
            hit |= hit_worker(crew, tally, &stopped[i]);
        else if (victim == VICTIM_SUPERVISOR)
            hit |= hit_supervisor(crew, tally, &stopped[i]);
        else
            hit |= hit_client(crew, tally, (first + i) % CLIENTS, &stopped[i]);
    }
    if (stopped[0].pid || stopped[1].pid)
        usleep(crew_draw(crew, 30000));
    end_stop(crew, &stopped[0]);
    end_stop(crew, &stopped[1]);
    tally->rounds++;
    tally->hits += hit;
    tally->two += two;
    crew_fill(crew, CLIENTS);
}

static void take_counts(const struct crew *crew, struct tally *tally)
{
    for (int i = 0; i < CLIENTS; i++) {
        tally->steps += atomic_load(&crew->pages[i].steps);
        tally->lost += atomic_load(&crew->pages[i].lost);
        tally->interruptions += atomic_load(&crew->pages[i].interruptions);
    }
}

static void print_tally(const struct tally *tally)
{
    for (int i = 0; i < VICTIMS; i++)
        crew_print(victim_names[i], way_names, tally->signals[i], WAYS);
    crew_print("phases of clients that were hit", crew_phases, tally->phases, PHASE_COUNT);
    crew_print("ages of workers that were hit", age_names, tally->ages, 4);
    crew_print("phases of clients when server or worker was", crew_phases, tally->others,
               PHASE_COUNT);
    printf("kills: %u rounds, %u with two at once, %u (%u %%) with work in flight; of the clients "
           "at the end of each hundred: %llu steps verified, %llu lost in %llu interruptions; "
           "nothing wrong, nothing twice, nothing remains\n",
           tally->rounds, tally->two, tally->hits, tally->hits * 100 / tally->rounds,
           (unsigned long long)tally->steps, (unsigned long long)tally->lost,
           (unsigned long long)tally->interruptions);
}

void recovery_kills(unsigned rounds, unsigned seed, const char *again)
{
    /* A stopped worker must go on where nobody kills it; without a pool all memory is given back.
     */
    static const char *const args[] = {"--watchdog-limit", "0", "--pinned-pool", "0", NULL};
    struct crew crew = {.rest = REST, .random = seed, .again = again};
    struct tally tally = {0};
    crew_open_kept(&crew, args);
    /* The first clients make what the server keeps, and a server that took over has what it keeps
     * in another way. */
    crew_fill(&crew, CLIENTS);
    (void)server_replace(crew.server, SIGKILL);
    crew_leave(&crew);
    struct remains before = remains_take(&crew);
    while (tally.rounds < rounds) {
        crew_fill(&crew, CLIENTS);
        do
            run_round(&crew, &tally);
        while (tally.rounds < rounds && tally.rounds % LEAVE_EACH);
        take_counts(&crew, &tally);
        crew_leave(&crew);
        remains_compare(&crew, &before);
    }
    crew_close(&crew);
    print_tally(&tally);
    /* Of few rounds fewer may have been hit by chance. */
    if (rounds >= JUDGED && tally.hits * 100 < rounds * HIT_PERCENT) {
        printf("only %u of %u rounds had work in flight\n", tally.hits, rounds);
        exit(1);
    }
}
