/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: the software GPU's word to whoever runs it, one line on standard error.
 *
 * A driver has no other place to say why it refuses something; NVIDIA's says it
 * to the kernel log. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_REPORT_H
#define GPUSHARE_SERVER_SOFTGPU_REPORT_H

/* Writes "softgpu: ..." and a newline, in one write. Long lines are cut at 1 KiB. */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

#endif
