/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/state_lost.h"

#include "common/messages.h"

static const char *what_it_had(enum proto_unsaved unsaved)
{
    switch (unsaved) {
    case PROTO_UNSAVED_VARIABLES:
        return MESSAGE_TEXT(unsaved_variables);
    case PROTO_UNSAVED_FUNCTION_ADDRESSES:
        return MESSAGE_TEXT(unsaved_function_addresses);
    case PROTO_UNSAVED_CONSTANT_ADDRESSES:
        return MESSAGE_TEXT(unsaved_constant_addresses);
    case PROTO_UNSAVED_DEVICE_HEAP:
        return MESSAGE_TEXT(unsaved_device_heap);
    case PROTO_UNSAVED_NO_PTX:
        return MESSAGE_TEXT(unsaved_no_ptx);
    case PROTO_UNSAVED_UNREAD:
    case PROTO_UNSAVED_NOTHING: /* such a module is never lost */
    case PROTO_UNSAVED_CALLS:
    default:
        return MESSAGE_TEXT(unsaved_unread);
    }
}

bool state_lost_with_worker(enum proto_unsaved unsaved)
{
    return unsaved != PROTO_UNSAVED_NOTHING && unsaved != PROTO_UNSAVED_CALLS;
}

uint32_t state_lost_refuse(uint32_t module, enum proto_unsaved unsaved, struct error *why)
{
    return error_set(why, MESSAGE(module_state_lost), module, what_it_had(unsaved));
}

bool state_lost_reaches(enum proto_unsaved lost, enum proto_unsaved other)
{
    return lost == PROTO_UNSAVED_FUNCTION_ADDRESSES ? other != PROTO_UNSAVED_NOTHING
                                                    : lost != PROTO_UNSAVED_NOTHING;
}

uint32_t state_lost_refuse_other(uint32_t module, enum proto_unsaved unsaved, struct error *why)
{
    return error_set(why, MESSAGE(module_reaches_lost), module, what_it_had(unsaved));
}
