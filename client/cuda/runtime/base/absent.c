/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/absent.h"

#include <stdio.h>
#include <unistd.h>

#include "client/cuda/runtime/base/runtime_error.h"
#include "common/messages.h"

cudart_error absent_call(const char *name, atomic_flag *named)
{
    char line[256];

    if (!atomic_flag_test_and_set(named)) {
        (void)snprintf(line, sizeof(line), MESSAGE_TEXT(runtime_absent), name);
        (void)dprintf(STDERR_FILENO, "gpushare: %s\n", line);
    }
    return runtime_error_note(CUDART_NOT_SUPPORTED);
}
