/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: writes one line to standard error, for the person who runs the software GPU.
 *
 * A driver has no other place to say why it refuses something; NVIDIA's writes to the kernel log.
 * Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_REPORT_H
#define GPUSHARE_SERVER_SOFTGPU_REPORT_H

/* Writes "softgpu: ", the message and a newline, in one write. A line is cut at 1 KiB. */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

#endif
