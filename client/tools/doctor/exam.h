/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * exam: what the checks of `gpushare doctor` know of the machine and the server, and the report
 * that they write. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_EXAM_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_EXAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

#include "client/tools/doctor/place.h"
#include "client/tools/doctor/report.h"

struct exam {
    struct place place;
    struct report report;
    char client[PATH_MAX], admin[PATH_MAX]; /* the server's sockets, below the place's root */
    bool usual; /* the client's is the one that the library would choose */
    /* Findings of earlier checks, for later ones. */
    bool contained;     /* this process is in a container */
    bool has_driver;    /* NVIDIA's kernel driver is loaded */
    bool served;        /* the server took this user as a client */
    json_t *version;    /* the admin socket's answers; NULL: it gave none */
    json_t *status;     /* likewise */
    pid_t server;       /* the server's process, where it is visible here; else 0 */
    unsigned minor[64]; /* of the GPUs' device nodes, as the kernel driver says */
    unsigned gpus;
};

#endif
