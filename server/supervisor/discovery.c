/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/discovery.h"

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

#include "common/timeline.h"
#include "server/supervisor/worker_process.h"

#define OUTPUT_MOST 8192
#define PATIENCE_MS 60000

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads up to 32 hexadecimal digits, dashes between them ignored. Returns how many, -1 if others.
 */
static int read_uuid(const char *text, size_t length, uint8_t uuid[16])
{
    int digits = 0;
    memset(uuid, 0, 16);
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

static int parse_line(struct discovery *discovery, const char *line, char *text, size_t text_bytes)
{
    unsigned number;
    int used = 0;
    if (sscanf(line, "error %u %n", &number, &used) == 1 && used) {
        snprintf(text, text_bytes, "%s", line + used);
        return -ENODEV;
    }
    struct discovery_device device;
    used = 0;
    if (sscanf(line, "device %u %n", &number, &used) != 1 || !used ||
        read_uuid(line + used, strlen(line + used), device.uuid) != 32) {
        snprintf(text, text_bytes, "the worker answered --list with \"%s\"", line);
        return -EPROTO;
    }
    if (discovery->count == SETTINGS_DEVICES_MAX) {
        snprintf(text, text_bytes, "the driver has more than %d devices", SETTINGS_DEVICES_MAX);
        return -E2BIG;
    }
    device.ordinal = number;
    discovery->devices[discovery->count++] = device;
    return 0;
}

int discovery_parse(struct discovery *discovery, char *output, char *text, size_t text_bytes)
{
    char *rest = NULL;
    discovery->count = 0;
    for (char *line = strtok_r(output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int result = parse_line(discovery, line, text, text_bytes);
        if (result < 0)
            return result;
    }
    if (!discovery->count) {
        snprintf(text, text_bytes, "the driver has no device");
        return -ENODEV;
    }
    return 0;
}

/* The device that a word of the list names, or NULL. */
static const struct discovery_device *find(const struct discovery *discovery, const char *word,
                                           size_t length)
{
    if (length > 4 && (!strncmp(word, "GPU-", 4) || !strncmp(word, "MIG-", 4))) {
        uint8_t uuid[16];
        const struct discovery_device *found = NULL;
        int digits = read_uuid(word + 4, length - 4, uuid);
        for (uint32_t i = 0; digits > 0 && i < discovery->count; i++) {
            const struct discovery_device *device = &discovery->devices[i];
            size_t bytes = (size_t)digits / 2;
            if (memcmp(device->uuid, uuid, bytes) ||
                (digits % 2 && (device->uuid[bytes] & 0xf0) != uuid[bytes]))
                continue;
            if (found) /* a prefix that fits two */
                return NULL;
            found = device;
        }
        return found;
    }
    uint32_t ordinal = 0;
    if (!length || length > 4)
        return NULL;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)word[i]))
            return NULL;
        ordinal = ordinal * 10 + (uint32_t)(word[i] - '0');
    }
    for (uint32_t i = 0; i < discovery->count; i++)
        if (discovery->devices[i].ordinal == ordinal)
            return &discovery->devices[i];
    return NULL;
}

int discovery_restrict(struct discovery *discovery, const char *list, char *text, size_t text_bytes)
{
    struct discovery chosen = {.count = 0};
    for (const char *word = list; *word;) {
        size_t length = strcspn(word, ",");
        const struct discovery_device *device = find(discovery, word, length);
        if (!device) {
            snprintf(
                text, text_bytes,
                "GPUSHARE_VISIBLE_DEVICES=%s: \"%.*s\" is no device of this driver (it has %u); "
                "give indices or GPU- UUIDs, with commas",
                list, (int)length, word, discovery->count);
            return -EINVAL;
        }
        for (uint32_t i = 0; i < chosen.count; i++) {
            if (chosen.devices[i].ordinal == device->ordinal) {
                snprintf(text, text_bytes, "GPUSHARE_VISIBLE_DEVICES=%s names device %u twice",
                         list, device->ordinal);
                return -EINVAL;
            }
        }
        chosen.devices[chosen.count++] = *device;
        word += length;
        if (*word == ',')
            word++;
    }
    if (!chosen.count) {
        snprintf(text, text_bytes,
                 "GPUSHARE_VISIBLE_DEVICES is empty: there is no device to serve");
        return -ENODEV;
    }
    *discovery = chosen;
    return 0;
}

/* Reads until the end, at most OUTPUT_MOST - 1 bytes and PATIENCE_MS. Returns bytes or -errno. */
static ssize_t read_all(int fd, char *output)
{
    size_t used = 0;
    uint64_t end = timeline_now() + UINT64_C(1000000) * PATIENCE_MS;
    for (;;) {
        uint64_t now = timeline_now();
        if (now >= end)
            return -ETIMEDOUT;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, (int)((end - now) / 1000000) + 1);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready <= 0)
            continue;
        ssize_t got = read(fd, output + used, OUTPUT_MOST - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            output[used] = 0;
            return got < 0 ? -errno : (ssize_t)used;
        }
        used += (size_t)got;
        if (used == OUTPUT_MOST - 1)
            return -E2BIG;
    }
}

static pid_t start(const struct settings *settings, int output)
{
    const char *words[] = {settings->worker, "--driver", settings->driver, "--list", NULL};
    char **environment = worker_process_environment(environ);
    if (!environment)
        return -ENOMEM;
    pid_t pid = worker_process_spawn(settings->worker, (char *const *)(uintptr_t)words, environment,
                                     -1, output);
    free(environment);
    return pid;
}

int discovery_run(struct discovery *discovery, const struct settings *settings, char *text,
                  size_t text_bytes)
{
    char output[OUTPUT_MOST];
    int pipes[2], status = 0;
    discovery->count = 0;
    if (pipe2(pipes, O_CLOEXEC) < 0) {
        int saved = errno;
        snprintf(text, text_bytes, "no pipe to the worker: %s", strerror(saved));
        return -saved;
    }
    pid_t pid = start(settings, pipes[1]);
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        snprintf(text, text_bytes, "%s could not be started: %s", settings->worker,
                 strerror(-(int)pid));
        return (int)pid;
    }
    ssize_t bytes = read_all(pipes[0], output);
    close(pipes[0]);
    if (bytes < 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (bytes < 0) {
        snprintf(text, text_bytes, "the driver %s did not list its devices: %s", settings->driver,
                 strerror(-(int)bytes));
        return (int)bytes;
    }
    if (status && !bytes) {
        char how[128];
        worker_process_describe(status, how, sizeof how);
        snprintf(text, text_bytes, "%s %s when it was asked for the driver's devices",
                 settings->worker, how);
        return -ENODEV;
    }
    int result = discovery_parse(discovery, output, text, text_bytes);
    if (result == 0 && settings->visible_devices)
        result = discovery_restrict(discovery, settings->visible_devices, text, text_bytes);
    return result;
}
