/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <string.h>
#include <sys/statvfs.h>

#include "client/tools/doctor/checks.h"
#include "common/messages.h"
#include "common/units.h"

#define CONTAINER "container"

/* Docker's default. */
#define SHM_SMALL ((uint64_t)64 << 20)

enum { KIND = 64 };

/* The program that made the container, in the words of systemd (/run/systemd/container), or where
 * the control group or a file of Docker's or Podman's says so. Without one: "". */
static void find_kind(const struct place *place, char kind[KIND])
{
    static const struct {
        const char *path, *within, *kind;
    } signs[] = {
        {"/.dockerenv", NULL, "docker"},
        {"/run/.containerenv", NULL, "podman"},
        {"/proc/1/cgroup", "/docker", "docker"},
        {"/proc/1/cgroup", "/kubepods", "kubernetes"},
        {"/proc/1/cgroup", "/lxc", "lxc"},
        {"/proc/1/cgroup", "/libpod", "podman"},
        {"/proc/1/cgroup", "/machine.slice", "systemd-nspawn"},
    };
    char text[4096];
    if (place_read(place, "/run/systemd/container", kind, KIND) > 0) {
        kind[strcspn(kind, "\n")] = '\0';
        return;
    }
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        bool there = signs[i].within ? place_read(place, signs[i].path, text, sizeof text) > 0 &&
                                           strstr(text, signs[i].within)
                                     : place_has(place, signs[i].path);
        if (there) {
            strcpy(kind, signs[i].kind);
            return;
        }
    }
}

void check_container_run(struct exam *exam)
{
    char kind[KIND] = "", folder[PATH_MAX], size[UNITS_TEXT];
    struct statvfs shm;
    find_kind(&exam->place, kind);
    exam->contained = kind[0] != '\0';
    if (!exam->contained) {
        report_note(&exam->report, REPORT_OK, CONTAINER, MESSAGE_TEXT(doctor_container_none));
        return;
    }
    if (statvfs(place_path(&exam->place, "/dev/shm", folder), &shm) < 0) {
        report_note(&exam->report, REPORT_OK, CONTAINER, MESSAGE_TEXT(doctor_container), kind);
        return;
    }
    uint64_t bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
    units_format_bytes(bytes, size);
    if (bytes <= SHM_SMALL)
        report_note(&exam->report, REPORT_WARN, CONTAINER, MESSAGE_TEXT(doctor_container_small),
                    kind, size);
    else
        report_note(&exam->report, REPORT_OK, CONTAINER, MESSAGE_TEXT(doctor_container_shm), kind,
                    size);
}
