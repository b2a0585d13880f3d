/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/administer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/programs/bench/bench.h"

int administer_open(const struct server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server_admin_socket(server));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        bench_die("the admin socket can't be reached");
    return fd;
}

static json_t *receive(int admin)
{
    enum { ANSWER_MAX = 1 << 20 };
    char *line = malloc(ANSWER_MAX);
    size_t used = 0;
    if (!line)
        bench_die("out of memory");
    do {
        ssize_t got = recv(admin, line + used, ANSWER_MAX - used, 0);
        if (got <= 0)
            bench_die("the admin socket was closed");
        used += (size_t)got;
    } while (line[used - 1] != '\n' && used < ANSWER_MAX);
    json_t *answer = json_loadb(line, used, 0, NULL);
    if (!answer)
        bench_die("no answer of the admin socket: %.*s", (int)used, line);
    free(line);
    return answer;
}

static json_t *ask(int admin, const char *format, va_list arguments)
{
    char request[1024];
    int length = vsnprintf(request, sizeof request - 1, format, arguments);
    if (length < 0 || (size_t)length >= sizeof request - 1)
        bench_die("a request of the admin socket is too long");
    request[length++] = '\n';
    if (send(admin, request, (size_t)length, MSG_NOSIGNAL) != length)
        bench_die("the admin socket was closed");
    return receive(admin);
}

json_t *administer_try(int admin, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_t *answer = ask(admin, format, arguments);
    va_end(arguments);
    return answer;
}

json_t *administer(int admin, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_t *answer = ask(admin, format, arguments);
    va_end(arguments);
    if (!json_is_true(json_object_get(answer, "ok")))
        bench_die("%s: %s", format, json_dumps(answer, JSON_COMPACT));
    return answer;
}

void administer_threads(int admin, uint32_t client, const char *limit)
{
    json_decref(administer(admin,
                           "{\"request\":\"set\",\"client\":%u,\"threads\":{\"limit\":\"%s\"}}",
                           client, limit));
}

void administer_mode(int admin, const struct administer_mode *mode)
{
    char more[200] = "";
    const struct {
        const char *name, *value;
    } settings[] = {
        {"lease", mode->lease}, {"precision", mode->precision}, {"quantum", mode->quantum}};
    for (size_t i = 0; i < 3; i++) {
        size_t used = strlen(more);
        if (settings[i].value)
            snprintf(more + used, sizeof more - used, ",\"%s\":\"%s\"", settings[i].name,
                     settings[i].value);
    }
    json_decref(
        administer(admin, "{\"request\":\"set\",\"gpu\":0,\"mode\":\"%s\"%s}", mode->mode, more));
}
