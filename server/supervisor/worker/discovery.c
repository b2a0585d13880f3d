/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/discovery.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/cuda/driver_environment.h"
#include "common/messages.h"
#include "server/supervisor/worker/worker_process.h"

#define MIG               " mig"
#define OUTPUT_MAX        8192
#define INSTANCE_TEXT     80
#define ANSWER_TIMEOUT_MS 60000 /* on a node with many GPUs the driver's start takes seconds */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads up to 32 hexadecimal digits and ignores dashes between them. Returns the number of digits,
 * or -1 for any other text. */
static int read_uuid(const char *text, size_t length, uint8_t uuid[16])
{
    int digits = 0;
    memset(uuid, 0, LIMITS_UUID_BYTES);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-')
            continue;
        int digit = hex_digit(text[i]);
        if (digit < 0 || digits == 32)
            return -1;
        uuid[digits / 2] |= (uint8_t)(digits % 2 ? digit : digit << 4);
        digits++;
    }
    return digits;
}

static uint32_t parse_line(struct discovery *discovery, const char *line, struct error *why)
{
    unsigned number;
    int used = 0;
    if (sscanf(line, "error %u %n", &number, &used) == 1 && used) {
        return error_set(why, PROTO_ERROR_NO_DEVICE, "%s", line + used);
    }
    unsigned long long device_base, host_base, bytes;
    if (sscanf(line, "arena %llx %llx %llx %n", &device_base, &host_base, &bytes, &used) == 3 &&
        used && !line[used]) {
        discovery->arena = (struct arena){device_base, host_base, bytes};
        return 0;
    }
    struct discovery_device device;
    used = 0;
    bool begins = sscanf(line, "device %u %n", &number, &used) == 1 && used;
    size_t length = begins ? strlen(line + used) : 0;
    device.mig = length > strlen(MIG) && !strcmp(line + used + length - strlen(MIG), MIG);
    if (device.mig)
        length -= strlen(MIG);
    if (!begins || read_uuid(line + used, length, device.uuid) != 32) {
        return error_set(why, MESSAGE(list_answer), line);
    }
    if (discovery->count == DEVICES_MAX) {
        return error_set(why, MESSAGE(devices_max), DEVICES_MAX);
    }
    device.ordinal = number;
    discovery->devices[discovery->count++] = device;
    return 0;
}

uint32_t discovery_parse(struct discovery *discovery, char *output, struct error *why)
{
    char *rest = NULL;
    *discovery = (struct discovery){.count = 0};
    for (char *line = strtok_r(output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        uint32_t error = parse_line(discovery, line, why);
        if (error)
            return error;
    }
    if (!discovery->count) {
        return error_set(why, MESSAGE(driver_no_device));
    }
    if (!discovery->arena.bytes ||
        !ARENA_PAIR_VALID(discovery->arena.device_base, discovery->arena.host_base,
                          discovery->arena.bytes))
        return error_set(why, MESSAGE(list_no_arena));
    return 0;
}

uint32_t discovery_restrict(struct discovery *discovery, const struct limits_wish *limits,
                            struct error *why)
{
    uint8_t uuids[DEVICES_MAX][LIMITS_UUID_BYTES];
    struct limits_devices devices = {.uuids = (const uint8_t(*)[LIMITS_UUID_BYTES])uuids,
                                     .count = discovery->count};
    struct discovery chosen = {.count = 0, .arena = discovery->arena};
    for (uint32_t i = 0; i < discovery->count; i++)
        memcpy(uuids[i], discovery->devices[i].uuid, sizeof uuids[i]);
    uint32_t error = limits_visible_resolve(limits, &devices, why);
    if (error)
        return error;
    for (unsigned i = 0; i < devices.visible; i++)
        chosen.devices[chosen.count++] = discovery->devices[devices.indices[i]];
    if (!chosen.count) {
        return error_set(why, MESSAGE(devices_none_visible), limits->visible_from,
                         discovery->count);
    }
    *discovery = chosen;
    return 0;
}

/* Reads until the end, at most OUTPUT_MAX - 1 bytes and for ANSWER_TIMEOUT_MS. Returns the number
 * of bytes or -errno. */
static ssize_t read_all(int fd, char *output)
{
    size_t used = 0;
    uint64_t end = clock_now() + UNITS_MS * ANSWER_TIMEOUT_MS;
    for (;;) {
        uint64_t now = clock_now();
        if (now >= end)
            return -ETIMEDOUT;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, (int)((end - now) / UNITS_MS) + 1);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready <= 0)
            continue;
        ssize_t got = read(fd, output + used, OUTPUT_MAX - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            output[used] = 0;
            return got < 0 ? -errno : (ssize_t)used;
        }
        used += (size_t)got;
        if (used == OUTPUT_MAX - 1)
            return -E2BIG;
    }
}

/* The driver shows a process one MIG instance: the first, unless it is told which. Of several in
 * the list only the first can be served. Returns NULL if the list does not begin with one. */
static const char *name_instance(const struct settings *settings, char text[INSTANCE_TEXT])
{
    const struct limits_visible *visible = &settings->limits.visible;
    if (!visible->count || !visible->devices[0].instance)
        return NULL;
    snprintf(text, INSTANCE_TEXT, "CUDA_VISIBLE_DEVICES=MIG-%s", visible->devices[0].uuid);
    return text;
}

static pid_t lister_start(const struct settings *settings, int output)
{
    struct worker_process_arena arena;
    worker_process_name_arena(&arena, settings);
    /* Whatever the administrator left open, the worker chooses. */
    const char *words[] = {settings->worker,
                           "--driver",
                           settings->driver,
                           "--list",
                           settings->arena_named ? arena.device_base : NULL,
                           arena.host_base,
                           arena.bytes,
                           NULL};
    char instance[INSTANCE_TEXT];
    char **environment = driver_environment_copy(environ, name_instance(settings, instance));
    if (!environment)
        return -ENOMEM;
    const struct worker_process_fds fds = {
        .code = -1, .channel = -1, .activity = -1, .barrier = -1, .output = output};
    pid_t pid =
        worker_process_spawn(settings->worker, (char *const *)(uintptr_t)words, environment, &fds);
    free(environment);
    return pid;
}

uint32_t discovery_run(struct discovery *discovery, const struct settings *settings,
                       struct error *why)
{
    char output[OUTPUT_MAX];
    int pipes[2], status = 0;
    discovery->count = 0;
    if (pipe2(pipes, O_CLOEXEC) < 0) {
        int saved = errno;
        return error_set(why, error_from_errno(-saved), MESSAGE_TEXT(list_pipe), strerror(saved));
    }
    pid_t pid = lister_start(settings, pipes[1]);
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return error_set(why, error_from_errno((int)pid), MESSAGE_TEXT(list_start),
                         settings->worker, strerror(-(int)pid));
    }
    ssize_t bytes = read_all(pipes[0], output);
    close(pipes[0]);
    if (bytes < 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (bytes < 0) {
        return error_set(why, error_from_errno((int)bytes), MESSAGE_TEXT(list_timeout),
                         settings->driver, strerror(-(int)bytes));
    }
    if (status && !bytes) {
        char how[WORKER_PROCESS_END];
        return error_set(why, MESSAGE(list_failed), settings->worker,
                         worker_process_describe(status, how));
    }
    uint32_t error = discovery_parse(discovery, output, why);
    return error ? error : discovery_restrict(discovery, &settings->limits, why);
}
