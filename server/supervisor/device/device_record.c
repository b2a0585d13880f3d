/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device_record.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/device/device.h"

static const struct pack_member member_rows[] = {
#define MEMBER(name) PACK_MEMBER(struct device, name)
    MEMBER(info),          MEMBER(known),     MEMBER(schedule),
    MEMBER(configured),    MEMBER(singly),    MEMBER(suspects),
    MEMBER(singly_since),  MEMBER(singly_ns), MEMBER(departed_suspects),
    MEMBER(loss),          MEMBER(ailment),   MEMBER(starts),
    MEMBER(served),        MEMBER(start_at),  MEMBER(ready_at),
    MEMBER(ended_at),      MEMBER(trouble),   MEMBER(warnings),
    MEMBER(warning_count), MEMBER(drained),   MEMBER(newcomers),
    MEMBER(heap),
#undef MEMBER
};

static const struct pack_table members = PACK_TABLE(member_rows);

/* Of what a worker is told too: it is raised when a message to workers changes its size, since the
 * worker that is taken over would not understand it. */
enum { FORM = 4 };

uint32_t device_record_layout(void)
{
    return pack_members_layout(&members, FORM);
}

void device_record_put(struct device *device, struct keeper *keeper, uint16_t kind)
{
    struct device_keeping *keeping = &device->keeping;
    const struct worker_process *process = device->process;
    struct pack *pack = &keeper->pack;
    /* Numbers of the worker before are not this one's. */
    if (keeping->start != device->starts)
        keeping->link = keeping->process = keeping->barrier = keeping->page = 0;
    keeping->start = device->starts;
    pack_begin(pack);
    pack_members(pack, &members, device);
    pack_number(pack, process ? (uint64_t)worker_process_pid(process) : 0);
    pack_number(pack, device->state == DEVICE_READY);
    keeper_pack_fd(keeper, pack, KEEPER_LINK, device->link ? worker_link_fd(device->link) : -1,
                   &keeping->link);
    keeper_pack_fd(keeper, pack, KEEPER_PROCESS, process ? worker_process_pidfd(process) : -1,
                   &keeping->process);
    keeper_pack_fd(keeper, pack, KEEPER_BARRIER, process ? worker_process_barrier(process) : -1,
                   &keeping->barrier);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, device->watchdog.heartbeat.page.fd, &keeping->page);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, device->ledger.fd, &keeping->ledger);
    keeper_pack_fd(keeper, pack, KEEPER_DATA, device->code.fd, &keeping->code);
    keeper_put(keeper, &keeping->record, (struct state_name){.kind = kind, .key = device->index},
               pack);
}

static bool is_absent(const struct keeper *keeper, uint32_t number, char letter)
{
    return number && !keeper_has(keeper, number, letter);
}

bool device_record_is_whole(const struct keeper *keeper, const struct state_log_entry *entry)
{
    struct unpack unpack = unpack_begin(entry->data, entry->bytes);
    unpack_skip_members(&unpack, &members);
    for (int i = 0; i < 2; i++)
        unpack_number(&unpack);
    uint32_t link = unpack_fd(&unpack), process = unpack_fd(&unpack), barrier = unpack_fd(&unpack);
    return !unpack.failed && !is_absent(keeper, link, KEEPER_LINK) &&
           !is_absent(keeper, process, KEEPER_PROCESS) &&
           !is_absent(keeper, barrier, KEEPER_BARRIER);
}

/* The device stays as it is. The log has said what the configuration wants. */
static void log_schedule(const struct device *device, const struct schedule *configured)
{
    char text[SCHEDULE_TEXT];
    if (schedule_differs(configured, &device->schedule) & ~(unsigned)SCHEDULE_PARTITION_SIZES)
        log_notice(MESSAGE_TEXT(log_schedule_left), device->index,
                   schedule_format(&device->schedule, text, sizeof text));
}

int device_record_read(struct device *device, struct keeper *keeper,
                       const struct state_log_entry *entry)
{
    struct device_keeping *keeping = &device->keeping;
    const struct schedule configured = device->schedule;
    struct unpack unpack = unpack_begin(entry->data, entry->bytes);
    unpack_members(&unpack, &members, device);
    struct device_left left = {.pid = (pid_t)unpack_number(&unpack)};
    left.served = unpack_number(&unpack) != 0;
    keeping->link = unpack_fd(&unpack);
    keeping->process = unpack_fd(&unpack);
    keeping->barrier = unpack_fd(&unpack);
    keeping->page = unpack_fd(&unpack);
    keeping->ledger = unpack_fd(&unpack);
    keeping->code = unpack_fd(&unpack);
    keeping->start = device->starts;
    if (!unpack_is_whole(&unpack))
        return -EINVAL;
    log_schedule(device, &configured);
    left.link = keeper_take(keeper, keeping->link, KEEPER_LINK);
    left.process = keeper_take(keeper, keeping->process, KEEPER_PROCESS);
    left.barrier = keeper_take(keeper, keeping->barrier, KEEPER_BARRIER);
    left.page = keeper_take(keeper, keeping->page, KEEPER_DATA);
    left.ledger = keeper_take(keeper, keeping->ledger, KEEPER_DATA);
    left.code = keeper_take(keeper, keeping->code, KEEPER_DATA);
    if (device->known)
        device->quotas[RESOURCE_MEMORY].limit = device->info.memory;
    return device_take_over(device, &left);
}
