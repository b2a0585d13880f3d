/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/absent.h"

#include "client/cuda/runtime/base/runtime_error.h"
#include "common/log.h"
#include "common/messages.h"

cudart_error absent_call(const char *name, atomic_flag *named)
{
    if (!atomic_flag_test_and_set(named))
        log_error(MESSAGE_TEXT(runtime_absent), name);
    return runtime_error_note(CUDART_NOT_SUPPORTED);
}
