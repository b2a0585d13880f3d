/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/activity.h"

#include <stddef.h>

const char *activity_thread_name(enum activity_thread thread)
{
    static const char *const names[ACTIVITY_THREADS] = {
        [ACTIVITY_CONTROL] = "control",     [ACTIVITY_SUBMITTER] = "submitter",
        [ACTIVITY_COMPLETER] = "completer", [ACTIVITY_QUIET] = "quiet",
        [ACTIVITY_LOADER] = "loader",       [ACTIVITY_LOADER_SECOND] = "loader",
        [ACTIVITY_CLEARER] = "clearer",     [ACTIVITY_CALLER] = "caller"};
    return names[thread];
}

const char *activity_call_name(uint32_t call)
{
    static const char *const names[ACTIVITY_CALLS] = {[ACTIVITY_BATCH] =
                                                          "a batch of launches and copies",
#define X(name, symbol, version, need, params) [ACTIVITY_##name] = #name,
                                                      CUDA_DRIVER_ENTRIES(X)
#undef X
    };
    return call < ACTIVITY_CALLS ? names[call] : NULL;
}
