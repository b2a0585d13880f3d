/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/messages.h"

#include "common/error.h"

#define ROW(name, error, format) {#name, PROTO_ERROR_##error, format},
static const struct message rows[] = {MESSAGES(ROW)};
#undef ROW

const struct message *messages_at(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index] : NULL;
}

void messages_print(FILE *to)
{
    const struct message *row;
    for (size_t i = 0; (row = messages_at(i)); i++)
        fprintf(to, "%s %s %s\n", row->name, row->number ? error_name(row->number) : "any",
                row->format);
}
