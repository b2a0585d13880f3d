/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/tools/perfetto.h"
#include "client/tools/recording.h"

int tracing_parse_seconds(const char *text, double *seconds)
{
    char *end;
    /* Digits and a point: strtod takes much more. */
    if (strspn(text, "0123456789.") != strlen(text))
        return -EINVAL;
    *seconds = strtod(text, &end);
    if (end == text || *end || !(*seconds >= 0.001) || !(*seconds <= PROTO_TRACE_SECONDS_MAX))
        return -EINVAL;
    return 0;
}

/* An error in place of the server's answer. */
static enum admin_outcome fail(json_t **answer, const char *path, int error)
{
    json_decref(*answer);
    *answer = admin_client_error("invalid_value", "cannot write %s: %s", path, strerror(error));
    return ADMIN_FAILED;
}

static int write_file(int fd, const struct recording *recording, const json_t *answer)
{
    if (ftruncate(fd, 0) < 0 && errno != EINVAL) /* EINVAL: a pipe, or a device */
        return -errno;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (!file) {
        int saved = errno;
        if (copy >= 0)
            close(copy);
        return -saved;
    }
    errno = 0;
    int result = perfetto_write(file, recording, answer);
    if (result == -EIO && errno)
        result = -errno;
    return fclose(file) != 0 && result == 0 ? -errno : result;
}

static enum admin_outcome carry_over(const struct tracing_wish *wish, int fd, int memory,
                                     json_t **answer, struct tracing_summary *summary)
{
    struct recording recording;
    char why[300] = "it sent no memory";
    if (memory < 0 || recording_read(&recording, memory, why, sizeof why) < 0) {
        json_decref(*answer);
        *answer = admin_client_error("connection_lost", "%s", why);
        return ADMIN_FAILED;
    }
    *summary = (struct tracing_summary){
        .records = recording.count,
        .lost = recording.lost,
        .damaged = recording.damaged,
        .seconds = (double)(recording.ended - recording.header.started) / 1e9,
        .clients = (unsigned)json_array_size(json_object_get(*answer, "clients"))};
    int result = write_file(fd, &recording, *answer);
    recording_free(&recording);
    return result < 0 ? fail(answer, wish->file, -result) : ADMIN_OK;
}

/* Ctrl-C and a termination are no reason to lose the trace: they end it. A caller that has them
 * ignored (nohup, a job in the background) goes on having them ignored. */
static int catch_signals(sigset_t *before)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t caught;
    sigemptyset(&caught);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&caught, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &caught, before);
    return signalfd(-1, &caught, SFD_CLOEXEC);
}

/* Whether one came. From here on they do what they always do. */
static bool release_signals(int fd, const sigset_t *before)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    struct signalfd_siginfo info;
    bool came = false;
    while (fd >= 0 && poll(&poll_fd, 1, 0) > 0 && read(fd, &info, sizeof info) == sizeof info)
        came = true;
    if (fd >= 0)
        close(fd);
    sigprocmask(SIG_SETMASK, before, NULL);
    return came;
}

enum admin_outcome tracing_run(const struct tracing_wish *wish, json_t **answer,
                               struct tracing_summary *summary)
{
    *answer = NULL;
    *summary = (struct tracing_summary){0};
    bool made = true;
    int fd = open(wish->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        made = false;
        fd = open(wish->file, O_WRONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return fail(answer, wish->file, errno);
    json_t *request = json_pack("{s:s, s:I, s:f}", "request", "trace", "gpu", (json_int_t)wish->gpu,
                                "seconds", wish->seconds);
    sigset_t before;
    struct admin_client_wait wait = {.seconds = wish->seconds, .fd = -1};
    wait.enough = catch_signals(&before);
    enum admin_outcome outcome =
        request ? admin_client_ask(wish->socket, request, answer, &wait) : ADMIN_FAILED;
    if (outcome == ADMIN_OK)
        outcome = carry_over(wish, fd, wait.fd, answer, summary);
    summary->interrupted = release_signals(wait.enough, &before);
    json_decref(request);
    if (wait.fd >= 0)
        close(wait.fd);
    close(fd);
    if (outcome != ADMIN_OK && made)
        unlink(wish->file);
    return outcome;
}
