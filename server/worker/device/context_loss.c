/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/context_loss.h"

#include "common/messages.h"
#include "common/cuda/driver_error.h"

uint32_t context_loss_set(struct error *why, enum context_loss loss, unsigned device,
                          cuda_result result)
{
    const char *sentence = cuda_driver_error_sentence(result), *name = driver_error_name(result);
    uint32_t number = error_from_cuda((int)result);
    /* A call for each row, so that the compiler compares each format with its arguments. */
#define SET(format) error_set(why, number, format, device, sentence, name)
    switch (loss) {
    case CONTEXT_LOSS_WORK:
        return SET(MESSAGE_TEXT(context_lost));
    case CONTEXT_LOSS_ENTERING:
        return SET(MESSAGE_TEXT(context_lost_entering));
    case CONTEXT_LOSS_REQUEST:
        return SET(MESSAGE_TEXT(context_lost_request));
    case CONTEXT_LOSS_MAKING:
        return SET(MESSAGE_TEXT(context_lost_making));
    case CONTEXT_LOSS_LOCAL_MEMORY:
        return SET(MESSAGE_TEXT(context_lost_local_memory));
    case CONTEXT_LOSS_LAUNCH:
        return SET(MESSAGE_TEXT(context_lost_launch));
    case CONTEXT_LOSS_COPY:
        return SET(MESSAGE_TEXT(context_lost_copy));
    case CONTEXT_LOSS_FILL:
        return SET(MESSAGE_TEXT(context_lost_fill));
    case CONTEXT_LOSS_EVENT:
        return SET(MESSAGE_TEXT(context_lost_event));
    case CONTEXT_LOSS_ORDER:
        return SET(MESSAGE_TEXT(context_lost_order));
    case CONTEXT_LOSS_BINDING:
        return SET(MESSAGE_TEXT(context_lost_binding));
    case CONTEXT_LOSS_COMPLETION:
        return SET(MESSAGE_TEXT(context_lost_completion));
    }
#undef SET
    return 0;
}
