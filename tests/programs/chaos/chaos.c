/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * make chaos: changes everything that an administrator may change, at random, while clients have
 * queues full of launches. The words that the kernels write show that no launch is lost, none runs
 * twice, and every client goes on.
 *
 * Part "changes": CHANGES changes of limits, one after another, of threads, time or priority, each
 * under load. The next change comes when a launch of this client has ended meanwhile.
 *
 * Part "disorder": for CHAOS_SECONDS such changes, other modes, a new configuration (or one that
 * the server must refuse), clients that are killed with work in flight and others in their place.
 *
 * usage: chaos SECONDS [CHANGES [SEED]]
 * Prints a line for each part. Exit status 0: all of it holds.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"

enum { STAYING = 4, DYING = 2, KERNEL_NS = 200000, DEPTH = 200, STALL_SECONDS = 60 };

static struct chaos {
    struct server *server;
    int admin;
    unsigned seed;
    char config[64];
    struct load *staying[STAYING]; /* every launch of theirs is counted */
    struct load *dying[DYING];     /* killed, and others put in their place */
    uint32_t seen[STAYING];        /* launches that were done at the last look */
    double progress[STAYING];      /* when that number last changed */
    unsigned done[8], refused;     /* number of each kind of disorder below; refusals */
} chaos;

static unsigned random_below(unsigned bound)
{
    return (unsigned)rand_r(&chaos.seed) % bound;
}

static struct load *client(const char *name, bool drain)
{
    const uint32_t blocks = 1 + random_below(8);
    struct load_spec spec = {.name = name,
                             .kernel_ns = KERNEL_NS,
                             .blocks = blocks,
                             .most = 2 * DEPTH,
                             .depth = DEPTH,
                             .endless = true,
                             .drain = drain};
    struct load *load = load_start(chaos.server, &spec);
    load_go(load);
    return load;
}

/* ---- what happens ---- */

static bool change_share(uint32_t client_number)
{
    static const char *const what[] = {"threads", "time"};
    json_t *answer;
    unsigned kind = random_below(5), limit = 10 + random_below(91);
    if (kind == 4)
        answer = administer_try(chaos.admin, "{\"request\":\"set\",\"client\":%u,\"priority\":%u}",
                                client_number, random_below(4));
    else if (kind == 3) /* at most 90 % for all clients, so that it fits */
        answer = administer_try(chaos.admin,
                                "{\"request\":\"set\",\"client\":%u,\"%s\":{\"request\":\"%u%%\","
                                "\"limit\":\"100%%\"}}",
                                client_number, what[random_below(2)],
                                random_below(90 / (STAYING + DYING)));
    else
        answer =
            administer_try(chaos.admin,
                           "{\"request\":\"set\",\"client\":%u,\"threads\":{\"request\":\"0%%\","
                           "\"limit\":\"%u%%\"}}",
                           client_number, limit);
    bool good = json_is_true(json_object_get(answer, "ok"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    if (!good && (!error || strcmp(error, "invalid_value")))
        bench_die("a change of share: %s", json_dumps(answer, JSON_COMPACT));
    chaos.refused += !good;
    json_decref(answer);
    return good;
}

static void change_mode(void)
{
    static const char *const modes[] = {"concurrent", "strict", "fair", "turns"};
    static const char *const leases[] = {"5ms", "20ms", "100ms"};
    struct administer_mode mode = {.mode = modes[random_below(4)],
                                   .lease = leases[random_below(3)],
                                   .precision = "10%",
                                   .quantum = "200ms"};
    administer_mode(chaos.admin, &mode);
}

static void reload(void)
{
    static const char *const texts[] = {
        "clients:\n  threads: {limit: 90%}\n", "clients:\n  priority: 2\n",
        "profiles:\n  small: {memory: {limit: 1G}}\n",
        "clients:\n  threds: {limit: 90%}\n", /* must be refused */
    };
    unsigned which = random_below(4);
    FILE *file = fopen(chaos.config, "we");
    if (!file || fputs(texts[which], file) < 0 || fclose(file) != 0)
        bench_die("%s can't be written", chaos.config);
    json_t *answer = administer_try(chaos.admin, "{\"request\":\"reload\"}");
    if (json_is_true(json_object_get(answer, "ok")) != (which < 3))
        bench_die("a reload: %s", json_dumps(answer, JSON_COMPACT));
    json_decref(answer);
}

static void replace(void)
{
    unsigned which = random_below(DYING);
    struct load *victim = chaos.dying[which];
    kill(victim->pid, SIGKILL);
    waitpid(victim->pid, NULL, 0);
    load_free(victim);
    chaos.dying[which] = client("dying", false);
}

static const struct happening {
    const char *name;
    unsigned odds;
} happenings[] = {
    {"changes of share", 70}, {"changes of mode", 10}, {"reloads", 10}, {"clients killed", 10}};

static void happen(void)
{
    unsigned dice = random_below(100), kind = 0;
    while (dice >= happenings[kind].odds)
        dice -= happenings[kind++].odds;
    chaos.done[kind]++;
    if (kind == 0)
        change_share(random_below(2) ? chaos.staying[random_below(STAYING)]->page->client
                                     : chaos.dying[random_below(DYING)]->page->client);
    else if (kind == 1)
        change_mode();
    else if (kind == 2)
        reload();
    else
        replace();
}

/* ---- what must hold ---- */

static void check_progress(void)
{
    for (int i = 0; i < STAYING; i++) {
        double now = bench_now();
        if (load_whole(chaos.staying[i]) != chaos.seen[i] || !chaos.progress[i]) {
            chaos.seen[i] = load_whole(chaos.staying[i]);
            chaos.progress[i] = now;
        } else if (now > chaos.progress[i] + STALL_SECONDS) {
            bench_die("client %d has had no launch done for %d s", i, STALL_SECONDS);
        }
    }
}

static void start(const char *folder)
{
    char uid[16];
    snprintf(chaos.config, sizeof chaos.config, "%s/gpushared.yaml", folder);
    FILE *file = fopen(chaos.config, "we");
    if (!file || fclose(file) != 0)
        bench_die("%s can't be written", chaos.config);
    snprintf(uid, sizeof uid, "%u", (unsigned)getuid());
    const char *args[] = {"--config", chaos.config, "--admin-uid", uid, NULL};
    const char *env[] = {"SOFTGPU_SMS=34", "SOFTGPU_INSTRUCTION_PS=1", NULL};
    chaos.server = bench_adopt(server_start(args, env));
    chaos.admin = administer_open(chaos.server);
}

static void start_clients(void)
{
    for (int i = 0; i < STAYING; i++)
        chaos.staying[i] = client("staying", true);
    for (int i = 0; i < DYING; i++)
        chaos.dying[i] = client("dying", false);
}

/* Ends the staying clients: load_stop waits for their launches, counts them and checks each. */
static uint64_t end_clients(void)
{
    uint64_t launches = 0;
    struct administer_mode mode = {.mode = "concurrent"};
    administer_mode(chaos.admin, &mode);
    for (int i = 0; i < DYING; i++) {
        kill(chaos.dying[i]->pid, SIGKILL);
        waitpid(chaos.dying[i]->pid, NULL, 0);
        load_free(chaos.dying[i]);
    }
    for (int i = 0; i < STAYING; i++) {
        load_stop(chaos.staying[i]);
        launches += chaos.staying[i]->page->launches;
        chaos.progress[i] = 0;
        load_free(chaos.staying[i]);
    }
    return launches;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/gpushare-chaos-XXXXXX";
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0;
    unsigned changes = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10000, made = 0;
    chaos.seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : (unsigned)getpid();
    if (seconds <= 0 || !mkdtemp(folder)) {
        fprintf(stderr, "usage: chaos SECONDS [CHANGES [SEED]]\n");
        return 2;
    }
    printf("seed %u\n", chaos.seed);
    start(folder);

    start_clients();
    double began = bench_now();
    while (made < changes) {
        struct load *changed = chaos.staying[random_below(STAYING)];
        uint32_t done = load_whole(changed);
        made += change_share(changed->page->client);
        do
            check_progress();
        while (load_whole(changed) == done && usleep(200) == 0);
    }
    printf("changes: %u changes of share in %.0f s (%u more were refused), ", made,
           bench_now() - began, chaos.refused);
    printf("%llu launches, none lost\n", (unsigned long long)end_clients());

    chaos.refused = 0;
    start_clients();
    for (began = bench_now(); bench_now() < began + seconds; check_progress()) {
        happen();
        usleep(random_below(20000));
    }
    printf("disorder: ");
    for (size_t i = 0; i < sizeof happenings / sizeof happenings[0]; i++)
        printf("%u %s, ", chaos.done[i], happenings[i].name);
    printf("%u refused, ", chaos.refused);
    printf("%llu launches, none lost\n", (unsigned long long)end_clients());

    close(chaos.admin);
    int status = server_stop(chaos.server);
    unlink(chaos.config);
    rmdir(folder);
    return status != 0;
}
