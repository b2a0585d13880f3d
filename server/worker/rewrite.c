/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/rewrite.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ptx.h"
#include "protocol.h"
#include "server/worker/splice.h"

/* What becomes of one .global variable. */
struct placed {
    const struct ptx_variable *variable;
    const char *stays; /* why, or NULL: it moves */
    uint64_t offset;   /* from the base */
};

struct rewrite {
    struct ptx_module *tree; /* NULL: not understood */
    struct ptx_error unread;
    const char *text;
    size_t length;
    struct placed *placed;
    uint32_t count;
    struct placed **by_id; /* variable->id -> its entry, or NULL */
    uint64_t bytes, base;
};

static struct placed *placed_of(const struct rewrite *rewrite, const struct ptx_variable *variable)
{
    return variable ? rewrite->by_id[variable->id] : NULL;
}

static bool moves(const struct rewrite *rewrite, const struct ptx_variable *variable)
{
    const struct placed *placed = placed_of(rewrite, variable);
    return placed && !placed->stays;
}

/* ---- which variables move ---- */

static const char *why_by_itself(const struct ptx_variable *variable)
{
    if (variable->type == PTX_TEXREF || variable->type == PTX_SAMPLERREF ||
        variable->type == PTX_SURFREF)
        return "it is a texture, sampler or surface";
    if (variable->linkage == PTX_LINK_EXTERN)
        return "it is defined in another module";
    if (variable->managed)
        return "it is managed memory";
    if (variable->bytes == 0)
        return "its size is not known";
    if (variable->align > REWRITE_ALIGN)
        return "it needs a larger alignment than client memory has";
    for (uint32_t i = 0; i < variable->initialiser_count; i++)
        if (variable->initialisers[i].function)
            return "its initial value holds the address of a function";
    return NULL;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* Whether the name stands as a word in the text from `from` on. */
static bool named_after(const char *from, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(from, name); at; at = strstr(at + 1, name))
        if (!is_word(at[-1]) && !is_word(at[length]))
            return true;
    return false;
}

/* Debugging sections name variables, and the tree does not hold them. */
static void keep_what_sections_name(struct rewrite *rewrite)
{
    const char *section = memmem(rewrite->text, rewrite->length, ".section", 8);
    for (uint32_t i = 0; section && i < rewrite->count; i++)
        if (!rewrite->placed[i].stays &&
            named_after(section + 8, rewrite->placed[i].variable->name))
            rewrite->placed[i].stays = "debugging information names it";
}

static bool keep(struct rewrite *rewrite, const struct ptx_variable *variable, const char *why)
{
    if (!moves(rewrite, variable))
        return false;
    placed_of(rewrite, variable)->stays = why;
    return true;
}

/* The driver alone knows where what stays lies, and only once it is loaded. */
static bool keep_neighbours(struct rewrite *rewrite, const struct ptx_variable *variable)
{
    bool changed = false;
    for (uint32_t i = 0; i < variable->initialiser_count; i++) {
        const struct ptx_variable *other = variable->initialisers[i].variable;
        if (!other)
            continue;
        if (!moves(rewrite, variable))
            changed |=
                keep(rewrite, other, "the initial value of one that stays holds its address");
        else if (!moves(rewrite, other))
            changed |=
                keep(rewrite, variable, "its initial value holds the address of one that stays");
    }
    return changed;
}

static bool keep_statements_whole(struct rewrite *rewrite)
{
    bool changed = false;
    for (uint32_t i = 0; i < rewrite->count; i++) {
        const struct placed *one = &rewrite->placed[i];
        for (uint32_t j = 0; one->stays && one->variable->declarators > 1 && j < rewrite->count;
             j++)
            if (rewrite->placed[j].variable->start == one->variable->start)
                changed |= keep(rewrite, rewrite->placed[j].variable,
                                "one declared by the same statement stays");
    }
    return changed;
}

static void decide(struct rewrite *rewrite)
{
    const struct ptx_module *tree = rewrite->tree;
    for (uint32_t i = 0; i < rewrite->count; i++) {
        const struct ptx_variable *variable = rewrite->placed[i].variable;
        assert(variable && "each of the count entries has been filled in");
        rewrite->placed[i].stays = why_by_itself(variable);
        if (!variable->in_function && ptx_find_variable(tree, variable->name) != variable)
            rewrite->placed[i].stays = "it is declared more than once";
    }
    keep_what_sections_name(rewrite);
    bool changed;
    do {
        changed = keep_statements_whole(rewrite);
        for (uint32_t i = 0; i < tree->variable_count; i++)
            changed |= keep_neighbours(rewrite, tree->variables[i]);
        for (uint32_t f = 0; f < tree->function_count; f++)
            for (uint32_t i = 0; i < tree->functions[f]->variable_count; i++)
                changed |= keep_neighbours(rewrite, tree->functions[f]->variables[i]);
    } while (changed);
}

static bool lay_out(struct rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->count; i++) {
        struct placed *placed = &rewrite->placed[i];
        if (placed->stays)
            continue;
        uint64_t align = placed->variable->align ? placed->variable->align : 1;
        uint64_t at = (rewrite->bytes + align - 1) & ~(align - 1);
        if (at < rewrite->bytes ||
            __builtin_add_overflow(at, placed->variable->bytes, &rewrite->bytes))
            return false;
        placed->offset = at;
    }
    return rewrite->bytes <= UINT64_MAX / 4;
}

static void add(struct rewrite *rewrite, const struct ptx_variable *variable)
{
    if (variable->space != PTX_SPACE_GLOBAL)
        return;
    struct placed *placed = &rewrite->placed[rewrite->count++];
    placed->variable = variable;
    rewrite->by_id[variable->id] = placed;
}

static void collect(struct rewrite *rewrite)
{
    const struct ptx_module *tree = rewrite->tree;
    for (uint32_t i = 0; i < tree->variable_count; i++)
        add(rewrite, tree->variables[i]);
    for (uint32_t f = 0; f < tree->function_count; f++)
        for (uint32_t i = 0; i < tree->functions[f]->variable_count; i++)
            add(rewrite, tree->functions[f]->variables[i]);
}

uint32_t rewrite_open(struct rewrite **out, const char *text, size_t length, char *why,
                      size_t why_size)
{
    struct rewrite *rewrite = calloc(1, sizeof *rewrite);
    if (!rewrite)
        goto no_memory;
    rewrite->text = text;
    rewrite->length = length;
    *out = rewrite;
    if (ptx_read(text, length, &rewrite->tree, &rewrite->unread) < 0) {
        rewrite->tree = NULL;
        return 0;
    }
    rewrite->placed = calloc(rewrite->tree->variable_ids + 1, sizeof *rewrite->placed);
    rewrite->by_id = calloc(rewrite->tree->variable_ids + 1, sizeof(struct placed *));
    if (!rewrite->placed || !rewrite->by_id)
        goto no_memory;
    collect(rewrite);
    decide(rewrite);
    if (lay_out(rewrite))
        return 0;
    rewrite_close(rewrite);
    *out = NULL;
    snprintf(why, why_size, "the module's variables are larger than any memory");
    return PROTO_ERROR_OUT_OF_MEMORY;

no_memory:
    rewrite_close(rewrite);
    *out = NULL;
    snprintf(why, why_size, "no memory for a module");
    return PROTO_ERROR_SERVER_RESOURCES;
}

void rewrite_close(struct rewrite *rewrite)
{
    if (!rewrite)
        return;
    if (rewrite->tree)
        ptx_destroy(rewrite->tree);
    free(rewrite->placed);
    free(rewrite->by_id);
    free(rewrite);
}

const char *rewrite_unread(const struct rewrite *rewrite)
{
    return rewrite->tree ? NULL : rewrite->unread.text;
}

uint64_t rewrite_global_bytes(const struct rewrite *rewrite)
{
    return rewrite->bytes;
}

/* ---- the new text ---- */

static uint64_t address_of(const struct rewrite *rewrite, const struct ptx_variable *variable)
{
    return rewrite->base + placed_of(rewrite, variable)->offset;
}

/* Only mov takes a 64-bit address as it is; for all else registers hold them. */
struct uses {
    const struct rewrite *rewrite;
    struct splice *splice;
    const char *prefix; /* of the registers' names; no other name begins so */
    uint32_t registers; /* used in this function */
};

static void use_operand(struct uses *uses, const struct ptx_instruction *instruction,
                        const struct ptx_operand *operand)
{
    char text[128];
    for (uint32_t i = 0; i < operand->count; i++)
        use_operand(uses, instruction, &operand->items[i]);
    if (operand->kind != PTX_OPERAND_VARIABLE || !moves(uses->rewrite, operand->variable))
        return;
    uint64_t address = address_of(uses->rewrite, operand->variable);
    if (strcmp(instruction->opcode, "mov") == 0) {
        snprintf(text, sizeof text, "%llu",
                 (unsigned long long)(address + (uint64_t)operand->addend));
        splice_replace(uses->splice, operand->start, operand->end, text);
        return;
    }
    snprintf(text, sizeof text, "mov.u64 %s%u, %llu; ", uses->prefix, uses->registers,
             (unsigned long long)address);
    splice_replace(uses->splice, instruction->start, instruction->start, text);
    snprintf(text, sizeof text, "%s%u", uses->prefix, uses->registers);
    splice_replace(uses->splice, operand->symbol_start, operand->symbol_end, text);
    uses->registers++;
}

static void use_in_function(struct uses *uses, const struct ptx_function *function)
{
    char text[128];
    uses->registers = 0;
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        for (uint32_t o = 0; o < instruction->operand_count; o++)
            use_operand(uses, instruction, &instruction->operands[o]);
    }
    if (uses->registers == 0)
        return;
    snprintf(text, sizeof text, " .reg .b64 %s<%u>; ", uses->prefix, uses->registers);
    splice_replace(uses->splice, function->body_start, function->body_start, text);
}

/* The declaration goes; its lines stay. */
static void remove_declaration(struct splice *splice, const struct rewrite *rewrite,
                               const struct ptx_variable *variable)
{
    size_t lines = 0;
    for (uint32_t at = variable->start; at < variable->end; at++)
        lines += rewrite->text[at] == '\n';
    char *blank = malloc(lines + 1);
    if (!blank) {
        splice->failed = true;
        return;
    }
    memset(blank, '\n', lines);
    blank[lines] = 0;
    splice_replace(splice, variable->start, variable->end, blank);
    free(blank);
}

static void choose_prefix(const struct rewrite *rewrite, char *prefix, size_t size)
{
    for (unsigned n = 0;; n++) {
        int length = snprintf(prefix, size, "%%gpushare%u_", n);
        if (!memmem(rewrite->text, rewrite->length, prefix, (size_t)length))
            return;
    }
}

uint32_t rewrite_place(struct rewrite *rewrite, uint64_t base, char **text, char *why,
                       size_t why_size)
{
    struct splice splice;
    char prefix[32];
    struct uses uses = {.rewrite = rewrite, .splice = &splice, .prefix = prefix};
    splice_open(&splice, rewrite->text, rewrite->length);
    rewrite->base = base;
    choose_prefix(rewrite, prefix, sizeof prefix);
    for (uint32_t i = 0; i < rewrite->count; i++) {
        const struct ptx_variable *variable = rewrite->placed[i].variable;
        bool first = i == 0 || rewrite->placed[i - 1].variable->start != variable->start;
        if (!rewrite->placed[i].stays && first)
            remove_declaration(&splice, rewrite, variable);
    }
    for (uint32_t f = 0; rewrite->bytes && f < rewrite->tree->function_count; f++)
        if (rewrite->tree->functions[f]->defined)
            use_in_function(&uses, rewrite->tree->functions[f]);
    *text = splice_finish(&splice);
    rewrite->text = NULL;
    if (*text)
        return 0;
    snprintf(why, why_size, "no memory for the module's text");
    return PROTO_ERROR_SERVER_RESOURCES;
}

/* ---- initial contents ---- */

static uint64_t initial_value(const struct rewrite *rewrite, const struct ptx_initialiser *from)
{
    uint64_t value = from->value;
    if (from->variable)
        value += address_of(rewrite, from->variable);
    if (from->mask)
        value = (value & from->mask) >> __builtin_ctzll(from->mask);
    return value;
}

bool rewrite_initial(const struct rewrite *rewrite, uint32_t *next, uint64_t *address,
                     uint8_t **bytes, size_t *count)
{
    while (*next < rewrite->count) {
        const struct placed *placed = &rewrite->placed[(*next)++];
        const struct ptx_variable *variable = placed->variable;
        if (placed->stays || variable->initialiser_count == 0)
            continue;
        const struct ptx_initialiser *last =
            &variable->initialisers[variable->initialiser_count - 1];
        *count = last->offset + last->bytes;
        *address = rewrite->base + placed->offset;
        *bytes = calloc(1, *count);
        for (uint32_t i = 0; *bytes && i < variable->initialiser_count; i++) {
            const struct ptx_initialiser *from = &variable->initialisers[i];
            uint64_t value = initial_value(rewrite, from);
            if (from->bytes <= sizeof value && from->offset + from->bytes <= *count)
                memcpy(*bytes + from->offset, &value, from->bytes);
        }
        return true;
    }
    return false;
}

/* ---- questions ---- */

static const struct placed *find_placed(const struct rewrite *rewrite, const char *name)
{
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (!rewrite->placed[i].variable->in_function &&
            strcmp(rewrite->placed[i].variable->name, name) == 0)
            return &rewrite->placed[i];
    return NULL;
}

bool rewrite_find(const struct rewrite *rewrite, const char *name, uint64_t *address,
                  uint64_t *count)
{
    const struct placed *placed = find_placed(rewrite, name);
    if (!placed || placed->stays)
        return false;
    *address = rewrite->base + placed->offset;
    *count = placed->variable->bytes;
    return true;
}

const char *rewrite_why_stays(const struct rewrite *rewrite, const char *name)
{
    const struct placed *placed = find_placed(rewrite, name);
    return placed ? placed->stays : NULL;
}

const char *rewrite_first_that_stays(const struct rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (rewrite->placed[i].stays)
            return rewrite->placed[i].variable->name;
    return NULL;
}

uint32_t rewrite_kernel_count(const struct rewrite *rewrite)
{
    uint32_t count = 0;
    for (uint32_t i = 0; rewrite->tree && i < rewrite->tree->function_count; i++)
        count += rewrite->tree->functions[i]->entry && rewrite->tree->functions[i]->defined;
    return count;
}

bool rewrite_layout(const struct rewrite *rewrite, const char *kernel, uint32_t *pairs,
                    uint32_t *count, uint64_t *end)
{
    const struct ptx_function *function =
        rewrite->tree ? ptx_find_function(rewrite->tree, kernel) : NULL;
    if (!function || !function->entry || function->param_count > 4096)
        return false;
    for (uint32_t i = 0; i < function->param_count; i++) {
        pairs[2 * i] = (uint32_t)ptx_param_offset(function, i);
        pairs[2 * i + 1] = (uint32_t)function->params[i]->bytes;
    }
    *count = function->param_count;
    *end = ptx_param_offset(function, function->param_count);
    return true;
}
