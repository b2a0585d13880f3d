/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/printable.h"

#include <stdbool.h>
#include <stdint.h>

size_t printable_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f;
    size_t more = at[0] >= 0xf0 ? 3 : at[0] >= 0xe0 ? 2 : 1;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    uint32_t code = at[0] & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool shortest = more == 1 || code >= (more == 2 ? 0x800u : 0x10000u);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    /* Those that turn the direction of what follows, and those that nobody sees. */
    bool directs = (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                   (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
    return shortest && !surrogate && !directs && code >= 0xa0 && code <= 0x10ffff ? more + 1 : 0;
}

void printable_replace(char *text)
{
    while (*text) {
        size_t bytes = printable_bytes(text);
        if (!bytes)
            *text = '?';
        text += bytes ? bytes : 1;
    }
}
