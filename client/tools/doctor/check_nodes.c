/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "client/tools/doctor/checks.h"
#include "common/id_name.h"
#include "common/messages.h"

#define NODES "device nodes"
#define UVM   "unified memory"

enum { PATH = 300 };

/* The minor number that "Device Minor:" of one GPU's file says. */
static void note_minor(struct exam *exam, const char *slot)
{
    char path[PATH], text[4096];
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%.200s/information", slot);
    if (place_read(&exam->place, path, text, sizeof text) <= 0)
        return;
    const char *line = strstr(text, "Device Minor:");
    if (line && exam->gpus < sizeof exam->minor / sizeof *exam->minor)
        exam->minor[exam->gpus++] = (unsigned)strtoul(line + strlen("Device Minor:"), NULL, 10);
}

static void find_minors(struct exam *exam)
{
    char folder[PATH_MAX];
    DIR *gpus = opendir(place_path(&exam->place, "/proc/driver/nvidia/gpus", folder));
    for (struct dirent *entry; gpus && (entry = readdir(gpus));)
        if (entry->d_name[0] != '.')
            note_minor(exam, entry->d_name);
    if (gpus)
        closedir(gpus);
}

static void note_closed(struct exam *exam, const char *subject, const char *path,
                        const struct stat *node)
{
    char number[16];
    char *name = id_name_of(ID_NAME_GROUP, node->st_gid);
    snprintf(number, sizeof number, "%u", (unsigned)node->st_gid);
    report_note(&exam->report, REPORT_WARN, subject, MESSAGE_TEXT(doctor_node_closed), path,
                (unsigned)(node->st_mode & 07777), name ? name : number, name ? name : number);
    free(name);
}

enum node { NODE_OPEN, NODE_MISSING, NODE_UNFIT };

/* A line is added for one that is there and unfit. */
static enum node check_node(struct exam *exam, const char *subject, const char *path)
{
    struct stat node;
    int result = place_stat(&exam->place, path, &node);
    if (result == -ENOENT)
        return NODE_MISSING;
    if (result == 0 && S_ISCHR(node.st_mode) && (node.st_mode & 0006) == 0006)
        return NODE_OPEN;
    if (result < 0)
        report_note(&exam->report, REPORT_FAIL, subject, MESSAGE_TEXT(doctor_node_unreadable), path,
                    strerror(-result));
    else if (!S_ISCHR(node.st_mode))
        report_note(&exam->report, REPORT_FAIL, subject, MESSAGE_TEXT(doctor_node_kind), path);
    else
        note_closed(exam, subject, path, &node);
    return NODE_UNFIT;
}

static bool check_gpu_node(struct exam *exam, const char *path, unsigned minor)
{
    enum node state = check_node(exam, NODES, path);
    if (state == NODE_MISSING)
        report_note(&exam->report, REPORT_FAIL, NODES, MESSAGE_TEXT(doctor_node_missing), path,
                    minor);
    return state == NODE_OPEN;
}

/* The major number of a driver in /proc/devices; 0: it has none. */
static unsigned major_of(const struct exam *exam, const char *driver)
{
    char text[16384], name[64];
    unsigned major;
    if (place_read(&exam->place, "/proc/devices", text, sizeof text) <= 0)
        return 0;
    for (char *line = text, *next; line && *line; line = next) {
        if ((next = strchr(line, '\n')))
            *next++ = '\0';
        if (sscanf(line, "%u %63s", &major, name) == 2 && !strcmp(name, driver))
            return major;
    }
    return 0;
}

static void check_uvm(struct exam *exam)
{
    static const char path[] = "/dev/nvidia-uvm";
    struct stat node;
    unsigned now = major_of(exam, "nvidia-uvm");
    enum node state = check_node(exam, UVM, path);
    if (state == NODE_MISSING)
        report_note(&exam->report, REPORT_FAIL, UVM, MESSAGE_TEXT(doctor_uvm_missing));
    if (state != NODE_OPEN)
        return;
    if (!now)
        report_note(&exam->report, REPORT_FAIL, UVM, MESSAGE_TEXT(doctor_uvm_not_loaded));
    else if (place_stat(&exam->place, path, &node) == 0 && major(node.st_rdev) != now)
        report_note(&exam->report, REPORT_FAIL, UVM, MESSAGE_TEXT(doctor_uvm_stale),
                    major(node.st_rdev), now);
    else
        report_note(&exam->report, REPORT_OK, UVM, MESSAGE_TEXT(doctor_uvm));
}

void check_nodes_run(struct exam *exam)
{
    char path[PATH];
    if (!exam->has_driver)
        return;
    if (exam->contained && !place_has(&exam->place, "/dev/nvidiactl")) {
        report_note(&exam->report, REPORT_OK, NODES, MESSAGE_TEXT(doctor_nodes_contained));
        return;
    }
    find_minors(exam);
    bool good = check_gpu_node(exam, "/dev/nvidiactl", 0);
    for (unsigned i = 0; i < exam->gpus; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%u", exam->minor[i]);
        good &= check_gpu_node(exam, path, exam->minor[i]);
    }
    if (good)
        report_note(&exam->report, REPORT_OK, NODES, MESSAGE_TEXT(doctor_nodes), exam->gpus);
    check_uvm(exam);
}
