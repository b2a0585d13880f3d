/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * lease_5ms_loss: mode fair, leases of 5 ms, four clients with requests of 25 % and kernels of 100
 * us, each with more work than its share. Throughput is the time, in half a second, in which a
 * kernel of exactly one client ran, as the kernels wrote it. The loss is the part of it that is
 * missing against one of the clients alone in the same mode, taken in turn. The row is the median
 * of ten pairs.
 *
 * Pieces of 20 ms in which the machine did not run an idle thread (quiet.h) are left out and
 * counted; the row is not met if they are more than a tenth.
 *
 * No neighbours: they would have leases too, and more of them beside one client than beside four.
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/quiet.h"

enum { CLIENTS = 4, ROUNDS = 10, KERNEL_NS = 100000, SETTLE_US = 100000 };

struct stretch {
    double from, to;
};

/* Half a second in which the first `count` clients work. */
static struct stretch work(struct load **loads, int count)
{
    struct stretch stretch;
    for (int i = 0; i < count; i++)
        load_go(loads[i]);
    usleep(SETTLE_US);
    stretch.from = bench_now();
    bench_sleep_until(stretch.to = stretch.from + (bench_short ? 0.2 : 0.5));
    for (int i = 0; i < count; i++)
        load_rest(loads[i]);
    usleep(SETTLE_US); /* until queued launches are done */
    return stretch;
}

struct pieces {
    unsigned all, dropped;
};

static double kernel_time(struct load **loads, struct stretch stretch, struct pieces *pieces)
{
    const double piece = 0.02;
    double sum = 0;
    unsigned counted = 0;
    const int count = (int)((stretch.to - stretch.from) / piece + 0.5);
    for (int i = 0; i < count; i++) {
        double at = stretch.from + i * piece;
        pieces->all++;
        if (!quiet_between(at, at + piece)) {
            pieces->dropped++;
            continue;
        }
        sum += load_single(loads, CLIENTS, load_device_time(loads[0], at),
                           load_device_time(loads[0], at + piece));
        counted++;
    }
    if (!counted)
        bench_die("the machine is too busy: half a second without an undisturbed piece");
    return sum / counted;
}

void bench_lease_loss(struct bench_result *result)
{
    struct stretch alone[ROUNDS], together[ROUNDS];
    double values[ROUNDS], yardsticks[ROUNDS];
    struct load *loads[CLIENTS];
    struct pieces pieces = {0, 0};
    const char *soft[] = {"SOFTGPU_SMS=16", NULL};
    const char *env[] = {"GPUSHARE_TIME_REQUEST=25%", NULL};
    struct server *server = bench_server_steady(soft);
    int admin = administer_open(server), rounds = bench_short ? 1 : ROUNDS;
    struct administer_mode mode = {.mode = "fair", .lease = "5ms", .precision = "5%"};
    struct load_spec spec = {
        .name = "quarter", .env = env, .kernel_ns = KERNEL_NS, .most = 1 << 17};
    for (int i = 0; i < CLIENTS; i++)
        loads[i] = load_start(server, &spec);
    administer_mode(admin, &mode);
    quiet_start();
    for (int i = 0; i < rounds; i++) {
        alone[i] = work(loads, 1);
        together[i] = work(loads, CLIENTS);
    }
    quiet_stop();
    for (int i = 0; i < CLIENTS; i++)
        load_stop(loads[i]);
    for (int i = 0; i < rounds; i++) {
        values[i] = kernel_time(loads, together[i], &pieces);
        yardsticks[i] = kernel_time(loads, alone[i], &pieces);
    }
    bench_pairs(result, values, yardsticks, (size_t)rounds);
    snprintf(result->note, sizeof result->note,
             "kernels for %.4f of the time, alone %.4f; %u of %u pieces dropped", result->value,
             result->yardstick, pieces.dropped, pieces.all);
    result->value = 1 - result->ratio;
    quiet_judge_dropped(result, pieces.dropped, pieces.all);
    for (int i = 0; i < CLIENTS; i++)
        load_free(loads[i]);
    close(admin);
    bench_server_stop(server);
}
