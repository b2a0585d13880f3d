/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * checks: what `gpushare doctor` looks at, in the order in which it does. Each adds a line to the
 * exam's report for each thing that it found, and none where its subject is not there: without a
 * driver there are no device nodes. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_CHECKS_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_CHECKS_H

#include "client/tools/doctor/exam.h"

/* Whether this is a container, and how much shared memory it has. */
void check_container_run(struct exam *exam);

/* NVIDIA's kernel driver and its library, and what the library says of the GPUs. */
void check_driver_run(struct exam *exam);

/* The device nodes of GPUs and of unified memory. */
void check_nodes_run(struct exam *exam);

/* Both sockets of the server: whether they are there, and what this user may do with them. */
void check_sockets_run(struct exam *exam);

/* The server's version and state, and those of its GPUs, as the admin socket tells them. */
void check_server_run(struct exam *exam);

/* The service, where systemd runs. */
void check_systemd_run(struct exam *exam);

/* MPS, huge pages, and the limits of the server's process. */
void check_machine_run(struct exam *exam);

/* This process's variables: misspelt ones, values that nobody understands, and two for one limit.
 */
void check_environment_run(struct exam *exam);

#endif
