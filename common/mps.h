/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * mps: whether NVIDIA's multi-process service runs on this machine.
 */
#ifndef GPUSHARE_COMMON_MPS_H
#define GPUSHARE_COMMON_MPS_H

#include <sys/types.h>

/* A process of its control daemon or server; 0 if none is seen: there is none, or it runs in
 * another container. proc: "/proc", or a folder of that form. Any thread. */
pid_t mps_process(const char *proc);

#endif
