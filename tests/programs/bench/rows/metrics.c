/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The row of monitoring: from the request to the end of the answer of gpushare-exporter, over HTTP,
 * with 1,000 clients connected. The row is the longest of the rounds. The exporter asks the server
 * anew each time, since the rounds are more than a second apart.
 *
 * Each answer is checked: it must have all clients in the sum of their user, or the row is not met.
 *
 * No neighbours: the clients do nothing, and 1,000 are company enough. That they do nothing makes
 * an answer no shorter, since the server asks the worker about each of them.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/exporter.h"

enum { CLIENTS = 1000, ROUNDS = 20, SHORT_CLIENTS = 20, SHORT_ROUNDS = 2 };

/* The exporter keeps an answer for a second. */
#define APART_SECONDS 1.1

struct scraped {
    struct server *server;
    gpushare_connection *clients[CLIENTS];
    int count;
    struct exporter *exporter;
};

static void open_all(struct scraped *scraped)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    scraped->server = bench_server_soft(NULL);
    for (; scraped->count < (bench_short ? SHORT_CLIENTS : CLIENTS); scraped->count++)
        scraped->clients[scraped->count] = bench_connect(scraped->server, 0);
    scraped->exporter = exporter_start(scraped->server);
}

static void close_all(struct scraped *scraped)
{
    exporter_stop(scraped->exporter);
    for (int i = 0; i < scraped->count; i++)
        gpushare_close(&scraped->clients[i]);
    bench_server_stop(scraped->server);
}

void bench_metrics_scrape(struct bench_result *result)
{
    struct scraped scraped = {.count = 0};
    const size_t rounds = bench_short ? SHORT_ROUNDS : ROUNDS;
    double took[ROUNDS];
    open_all(&scraped);
    for (size_t i = 0; i < rounds; i++) {
        double next = bench_now() + APART_SECONDS;
        took[i] = exporter_scrape(scraped.exporter) * 1e3;
        if (!exporter_has_clients(scraped.exporter, scraped.count))
            bench_doubt(result, "an answer has not all of the %d clients", scraped.count);
        bench_sleep_until(next);
    }
    double median = bench_median(took, rounds);
    result->value = took[rounds - 1];
    result->spread = (took[rounds * 3 / 4] - took[rounds / 4]) / median;
    snprintf(result->note, sizeof result->note, "%d clients; median of %zu rounds %.2f ms",
             scraped.count, rounds, median);
    close_all(&scraped);
}
