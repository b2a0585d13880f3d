/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_scan: whether a PTX text that the reader does not understand may declare memory. The driver
 * would set that memory aside, and no client would be charged for it.
 *
 * Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_PTX_SCAN_H
#define GPUSHARE_SERVER_WORKER_IMAGE_PTX_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The first line that may declare a variable of the module, or that can't be judged; 0 if there is
 * none. In doubt a line counts as one that does. */
uint32_t ptx_scan_declaration(const char *text, size_t length);

#endif
