/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

enum { ANSWER_MAX = 16 << 20 };

struct exporter {
    pid_t pid;
    in_port_t port; /* in network order */
    char answer[ANSWER_MAX];
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

struct exporter *exporter_start(const struct server *server)
{
    char program[4096], socket_path[4096];
    char *const words[] = {program, "--listen", "127.0.0.1:0", "--socket", socket_path, NULL};
    char *const no_variables[] = {NULL};
    posix_spawn_file_actions_t actions;
    int said[2];
    struct exporter *exporter = malloc(sizeof *exporter);
    if (!exporter)
        bench_die("no memory");
    server_build_path("bin/gpushare-exporter", program, sizeof program);
    snprintf(socket_path, sizeof socket_path, "%s", server_admin_socket(server));
    if (pipe(said) < 0)
        bench_die("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said[1], STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (posix_spawn(&exporter->pid, program, &actions, NULL, words, no_variables) != 0)
        bench_die("%s can't be executed", program);
    posix_spawn_file_actions_destroy(&actions);
    close(said[1]);
    exporter->port = read_port(said[0]);
    /* Later lines of its log are lost. */
    close(said[0]);
    return exporter;
}

double exporter_scrape(struct exporter *exporter)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = exporter->port,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t used = 0;
    ssize_t got;
    double begun = bench_now();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        bench_die("gpushare-exporter takes no request");
    while (used + 1 < ANSWER_MAX &&
           (got = read(fd, exporter->answer + used, ANSWER_MAX - 1 - used)) > 0)
        used += (size_t)got;
    double took = bench_now() - begun;
    close(fd);
    exporter->answer[used] = '\0';
    return took;
}

bool exporter_has_clients(const struct exporter *exporter, int count)
{
    char words[32];
    const char *line = strstr(exporter->answer, "\ngpushare_user_clients{");
    snprintf(words, sizeof words, "} %d\n", count);
    const char *value = line ? strchr(line, '}') : NULL;
    return value && strncmp(value, words, strlen(words)) == 0;
}

void exporter_stop(struct exporter *exporter)
{
    kill(exporter->pid, SIGTERM);
    waitpid(exporter->pid, NULL, 0);
    free(exporter);
}
