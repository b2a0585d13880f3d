/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/tools/trace/perfetto.h"
#include "client/tools/trace/recording.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/units.h"

int tracing_parse_seconds(const char *text, double *seconds)
{
    uint64_t ns;
    if (units_parse_seconds(text, strlen(text), &ns) < 0 || ns < UNITS_MS ||
        ns > PROTO_TRACE_SECONDS_MAX * UNITS_SECOND)
        return -EINVAL;
    *seconds = (double)ns / (double)UNITS_SECOND;
    return 0;
}

/* Replaces the server's answer by an error. */
static enum admin_outcome fail_writing(json_t **answer, const char *path, int error)
{
    json_decref(*answer);
    *answer =
        admin_client_error("invalid_value", MESSAGE_TEXT(ctl_trace_write), path, strerror(error));
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

static enum admin_outcome write_recording(const struct tracing_options *options, int fd, int memory,
                                          json_t **answer, struct tracing_summary *summary)
{
    struct recording recording;
    struct error why;
    error_set(&why, MESSAGE(ctl_trace_memory));
    if (memory < 0 || recording_read(&recording, memory, &why)) {
        json_decref(*answer);
        *answer = admin_client_error("connection_lost", "%s", why.text);
        return ADMIN_FAILED;
    }
    *summary = (struct tracing_summary){
        .records = recording.count,
        .lost = recording.lost,
        .damaged = recording.damaged,
        .seconds = (double)(recording.ended - recording.header.started) / (double)UNITS_SECOND,
        .clients = (unsigned)json_array_size(json_object_get(*answer, "clients"))};
    int result = write_file(fd, &recording, *answer);
    recording_free(&recording);
    return result < 0 ? fail_writing(answer, options->file, -result) : ADMIN_OK;
}

/* The first Ctrl-C or termination ends the trace and keeps it; one that comes a second later ends
 * the tool. Until then it is the first one over again: timeout(1) sends its signal to the tool and
 * to the tool's process group, so it comes twice at once. */
#define AGAIN_NS UNITS_SECOND
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof signals[0] };
static int told_by = -1; /* the end of a pipe that the signal handler writes */
static uint64_t told_at; /* of clock_now; 0: not told yet */

static void reset_signals(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(signals[i], SIG_DFL);
    }
}

static void on_signal(int number)
{
    int saved = errno;
    const uint64_t now = clock_now();
    if (!told_at) {
        told_at = now;
        /* The pipe is empty, so it has room. */
        if (write(told_by, "", 1) < 0)
            abort();
    } else if (now - told_at >= AGAIN_NS) {
        reset_signals();
        raise(number); /* when the handler returns */
    }
    errno = saved;
}

/* A signal that is ignored (nohup, a job in the background) stays ignored. Without a pipe the trace
 * can't be ended early. Returns the end to poll, or -1. */
static int catch_signals(int pipe_fds[2])
{
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -1;
    told_by = pipe_fds[1];
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
            action = (struct sigaction){.sa_handler = on_signal};
            for (int j = 0; j < SIGNALS; j++)
                sigaddset(&action.sa_mask, signals[j]);
            sigaction(signals[i], &action, NULL);
        }
    }
    return pipe_fds[0];
}

/* The handler stays, since the second one of two signals may come until the tool ends; a first one
 * ends the tool from here on. */
static void release_signals(const int pipe_fds[2])
{
    if (!told_at)
        told_at = 1; /* long ago */
    for (int i = 0; i < 2; i++)
        if (pipe_fds[i] >= 0)
            close(pipe_fds[i]);
}

enum admin_outcome tracing_run(const struct tracing_options *options, json_t **answer,
                               struct tracing_summary *summary)
{
    *answer = NULL;
    *summary = (struct tracing_summary){0};
    bool made = true;
    int fd = open(options->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        made = false;
        fd = open(options->file, O_WRONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return fail_writing(answer, options->file, errno);
    json_t *request = json_pack("{s:s, s:I, s:f}", "request", "trace", "gpu",
                                (json_int_t)options->gpu, "seconds", options->seconds);
    int pipe_fds[2] = {-1, -1};
    struct admin_client_wait wait = {.seconds = options->seconds, .fd = -1};
    wait.enough = catch_signals(pipe_fds);
    enum admin_outcome outcome =
        request ? admin_client_ask(options->socket, request, answer, &wait) : ADMIN_FAILED;
    if (outcome == ADMIN_OK)
        outcome = write_recording(options, fd, wait.fd, answer, summary);
    release_signals(pipe_fds);
    json_decref(request);
    if (wait.fd >= 0)
        close(wait.fd);
    close(fd);
    if (outcome != ADMIN_OK && made)
        unlink(options->file);
    return outcome;
}
