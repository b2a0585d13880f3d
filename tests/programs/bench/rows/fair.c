/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Mode fair, lease 50 ms, precision 5 % (a plan of 1 s), ten plans.
 *
 * fair_busy_ratio: requests of 25 % and 75 %; the second client has no work half of the time (every
 * other half second). The row is the part of the time in which a kernel of one of the two ran, as
 * the kernels wrote it. Time in which kernels of both ran does not count, since neither had a lease
 * then.
 *
 * fair_busy_on_busy_cpu: the same beside one program for each CPU that does nothing but compute
 * (burner.h). Servers of the bench have the nice value that the service's unit gives them.
 *
 * fair_idle_split_error_points: requests of 10, 20, 30 and 40 %. The last client has no work, so
 * each of the others should have its request and a third of the 40 %. A client's share is the part
 * of the time in which its kernels ran. The row is the worst client's distance from what it should
 * have, in points (hundredths of the time).
 *
 * No neighbours in these rows: without a request they are served in idle time, and the rows say how
 * that is used and split among known clients.
 */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/burner.h"
#include "tests/programs/bench/load.h"

enum { SPLIT = 4 };

static const struct administer_mode fair = {.mode = "fair", .lease = "50ms", .precision = "5%"};

static struct load *client(const struct server *server, const char *request, uint64_t kernel_ns)
{
    const char *env[] = {request, NULL};
    struct load_spec spec = {.name = request, .env = env, .kernel_ns = kernel_ns, .most = 1 << 17};
    return load_start(server, &spec);
}

static void fair_busy(struct bench_result *result, unsigned burners)
{
    const int rounds = bench_short ? 1 : 10;
    const char *env[] = {"SOFTGPU_SMS=16", NULL};
    struct server *server = bench_server_soft(env);
    int admin = administer_open(server);
    struct burner *burning = burner_start(burners);
    struct load *loads[] = {client(server, "GPUSHARE_TIME_REQUEST=25%", 1000000),
                            client(server, "GPUSHARE_TIME_REQUEST=75%", 1000000)};
    administer_mode(admin, &fair);
    load_go(loads[0]);
    load_go(loads[1]);
    usleep(500000);
    double start = bench_now(), end = start;
    for (int i = 0; i < rounds; i++) {
        load_rest(loads[1]);
        bench_sleep_until(end += 0.5);
        load_go(loads[1]);
        bench_sleep_until(end += 0.5);
    }
    usleep(100000);
    uint64_t from = load_device_time(loads[0], start), to = load_device_time(loads[0], end);
    burner_stop(burning);
    load_stop(loads[0]);
    load_stop(loads[1]);
    result->value = load_single(loads, 2, from, to);
    snprintf(result->note, sizeof result->note,
             "25 %% had %.1f %%, 75 %% had %.1f %%; %u burners, server's nice value %d",
             100 * (double)load_ns(loads[0], from, to) / (double)(to - from),
             100 * (double)load_ns(loads[1], from, to) / (double)(to - from), burners,
             getpriority(PRIO_PROCESS, (id_t)server_pid(server)));
    load_free(loads[0]);
    load_free(loads[1]);
    close(admin);
    bench_server_stop(server);
}

void bench_fair_busy(struct bench_result *result)
{
    fair_busy(result, 0);
}

void bench_fair_busy_on_busy_cpu(struct bench_result *result)
{
    fair_busy(result, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
}

void bench_fair_idle_split(struct bench_result *result)
{
    static const double request[SPLIT] = {0.1, 0.2, 0.3, 0.4};
    const char *env[] = {"SOFTGPU_SMS=16", NULL};
    struct server *server = bench_server_soft(env);
    int admin = administer_open(server), length = 0;
    struct load *loads[SPLIT] = {client(server, "GPUSHARE_TIME_REQUEST=10%", 200000),
                                 client(server, "GPUSHARE_TIME_REQUEST=20%", 1000000),
                                 client(server, "GPUSHARE_TIME_REQUEST=30%", 5000000),
                                 client(server, "GPUSHARE_TIME_REQUEST=40%", 1000000)};
    administer_mode(admin, &fair);
    for (int i = 0; i < SPLIT - 1; i++)
        load_go(loads[i]);
    usleep(500000);
    double start = bench_now(), end = start + (bench_short ? 1 : 10);
    bench_sleep_until(end);
    usleep(100000);
    uint64_t from = load_device_time(loads[0], start), to = load_device_time(loads[0], end);
    for (int i = 0; i < SPLIT; i++) {
        load_stop(loads[i]);
        double share = (double)load_ns(loads[i], from, to) / (double)(to - from);
        double due = i < SPLIT - 1 ? request[i] + request[SPLIT - 1] / (SPLIT - 1) : 0;
        double error = fabs(share - due) * 100;
        result->value = error > result->value ? error : result->value;
        length += snprintf(result->note + length, sizeof result->note - (size_t)length,
                           "%s%.2f %% of %.2f %%", i ? ", " : "", share * 100, due * 100);
        load_free(loads[i]);
    }
    close(admin);
    bench_server_stop(server);
}
