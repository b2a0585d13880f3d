/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/option.h"

#include <stdbool.h>
#include <string.h>

#include "common/messages.h"

/* Whether the word is this long option, in full or shortened, with a value. */
static bool has_value(const char *word, size_t length, const struct option *option)
{
    return word[length] == '=' && length > 2 && strncmp(word, "--", 2) == 0 &&
           strncmp(option->name, word + 2, length - 2) == 0;
}

uint32_t option_explain(int result, char *const argv[], const struct option *longs,
                        struct error *why)
{
    const char *word = argv[optind - 1];
    size_t length = strcspn(word, "=");
    if (result == ':')
        return error_set(why, MESSAGE(option_value_missing), (int)length, word);
    /* optopt is 0 for a long option that is not known, and the value of one that is. */
    for (const struct option *option = longs; optopt && option->name; option++)
        if (option->val == optopt && has_value(word, length, option))
            return error_set(why, MESSAGE(option_value_extra), (int)length, word);
    if (optopt)
        return error_set(why, MESSAGE(option_letter_unknown), optopt);
    return error_set(why, MESSAGE(option_unknown), (int)length, word);
}
