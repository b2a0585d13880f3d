/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "client/tools/doctor/checks.h"
#include "client/tools/doctor/driver_probe.h"
#include "common/cuda/cuda_driver.h"
#include "common/messages.h"

#define DRIVER  "kernel driver"
#define LIBRARY "libcuda"
#define MODE    "compute mode"
#define HMM     "host memory"

enum { VERSION = 32 };

/* Finds the first word that is a version: "550.54.14" in "NVRM version: NVIDIA UNIX x86_64 Kernel
 * Module  550.54.14  ...". */
static bool find_version(const char *text, char version[VERSION])
{
    for (const char *word = text; *word; word += strcspn(word, " \t\n")) {
        word += strspn(word, " \t\n");
        size_t length = strcspn(word, " \t\n");
        if (!isdigit((unsigned char)*word) || strspn(word, "0123456789.") != length ||
            !memchr(word, '.', length) || length >= VERSION)
            continue;
        memcpy(version, word, length);
        version[length] = '\0';
        return true;
    }
    return false;
}

/* Whether a PCI device is a GPU of NVIDIA's: class 03 is a display controller, which GPUs without
 * an output are as well. */
static bool is_gpu(const struct place *place, const char *slot)
{
    char path[300], text[16];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", slot);
    if (place_read(place, path, text, sizeof text) <= 0 || strncmp(text, "0x10de", 6) != 0)
        return false;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", slot);
    return place_read(place, path, text, sizeof text) > 0 && strncmp(text, "0x03", 4) == 0;
}

static bool find_gpu(const struct place *place, char slot[NAME_MAX + 1])
{
    char folder[PATH_MAX];
    bool found = false;
    DIR *devices = opendir(place_path(place, "/sys/bus/pci/devices", folder));
    for (struct dirent *entry; devices && !found && (entry = readdir(devices));)
        if (entry->d_name[0] != '.' && (found = is_gpu(place, entry->d_name)))
            strcpy(slot, entry->d_name);
    if (devices)
        closedir(devices);
    return found;
}

/* version: "" without a driver. */
static void check_kernel(struct exam *exam, char version[VERSION])
{
    char text[1024], slot[NAME_MAX + 1];
    version[0] = '\0';
    exam->has_driver =
        place_read(&exam->place, "/proc/driver/nvidia/version", text, sizeof text) > 0;
    if (exam->has_driver && !find_version(text, version))
        snprintf(version, VERSION, "?");
    if (exam->has_driver)
        report_note(&exam->report, REPORT_OK, DRIVER, MESSAGE_TEXT(doctor_driver), version);
    else if (find_gpu(&exam->place, slot))
        report_note(&exam->report, REPORT_FAIL, DRIVER, MESSAGE_TEXT(doctor_driver_not_loaded),
                    slot);
    else
        report_note(&exam->report, REPORT_WARN, DRIVER, MESSAGE_TEXT(doctor_driver_none));
}

/* Says whether the library's file is of another driver than the kernel's: libcuda.so.550.54.14. */
static bool differs(const struct driver_probe *probe, const char *kernel)
{
    static const char before[] = "libcuda.so.";
    const char *name = strrchr(probe->real, '/');
    name = name ? name + 1 : probe->real;
    if (!*kernel || strncmp(name, before, strlen(before)) != 0)
        return false;
    name += strlen(before);
    return strchr(name, '.') && strcmp(name, kernel) != 0;
}

static void check_absent(struct exam *exam, const char *kernel)
{
    if (!exam->has_driver)
        return;
    if (exam->contained)
        report_note(&exam->report, REPORT_OK, LIBRARY, MESSAGE_TEXT(doctor_library_contained));
    else
        report_note(&exam->report, REPORT_FAIL, LIBRARY, MESSAGE_TEXT(doctor_library_none), kernel);
}

static void check_library(struct exam *exam, const struct driver_probe *probe, const char *kernel)
{
    struct report *report = &exam->report;
    switch (probe->outcome) {
    case DRIVER_PROBE_ABSENT:
        check_absent(exam, kernel);
        break;
    case DRIVER_PROBE_DROPIN:
        report_note(report, REPORT_OK, LIBRARY, MESSAGE_TEXT(doctor_library_dropin), probe->path);
        break;
    case DRIVER_PROBE_REFUSED:
        report_note(report, REPORT_FAIL, LIBRARY, MESSAGE_TEXT(doctor_library_refused), probe->path,
                    probe->why.text);
        break;
    case DRIVER_PROBE_SILENT:
        report_note(report, REPORT_FAIL, LIBRARY, MESSAGE_TEXT(doctor_library_silent), probe->path,
                    (int)DRIVER_PROBE_SECONDS);
        break;
    case DRIVER_PROBE_CRASHED:
        report_note(report, REPORT_FAIL, LIBRARY, MESSAGE_TEXT(doctor_library_crashed),
                    probe->path);
        break;
    case DRIVER_PROBE_ANSWERED:
        report_note(report, REPORT_OK, LIBRARY, MESSAGE_TEXT(doctor_library), probe->path,
                    probe->version / 1000, probe->version % 1000 / 10, probe->gpus);
        break;
    }
    if (differs(probe, kernel))
        report_note(report, REPORT_FAIL, LIBRARY, MESSAGE_TEXT(doctor_library_differs), probe->real,
                    kernel);
}

static void check_gpu(struct report *report, const struct driver_probe_gpu *gpu)
{
    switch (gpu->compute_mode) {
    case CUDA_COMPUTEMODE_DEFAULT:
        report_note(report, REPORT_OK, MODE, MESSAGE_TEXT(doctor_mode), gpu->pci);
        break;
    case CUDA_COMPUTEMODE_PROHIBITED:
        report_note(report, REPORT_FAIL, MODE, MESSAGE_TEXT(device_prohibited), gpu->pci, gpu->pci);
        break;
    default:
        report_note(report, REPORT_WARN, MODE, MESSAGE_TEXT(doctor_mode_exclusive), gpu->pci,
                    gpu->pci);
        break;
    }
    if (gpu->host_access)
        report_note(report, REPORT_WARN, HMM, MESSAGE_TEXT(doctor_host_access), gpu->pci,
                    MESSAGE_TEXT(warning_host_access));
    else
        report_note(report, REPORT_OK, HMM, MESSAGE_TEXT(doctor_host_access_none), gpu->pci);
}

void check_driver_run(struct exam *exam)
{
    static struct driver_probe probe;
    char kernel[VERSION];
    check_kernel(exam, kernel);
    driver_probe_run(&exam->place, &probe);
    check_library(exam, &probe, kernel);
    if (probe.outcome == DRIVER_PROBE_ANSWERED)
        for (int i = 0; i < probe.gpus && i < DRIVER_PROBE_GPUS; i++)
            check_gpu(&exam->report, &probe.gpu[i]);
}
