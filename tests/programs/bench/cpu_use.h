/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cpu_use: seconds of CPU time that were used, by all, by a process with those below it, and by one
 * process. The kernel counts the first two in ticks (10 ms, as a rule), so a difference is good for
 * stretches of a second or more. Any thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_CPU_USE_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_CPU_USE_H

#include <sys/types.h>

/* The number of CPUs that the calling thread may run on. */
unsigned cpu_use_cpus(void);

/* Seconds since the machine's start in which those CPUs were not idle, all together. Time that
 * another machine on the same hardware took (steal) is in it. Ends the program if the kernel does
 * not tell. */
double cpu_use_all(void);

/* Seconds that a process and all processes below it have used, with those below that have ended and
 * were waited for. 0 if there is no such process. */
double cpu_use_below(pid_t pid);

/* Seconds that the living threads of a process have used, by the scheduler's own count, which is in
 * nanoseconds. Ends the program if there is no such process. */
double cpu_use_of(pid_t pid);

/* Calls `line` for each line of a file that every living thread of the process has in its folder of
 * /proc. Ends the program if there is no such process. */
typedef void cpu_use_line(void *context, const char *line);
void cpu_use_threads(pid_t pid, const char *file, cpu_use_line *line, void *context);

#endif
