/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tools/doctor/checks.h"
#include "common/mps.h"
#include "common/messages.h"
#include "common/units.h"

#define MPS     "MPS"
#define PAGES   "huge pages"
#define MEMLOCK "locked memory"
#define NOFILE  "open files"

/* Eight descriptors a client, for its sockets and rings, leave room for some hundred. */
#define NOFILE_FEW    4096
#define LIMIT_UNKNOWN (UINT64_MAX - 1)
#define LIMIT_NONE    UINT64_MAX

/* ---- MPS ---- */

static void check_mps(struct exam *exam)
{
    static const char usual[] = "/tmp/nvidia-mps";
    char proc[PATH_MAX];
    const char *named = getenv("CUDA_MPS_PIPE_DIRECTORY");
    const char *folder = named && *named == '/' ? named : usual;
    pid_t mps = mps_process(place_path(&exam->place, "/proc", proc));
    if (mps)
        report_note(&exam->report, REPORT_WARN, MPS, MESSAGE_TEXT(warning_mps), (int)mps);
    else if (place_has(&exam->place, folder))
        report_note(&exam->report, exam->contained ? REPORT_WARN : REPORT_OK, MPS,
                    MESSAGE_TEXT(doctor_mps_folder), folder);
    else
        report_note(&exam->report, REPORT_OK, MPS, MESSAGE_TEXT(doctor_mps_none));
}

/* ---- memory ---- */

/* A number of /proc/meminfo, in its own unit; 0: it is not there. */
static uint64_t meminfo(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

/* "always [madvise] never": what stands in brackets, or "unknown". */
static const char *chosen(const struct exam *exam, const char *path, char word[32])
{
    char text[128];
    strcpy(word, "unknown");
    if (place_read(&exam->place, path, text, sizeof text) > 0) {
        const char *open = strchr(text, '[');
        if (open)
            snprintf(word, 32, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
    }
    return word;
}

static void check_pages(struct exam *exam)
{
    char text[8192], reserved[UNITS_TEXT], all[UNITS_TEXT], anonymous[32], shared[32];
    if (place_read(&exam->place, "/proc/meminfo", text, sizeof text) <= 0)
        return;
    uint64_t pages = meminfo(text, "HugePages_Total:") * meminfo(text, "Hugepagesize:") * 1024;
    uint64_t memory = meminfo(text, "MemTotal:") * 1024;
    if (pages > memory / 2)
        report_note(&exam->report, REPORT_WARN, PAGES, MESSAGE_TEXT(doctor_pages_reserved),
                    units_format_bytes(pages, reserved), units_format_bytes(memory, all));
    else
        report_note(&exam->report, REPORT_OK, PAGES, MESSAGE_TEXT(doctor_pages),
                    chosen(exam, "/sys/kernel/mm/transparent_hugepage/enabled", anonymous),
                    chosen(exam, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", shared));
}

/* ---- limits of the process ---- */

static uint64_t read_limit(const char **at)
{
    char *end;
    *at += strspn(*at, " ");
    if (!strncmp(*at, "unlimited", strlen("unlimited"))) {
        *at += strlen("unlimited");
        return LIMIT_NONE;
    }
    uint64_t value = strtoull(*at, &end, 10);
    *at = end;
    return value;
}

/* Reads the hard limit of a row of /proc/PID/limits, up to which the server raises its own. */
static uint64_t hard_limit(const char *text, const char *row)
{
    const char *at = strstr(text, row);
    if (!at)
        return LIMIT_UNKNOWN;
    at += strlen(row);
    read_limit(&at);
    return read_limit(&at);
}

static void check_memlock(struct exam *exam, const char *text)
{
    char size[UNITS_TEXT];
    uint64_t limit = hard_limit(text, "Max locked memory");
    if (limit == LIMIT_UNKNOWN)
        return;
    if (limit == LIMIT_NONE)
        report_note(&exam->report, REPORT_OK, MEMLOCK, MESSAGE_TEXT(doctor_memlock_endless));
    else if (exam->server)
        report_note(&exam->report, REPORT_WARN, MEMLOCK, MESSAGE_TEXT(doctor_memlock_server),
                    (int)exam->server, units_format_bytes(limit, size));
    else
        report_note(&exam->report, REPORT_OK, MEMLOCK, MESSAGE_TEXT(doctor_memlock_here),
                    units_format_bytes(limit, size));
}

static void check_nofile(struct exam *exam, const char *text)
{
    uint64_t limit = hard_limit(text, "Max open files");
    if (limit == LIMIT_UNKNOWN)
        return;
    if (limit == LIMIT_NONE)
        report_note(&exam->report, REPORT_OK, NOFILE, MESSAGE_TEXT(doctor_nofile_endless));
    else if (limit >= NOFILE_FEW)
        report_note(&exam->report, REPORT_OK, NOFILE, MESSAGE_TEXT(doctor_nofile),
                    (unsigned long long)limit);
    else
        report_note(&exam->report, REPORT_WARN, NOFILE, MESSAGE_TEXT(doctor_nofile_few),
                    (unsigned long long)limit);
}

static void check_limits(struct exam *exam)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/limits", (int)exam->server);
    if (place_read(&exam->place, exam->server ? path : "/proc/self/limits", text, sizeof text) <= 0)
        return;
    check_memlock(exam, text);
    check_nofile(exam, text);
}

void check_machine_run(struct exam *exam)
{
    check_mps(exam);
    check_pages(exam);
    check_limits(exam);
}
