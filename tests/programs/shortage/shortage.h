/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * shortage: a library that is preloaded into a server or a worker, and fails one call of those that
 * ask the system for something: memory, descriptors, mappings, threads, processes, messages.
 *
 * The file that $SHORTAGE_FILE names holds a struct shortage, which the test maps too. While it is
 * armed, the calls of all processes that have the library are counted, and call `fail_at` fails, as
 * if the system had nothing left.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_SHORTAGE_SHORTAGE_H
#define GPUSHARE_TESTS_PROGRAMS_SHORTAGE_SHORTAGE_H

#include <stdatomic.h>
#include <stdint.h>

struct shortage {
    _Atomic uint32_t armed, fail_at;
    _Atomic uint32_t count;  /* of calls while it was armed */
    _Atomic uint32_t failed; /* calls that were failed */
    char name[32];           /* of the call that was failed */
};

#endif
