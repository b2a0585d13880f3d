/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The calls with a stream of programs whose default stream is the thread's own. */
#include "client/cuda/runtime/runtime_exports.h"

/* A handle as these forms mean it. */
static cuda_stream own(cuda_stream stream)
{
    return stream ? stream : CUDA_STREAM_PER_THREAD;
}

static const struct cuda_launch_config *own_config(const struct cuda_launch_config *config,
                                                   struct cuda_launch_config *copy)
{
    if (!config)
        return NULL;
    *copy = *config;
    copy->stream = own(config->stream);
    return copy;
}

/* The flags of a question for a function of the driver. */
static unsigned long long own_flags(unsigned long long flags)
{
    return flags == CUDA_PROC_ADDRESS_DEFAULT ? CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : flags;
}

#define NONE(type, name, releases, params)
#define FORM(type, name, releases, params, args)                                                   \
    type name##_ptsz params                                                                        \
    {                                                                                              \
        return name args;                                                                          \
    }
CUDART_EXPORTS(NONE, FORM, NONE)
