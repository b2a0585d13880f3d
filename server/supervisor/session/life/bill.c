/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/bill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "common/error.h"
#include "common/limits/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/printable.h"
#include "server/supervisor/session/accounting.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"

#define SCHEMA_VERSION 1
/* Microseconds of a time since 1970 have 16 digits. */
#define DIGITS 16

void session_bill_begin(struct session *session)
{
    struct bill *bill = &session->bill;
    const struct identity *identity = &session->identity;
    bill_begin(bill, session->worker.multiprocessors);
    snprintf(bill->program, sizeof bill->program, "%s", identity->program);
    /* A part of a path would be another group's name. */
    if (identity->cgroup && strlen(identity->cgroup) < sizeof bill->cgroup)
        strcpy(bill->cgroup, identity->cgroup);
    /* A user whom a control group is delegated to names those below it, in any bytes. */
    printable_replace(bill->cgroup);
}

/* ---- the line ---- */

static void put(json_t *line, const char *name, json_t *value)
{
    json_object_set_new(line, name, value);
}

static void put_number(json_t *line, const char *name, uint64_t value)
{
    put(line, name, json_integer((json_int_t)value));
}

static void put_seconds(json_t *line, const char *name, uint64_t ns)
{
    put(line, name, json_real((double)ns / 1e9));
}

static void put_text(json_t *line, const char *name, const char *text)
{
    put(line, name, *text ? json_string(text) : json_null());
}

static void put_id(json_t *line, const struct session *session)
{
    const struct bill *bill = &session->bill;
    char id[64];
    /* No two clients attach at the same moment with the same number, whichever server that was. */
    snprintf(id, sizeof id, "%llx-%u-%u", (unsigned long long)bill->attached_us, session->number,
             bill->lines);
    put(line, "id", json_string(id));
}

/* A line that spans midnight belongs to the day on which it began. */
static void put_times(json_t *line, const struct bill_sums *sums)
{
    const time_t began = (time_t)(sums->begun_us / 1000000);
    struct tm day;
    char text[16] = "";
    if (gmtime_r(&began, &day))
        strftime(text, sizeof text, "%F", &day);
    put(line, "day", json_string(text));
    put(line, "begin_seconds", json_real((double)sums->begun_us / 1e6));
    put(line, "end_seconds", json_real((double)sums->ended_us / 1e6));
}

static void put_client(json_t *line, const struct session *session)
{
    char uuid[LIMITS_UUID_TEXT];
    put_number(line, "client", session->number);
    put_text(line, "name", session->name);
    put_number(line, "uid", session->uid);
    put_number(line, "pid", session->pid > 0 ? (uint64_t)session->pid : 0);
    put_text(line, "program", session->bill.program);
    put_text(line, "cgroup", session->bill.cgroup);
    put(line, "gpu", json_string(limits_format_uuid(session->device->info.uuid, uuid)));
    put_number(line, "device", session->device->index);
}

static void put_granted(json_t *line, const struct session *session)
{
    const struct allowance grant = session_limits_in_force(session);
    json_t *granted = json_object();
    put_number(granted, "multiprocessors", session->bill.multiprocessors);
    put(granted, "threads_percent", json_real((double)grant.threads.limit / 100));
    put(granted, "time_percent", json_real((double)grant.time.limit / 100));
    put_number(granted, "memory_bytes", grant.memory.limit);
    put_number(granted, "host_memory_bytes", grant.host_memory.limit);
    put(line, "granted", granted);
}

static void put_sums(json_t *line, const struct bill_sums *sums)
{
    put_seconds(line, "connected_seconds", sums->connected_ns);
    put_seconds(line, "gpu_seconds", sums->used.gpu_ns);
    put_seconds(line, "multiprocessor_seconds", sums->sm_ns);
    put_number(line, "launches", sums->used.launches);
    put_number(line, "copies", sums->used.copies);
    put_number(line, "copied_bytes", sums->used.copied_bytes);
    put_number(line, "memory_byte_seconds", sums->memory_byte_seconds);
    put_number(line, "memory_peak_bytes", sums->memory_peak);
    put_number(line, "host_memory_byte_seconds", sums->host_byte_seconds);
    put_number(line, "host_memory_peak_bytes", sums->host_peak);
}

static json_t *ended_json(const struct session *session)
{
    json_t *ended = json_object();
    put(ended, "error", json_string(error_name(session->ended.error)));
    put_text(ended, "reason", session->ended.text);
    return ended;
}

/* NULL: there is no memory. */
static char *line_text(const struct session *session, const struct bill_sums *sums, bool last)
{
    json_t *line = json_object();
    put_number(line, "schema_version", SCHEMA_VERSION);
    put_id(line, session);
    put_times(line, sums);
    put_client(line, session);
    put_granted(line, session);
    put_sums(line, sums);
    put(line, "last", json_boolean(last));
    put(line, "ended", last ? ended_json(session) : json_null());
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    size_t length = text ? strlen(text) : 0;
    /* jansson's block has no room for the end of the line. */
    char *whole = text ? realloc(text, length + 2) : NULL;
    if (whole)
        memcpy(whole + length, "\n", 2);
    else
        free(text);
    json_decref(line);
    return whole;
}

static void make_line(struct session *session, bool last)
{
    struct bill_sums sums;
    accounting_note(session);
    if (!*accounting_file(session->server))
        return;
    bill_take(&session->bill, &sums);
    if (last && bill_is_nothing(&session->bill, &sums))
        return;
    char *text = line_text(session, &sums, last);
    if (text)
        accounting_add(session->server, text);
    else
        log_error(MESSAGE_TEXT(log_accounting_no_memory), session->number);
    free(text);
    session_touch(session);
}

void session_bill_cut(struct session *session)
{
    make_line(session, false);
}

void session_bill_end(struct session *session)
{
    if (session->bill.begun_at)
        make_line(session, true);
    memset(&session->bill, 0, sizeof session->bill);
}
