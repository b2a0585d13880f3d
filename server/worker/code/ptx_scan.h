/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_scan: what can be said of a PTX text that the reader does not understand: whether
 * it may declare memory that the driver would set aside, and nobody would charge.
 *
 * Any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_PTX_SCAN_H
#define GPUSHARE_SERVER_WORKER_CODE_PTX_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The first line that may declare a variable of the module (or can't be judged), 0 if none does.
 * Errs on the side of one that does. */
uint32_t ptx_scan_declaration(const char *text, size_t length);

#endif
