/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/own_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/gpu/probe.h"

static struct server *running;

/* At every end of the step: the server's reasons stand in its log. */
static void print_log(void)
{
    char *log = running ? server_log(running) : NULL;
    if (log)
        printf("---- the server's log\n%s----\n", log);
    free(log);
    fflush(stdout);
}

/* Of a step that ends before its server: what became of a worker is in the log once the server has
 * ended, and not always before. */
static void end_server(void)
{
    enum { PATIENCE_MS = 5000, LOOK_MS = 10 };
    if (!running)
        return;
    kill(server_pid(running), SIGTERM);
    for (int ms = 0; waitpid(server_pid(running), NULL, WNOHANG) == 0 && ms < PATIENCE_MS;
         ms += LOOK_MS)
        probe_sleep_ms(LOOK_MS);
    print_log();
}

struct server *own_server_start(const char *setting, const char *other_setting)
{
    enum { SETTINGS_MAX = 40 };
    static const char *env[SETTINGS_MAX + 1];
    size_t count = 0;
    for (char **variable = environ; *variable && count < SETTINGS_MAX - 2; variable++)
        if (!strncmp(*variable, "SOFTGPU_", 8) || !strncmp(*variable, "BROKEN_", 7))
            env[count++] = *variable;
    if (setting)
        env[count++] = setting;
    if (other_setting)
        env[count++] = other_setting;
    env[count] = NULL;
    struct server *server = server_start(NULL, env);
    setenv("GPUSHARE_SOCKET", server_socket(server), 1);
    running = server;
    probe_at_end(end_server);
    return server;
}

void own_server_stop(struct server *server)
{
    print_log();
    running = NULL;
    int status = server_stop(server);
    if (status)
        probe_failed("the server ended with status %d", status);
}
