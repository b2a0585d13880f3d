/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * burner: programs that keep the CPUs busy, one process each, at the usual priority.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_BURNER_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_BURNER_H

struct burner;

/* Starts so many; they end with burner_stop or with this process. */
struct burner *burner_start(unsigned count);
void burner_stop(struct burner *burner); /* frees it */

#endif
