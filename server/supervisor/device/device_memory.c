/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device_memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/ipc/usage_counts.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/device/device_request.h"

/* For compiled code that outlives a worker. Memory is taken as it is written. */
#define CODE_BYTES ((size_t)64 << 20)

int device_memory_code(struct device *device)
{
    int result = device->code.fd < 0 ? shm_create(&device->code, "gpushare-code", CODE_BYTES) : 0;
    if (result < 0)
        log_warning(MESSAGE_TEXT(log_code_memory), device->index, strerror(-result));
    return device->code.fd;
}

static void ledger_failed(const struct device *device, const char *text)
{
    log_warning(MESSAGE_TEXT(log_no_ledger), device->index, text);
}

static void ledger_answered(void *context, const struct worker_answer *answer)
{
    if (answer->outcome == WORKER_REFUSED)
        ledger_failed(context, answer->text);
}

void device_memory_begin(struct device *device)
{
    int result = 0;
    if (!device->ledger.base)
        result = shm_create(&device->ledger, "gpushare-ledger", PROTO_LEDGER_BYTES);
    struct channel_packet request = {
        .opcode = PROTO_WORKER_LEDGER, .fds = &device->ledger.fd, .fd_count = 1};
    if (result == 0)
        result = device_request(device, &request, ledger_answered, device);
    if (result < 0)
        ledger_failed(device, strerror(-result));
}

bool device_memory_counts(const struct device *device, uint32_t client, struct usage_counts *counts)
{
    return device->ledger.base && usage_counts_read(device->ledger.base, client, counts);
}

static void memory_adopt(struct shm *memory, int fd, size_t bytes)
{
    if (fd >= 0 && shm_adopt(memory, fd, bytes, true) < 0)
        close(fd);
}

void device_memory_adopt(struct device *device, int ledger, int code)
{
    memory_adopt(&device->ledger, ledger, PROTO_LEDGER_BYTES);
    memory_adopt(&device->code, code, CODE_BYTES);
}
