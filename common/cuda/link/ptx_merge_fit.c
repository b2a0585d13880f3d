/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Whether inputs fit together: what they say of one name, and the devices that they are for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/link/ptx_merge_private.h"
#include "common/cuda/ptx_token.h"
#include "common/messages.h"

/* ---- names ---- */

static bool is_float(const struct ptx_variable *variable)
{
    return variable->type == PTX_F32 || variable->type == PTX_F64;
}

/* Compilers differ in whether a number is signed, which nvlink takes for the same, too. It does not
 * look at alignments; but a compiler that sees both texts as one does. */
static bool same_parameter(const struct ptx_variable *one, const struct ptx_variable *other)
{
    return one->space == other->space && one->bytes == other->bytes &&
           one->elements == other->elements && one->vector == other->vector &&
           one->align == other->align && is_float(one) == is_float(other);
}

static bool same_parameters(const struct ptx_variable *const *one,
                            const struct ptx_variable *const *other, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!same_parameter(one[i], other[i]))
            return false;
    return true;
}

static bool same_prototypes(const struct ptx_function *one, const struct ptx_function *other)
{
    return one->entry == other->entry && one->param_count == other->param_count &&
           one->return_count == other->return_count &&
           same_parameters(one->params, other->params, one->param_count) &&
           same_parameters(one->returns, other->returns, one->return_count);
}

/* One of two common variables may be larger, and an array without a size is as large as the other.
 */
static bool same_sizes(const struct ptx_variable *one, const struct ptx_variable *other)
{
    return one->bytes == other->bytes || one->bytes == 0 || other->bytes == 0 ||
           (one->linkage == PTX_LINK_COMMON && other->linkage == PTX_LINK_COMMON);
}

uint32_t merge_fit_places(const char *name, const struct merge_place *known,
                          const struct merge_place *other, struct error *why)
{
    const char *first = known->input->name, *second = other->input->name;
    const struct ptx_variable *one = known->variable, *two = other->variable;
    if (!one != !two)
        return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_kinds), name,
                         one ? second : first, one ? first : second);
    if (!one && !same_prototypes(known->function, other->function))
        return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_prototypes), name, second,
                         first);
    if (one && one->space != two->space)
        return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_spaces), name, second,
                         first);
    if (one && !same_sizes(one, two))
        return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_sizes), name,
                         (unsigned long long)two->bytes, second, (unsigned long long)one->bytes,
                         first);
    return 0;
}

/* ---- .target ---- */

/* Behind the digits of sm_90a: "a", for a device's own instructions, "f" for a family's, or "". */
static const char *suffix_of(const struct merge_input *input)
{
    const char *name = input->tree->target_name + strlen("sm_");
    return name + strspn(name, "0123456789");
}

static bool is_higher(const struct merge_input *one, const struct merge_input *other)
{
    uint32_t a = one->tree->target, b = other->tree->target;
    return a != b ? a > b : *suffix_of(one) && !*suffix_of(other);
}

/* A text for one device alone has no place among texts for others. */
static bool target_fits(const struct merge_input *input, const struct merge_input *highest)
{
    const char *suffix = suffix_of(input);
    return !*suffix || (input->tree->target == highest->tree->target &&
                        strcmp(suffix, suffix_of(highest)) == 0);
}

/* Words of .target that change what code means, such as map_f64_to_f32, each behind ", ". The text
 * is one that the reader has understood. */
static bool read_words(const struct merge_input *input, char **words)
{
    struct ptx_lexer lexer;
    size_t length;
    FILE *out = open_memstream(words, &length);
    bool behind_target = false;
    if (!out)
        return false;
    ptx_lexer_init(&lexer, input->text, input->length);
    for (struct ptx_token token = ptx_lexer_next(&lexer); token.kind != PTX_TOKEN_END;
         token = ptx_lexer_next(&lexer)) {
        const char *text = input->text + token.start;
        int bytes = (int)(token.end - token.start);
        if (token.kind == PTX_TOKEN_DOT && behind_target)
            break;
        behind_target |= token.kind == PTX_TOKEN_DOT && bytes == 7 && !memcmp(text, ".target", 7);
        if (behind_target && token.kind == PTX_TOKEN_WORD && strncmp(text, "sm_", 3) != 0 &&
            !(bytes == 5 && memcmp(text, "debug", 5) == 0))
            fprintf(out, ", %.*s", bytes, text);
    }
    return fclose(out) == 0;
}

static uint32_t compare_words(const struct ptx_merge *merge, const char *first, struct error *why)
{
    for (uint32_t i = 1; i < merge->count; i++) {
        char *words = NULL;
        if (!read_words(merge->inputs[i], &words)) {
            free(words);
            return merge_refuse_memory(why);
        }
        bool same = strcmp(words, first) == 0;
        free(words);
        if (!same)
            return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_target_words),
                             merge->inputs[i]->name, merge->inputs[0]->name);
    }
    return 0;
}

uint32_t merge_fit_targets(const struct ptx_merge *merge, char **target, struct error *why)
{
    const struct merge_input *highest = merge->inputs[0];
    char *words = NULL;
    *target = NULL;
    for (uint32_t i = 1; i < merge->count; i++)
        if (is_higher(merge->inputs[i], highest))
            highest = merge->inputs[i];
    for (uint32_t i = 0; i < merge->count; i++)
        if (!target_fits(merge->inputs[i], highest))
            return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_targets),
                             merge->inputs[i]->name, merge->inputs[i]->tree->target_name,
                             highest->name, highest->tree->target_name);
    uint32_t error = read_words(merge->inputs[0], &words) ? compare_words(merge, words, why)
                                                          : merge_refuse_memory(why);
    if (!error && asprintf(target, "%s%s", highest->tree->target_name, words) < 0) {
        *target = NULL;
        error = merge_refuse_memory(why);
    }
    free(words);
    return error;
}
