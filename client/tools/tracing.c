/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    int memory = -1;
    enum admin_outcome outcome =
        request ? admin_client_ask(wish->socket, request, wish->seconds, answer, &memory)
                : ADMIN_FAILED;
    if (outcome == ADMIN_OK)
        outcome = carry_over(wish, fd, memory, answer, summary);
    json_decref(request);
    if (memory >= 0)
        close(memory);
    close(fd);
    if (outcome != ADMIN_OK && made)
        unlink(wish->file);
    return outcome;
}
