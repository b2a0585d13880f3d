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
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

enum { CLIENTS = 1000, ROUNDS = 20, SHORT_CLIENTS = 20, SHORT_ROUNDS = 2, ANSWER_MAX = 16 << 20 };

/* The exporter keeps an answer for a second. */
#define APART_SECONDS 1.1

struct scraped {
    struct server *server;
    gpushare_connection *clients[CLIENTS];
    int count;
    pid_t exporter;
    in_port_t port; /* in network order */
    char *answer;
};

/* Reads the line in which the exporter says where it listens. */
static in_port_t read_port(int from)
{
    char line[512];
    size_t used = 0;
    while (used + 1 < sizeof line && read(from, line + used, 1) == 1 && line[used] != '\n')
        used++;
    line[used] = '\0';
    const char *port = strstr(line, "http://127.0.0.1:");
    if (!port)
        bench_die("gpushare-exporter does not listen: %s", line);
    return htons((in_port_t)strtoul(port + strlen("http://127.0.0.1:"), NULL, 10));
}

static void start_exporter(struct scraped *scraped)
{
    char program[4096], socket_path[4096];
    char *const words[] = {program, "--listen", "127.0.0.1:0", "--socket", socket_path, NULL};
    char *const no_variables[] = {NULL};
    posix_spawn_file_actions_t actions;
    int said[2];
    const char *build = getenv("BUILD");
    snprintf(program, sizeof program, "%s/bin/gpushare-exporter", build ? build : "build");
    snprintf(socket_path, sizeof socket_path, "%s", server_admin_socket(scraped->server));
    if (pipe(said) < 0)
        bench_die("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said[1], STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (posix_spawn(&scraped->exporter, program, &actions, NULL, words, no_variables) != 0)
        bench_die("%s can't be executed", program);
    posix_spawn_file_actions_destroy(&actions);
    close(said[1]);
    scraped->port = read_port(said[0]);
    /* Later lines of its log are lost. */
    close(said[0]);
}

static void open_all(struct scraped *scraped)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    scraped->server = bench_server_soft(NULL);
    for (; scraped->count < (bench_short ? SHORT_CLIENTS : CLIENTS); scraped->count++)
        scraped->clients[scraped->count] = bench_connect(scraped->server, 0);
    scraped->answer = malloc(ANSWER_MAX);
    if (!scraped->answer)
        bench_die("no memory");
    start_exporter(scraped);
}

static void close_all(struct scraped *scraped)
{
    kill(scraped->exporter, SIGTERM);
    waitpid(scraped->exporter, NULL, 0);
    for (int i = 0; i < scraped->count; i++)
        gpushare_close(&scraped->clients[i]);
    free(scraped->answer);
    bench_server_stop(scraped->server);
}

/* One request and its answer, which stays in scraped->answer. Returns the seconds that it took. */
static double scrape(struct scraped *scraped)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = scraped->port,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t used = 0;
    ssize_t got;
    double begun = bench_now();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        bench_die("gpushare-exporter takes no request");
    while (used + 1 < ANSWER_MAX &&
           (got = read(fd, scraped->answer + used, ANSWER_MAX - 1 - used)) > 0)
        used += (size_t)got;
    double took = bench_now() - begun;
    close(fd);
    scraped->answer[used] = '\0';
    return took;
}

static bool has_all_clients(const struct scraped *scraped)
{
    char count[32];
    const char *line = strstr(scraped->answer, "\ngpushare_user_clients{");
    snprintf(count, sizeof count, "} %d\n", scraped->count);
    const char *value = line ? strchr(line, '}') : NULL;
    return value && strncmp(value, count, strlen(count)) == 0;
}

void bench_metrics_scrape(struct bench_result *result)
{
    struct scraped scraped = {.count = 0};
    const size_t rounds = bench_short ? SHORT_ROUNDS : ROUNDS;
    double took[ROUNDS];
    open_all(&scraped);
    for (size_t i = 0; i < rounds; i++) {
        double next = bench_now() + APART_SECONDS;
        took[i] = scrape(&scraped) * 1e3;
        if (!has_all_clients(&scraped))
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
