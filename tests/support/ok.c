/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/ok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The thread of the cases. A forked process has another number, and so has any other thread. */
static pid_t of_cases;

__attribute__((constructor)) static void note_thread(void)
{
    of_cases = gettid();
}

void ok_check(gpushare_error error, const char *call, const char *file, int line)
{
    if (error == GPUSHARE_SUCCESS)
        return;
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, gpushare_error_name(error),
            gpushare_error_text());
    if (gettid() == of_cases)
        _fail(file, line);
    fflush(NULL);
    abort();
}
