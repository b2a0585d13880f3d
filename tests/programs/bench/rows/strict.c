/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * strict_share_error_points: mode strict, four clients whose requests come to the whole of the
 * time, each with more work than its share:
 *
 *   10 %  kernels of 300 ms, longer than a lease: each is paid back over three seconds
 *   20 %  kernels of 20 us; arrives in the middle of a plan
 *   33 %  kernels of 1 ms, and at the end of each lease one of 100 ms, to run beyond it
 *   37 %  kernels of 5 ms; arrives in the middle of another plan
 *
 * A client's share is the time for which its kernels ran, as they wrote it, between its first
 * launch and the end, ten plans after the last client arrived. The moments between two kernels that
 * follow each other are the client's too (load_ns_joined). The error is the distance from its
 * request in points (hundredths of the time). The row is the worst client's error. The note has
 * the error without those moments too.
 *
 * Lease 250 ms and precision 5 % are the defaults: a plan is 5 s, ten plans are 50 s. Shorter
 * leases would make the row shorter and wrong: a kernel of 300 ms falls into the time that is
 * measured or does not, and over ten plans of 1 s that alone is 3 points.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"

enum { CLIENTS = 4, PLANS = 10 };

/* In a short run everything but the 20 us is ten times as fast, and there are half as many
 * plans. */
static uint64_t scaled(uint64_t ns)
{
    return bench_short ? ns / 10 : ns;
}

/* Launches kernels of 1 ms, and one of 100 ms when a lease of 250 ms is about to end. The client
 * knows its lease by the pause before it. */
static void at_lease_end(struct load *child)
{
    const uint64_t lease = scaled(250000000), long_ns = scaled(100000000);
    uint64_t began = 0;
    uint32_t seen = 0;
    bool greedy = false;
    while (!load_stopped(child)) {
        uint32_t number = child->page->launches;
        if (load_resting(child) || (number >= 8 && !load_done(child, number - 8))) {
            usleep(200);
            load_publish(child);
        } else {
            uint64_t now = load_device_time(child, bench_now());
            bool end = !greedy && began && now > began + lease * 9 / 10;
            greedy |= end;
            load_launch(child, end ? long_ns : child->spec.kernel_ns);
        }
        for (; seen < load_whole(child); seen++)
            if (!seen || child->spans[seen].begin > child->spans[seen - 1].end + lease / 25) {
                began = child->spans[seen].begin;
                greedy = false;
            }
    }
}

static const struct mix {
    const char *name;
    double share, arrives; /* arrives: in plans after the start */
    uint64_t kernel_ns;
    uint32_t most;
    void (*behave)(struct load *child);
} mix[CLIENTS] = {
    {"ten", 0.10, 0, 300000000, 1000, NULL},
    {"twenty", 0.20, 0.26, 20000, 1 << 20, NULL},
    {"thirty-three", 0.33, 0, 1000000, 1 << 16, at_lease_end},
    {"thirty-seven", 0.37, 0.7, 5000000, 1 << 14, NULL},
};

/* The administrator's word: a request that a client makes for itself is lowered when another user
 * arrives, as a neighbour may be. */
static struct load *client(const struct server *server, int admin, const struct mix *one)
{
    const char *env[] = {NULL};
    struct load_spec spec = {.name = one->name,
                             .env = env,
                             .kernel_ns = one->kernel_ns > 20000 ? scaled(one->kernel_ns) : 20000,
                             .most = one->most,
                             .depth = one->kernel_ns == 20000 ? 1000 : 0,
                             .behave = one->behave};
    struct load *load = load_start(server, &spec);
    json_decref(administer(admin,
                           "{\"request\":\"set\",\"client\":%u,\"time\":{\"request\":\"%.0f%%\"}}",
                           load->page->client, one->share * 100));
    return load;
}

void bench_strict_share(struct bench_result *result)
{
    const double plan = bench_short ? 0.5 : 5;
    struct load *loads[CLIENTS] = {0};
    const char *env[] = {"SOFTGPU_SMS=16", NULL};
    struct server *server = bench_server_soft(env);
    int admin = administer_open(server), length = 0;
    struct administer_mode mode = {
        .mode = "strict", .lease = bench_short ? "25ms" : "250ms", .precision = "5%"};
    double start = 0, end = 0, apart = 0;
    /* The clients that are there from the beginning come first; then the device's clock is
     * known. */
    for (int i = 0; i < CLIENTS; i++)
        if (!(mix[i].arrives > 0))
            loads[i] = client(server, admin, &mix[i]);
    administer_mode(admin, &mode);
    start = bench_now();
    for (int i = 0; i < CLIENTS; i++)
        if (loads[i])
            load_go(loads[i]);
    for (int i = 0; i < CLIENTS; i++) {
        if (loads[i])
            continue;
        bench_sleep_until(start + mix[i].arrives * plan);
        loads[i] = client(server, admin, &mix[i]);
        load_go(loads[i]);
        end = bench_now();
    }
    bench_sleep_until(end += plan * (bench_short ? 4 : PLANS));
    uint64_t to = load_device_time(loads[0], end);
    usleep(100000); /* until the kernels that ran by then have written their words */
    for (int i = 0; i < CLIENTS; i++) {
        load_stop(loads[i]);
        uint64_t from = loads[i]->page->arrived;
        double share = (double)load_ns_joined(loads[i], from, to) / (double)(to - from);
        double error = fabs(share - mix[i].share) * 100;
        result->value = error > result->value ? error : result->value;
        error =
            fabs((double)load_ns(loads[i], from, to) / (double)(to - from) - mix[i].share) * 100;
        apart = error > apart ? error : apart;
        length += snprintf(result->note + length, sizeof result->note - (size_t)length,
                           "%s%.2f %% of %.0f %%", i ? ", " : "", share * 100, mix[i].share * 100);
        load_free(loads[i]);
    }
    snprintf(result->note + length, sizeof result->note - (size_t)length,
             "; %.2f points without the moments between two kernels", apart);
    close(admin);
    bench_server_stop(server);
}
