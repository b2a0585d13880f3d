/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/front/driver_absent.h"

#include "common/log.h"
#include "common/messages.h"

cuda_result driver_absent_call(const char *name, atomic_flag *named)
{
    if (!atomic_flag_test_and_set(named))
        log_error(MESSAGE_TEXT(driver_absent), name);
    return CUDA_ERR_NOT_SUPPORTED;
}
