/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/moves.h"

#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/worker/image/rewrite_private.h"

/* ---- what is in a declaration itself ---- */

static const char *why_by_itself(const struct ptx_variable *variable)
{
    if (variable->type == PTX_TEXREF || variable->type == PTX_SAMPLERREF ||
        variable->type == PTX_SURFREF)
        return MESSAGE_TEXT(variable_is_texture);
    if (variable->linkage == PTX_LINK_EXTERN)
        return MESSAGE_TEXT(variable_is_extern);
    if (variable->redeclared)
        return MESSAGE_TEXT(variable_is_redeclared);
    if (variable->managed)
        return MESSAGE_TEXT(variable_is_managed);
    if (variable->bytes == 0)
        return MESSAGE_TEXT(variable_is_unsized);
    if (variable->align > REWRITE_ALIGN)
        return MESSAGE_TEXT(variable_is_aligned);
    for (uint32_t i = 0; i < variable->initialiser_count; i++)
        if (variable->initialisers[i].function)
            return MESSAGE_TEXT(variable_holds_function);
    return NULL;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* ---- what debugging sections name: the tree does not hold it ---- */

static const char *bare_name(const struct placed *placed)
{
    const char *name = placed->variable->name;
    return *name == '%' ? name + 1 : name;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(bare_name(*(struct placed *const *)a), bare_name(*(struct placed *const *)b));
}

/* Index of the first of these with this name, or `count`. */
static uint32_t first_named(struct placed *const *sorted, uint32_t count, const char *word,
                            size_t length)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strncmp(bare_name(sorted[middle]), word, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < count && strncmp(bare_name(sorted[low]), word, length) == 0 &&
                 bare_name(sorted[low])[length] == '\0';
    return found ? low : count;
}

static void keep_what_text_names(const char *at, const char *end, struct placed *const *sorted,
                                 uint32_t count)
{
    const char *const named = MESSAGE_TEXT(variable_is_debugged);
    while (at < end) {
        const char *word = at;
        while (at < end && is_word(*at))
            at++;
        size_t length = (size_t)(at - word);
        uint32_t i = length ? first_named(sorted, count, word, length) : count;
        /* Variables that were marked before are skipped, so that each is marked once. */
        for (; i < count && sorted[i]->stays != named &&
               strncmp(bare_name(sorted[i]), word, length) == 0 && !bare_name(sorted[i])[length];
             i++)
            sorted[i]->stays = named;
        at += at < end;
    }
}

static bool keep_what_sections_name(struct rewrite *rewrite)
{
    const char *section = memmem(rewrite->text, rewrite->length, ".section", 8);
    if (!section || !rewrite->count)
        return true;
    /* Room for twice the pointers, since sorting may copy them. */
    struct placed **sorted = rewrite_allocate(rewrite, rewrite->count, 2 * sizeof(struct placed *));
    if (!sorted)
        return false;
    for (uint32_t i = 0; i < rewrite->count; i++)
        sorted[i] = &rewrite->placed[i];
    qsort(sorted, rewrite->count, sizeof(struct placed *), by_name);
    keep_what_text_names(section + 8, rewrite->text + rewrite->length, sorted, rewrite->count);
    free(sorted);
    return true;
}

/* ---- variables that stay because others do ---- */

/*
 * A variable whose initial value holds the address of another one is joined with it. Only the
 * driver knows where a variable lies that stays, and only once it is loaded. So every variable that
 * is joined with one that stays has to stay too. A text may chain very many variables; each is
 * visited once.
 */
struct join {
    uint32_t other; /* its id */
    uint32_t next;  /* index + 1 of the variable's next join; 0: none */
    bool holds;     /* this variable's value holds the other one's address */
};

struct joins {
    struct join *all;
    uint32_t *first; /* by id: index + 1 of the variable's first join; 0: none */
    uint32_t *todo;  /* ids of variables that stay and whose neighbours were not visited */
    uint8_t *seen;   /* by id: SEEN, SEEN_STATEMENT */
    uint32_t count, waiting;
};

enum { SEEN = 1, SEEN_STATEMENT = 2 };

static void mark_staying(struct joins *joins, uint32_t id)
{
    if (joins->seen[id] & SEEN)
        return;
    joins->seen[id] |= SEEN;
    joins->todo[joins->waiting++] = id;
}

static void join_one(struct joins *joins, uint32_t from, uint32_t to, bool holds)
{
    joins->all[joins->count] = (struct join){to, joins->first[from], holds};
    joins->first[from] = ++joins->count;
}

static void join_variable(const struct rewrite *rewrite, struct joins *joins,
                          const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++) {
        const struct ptx_variable *other = variable->initialisers[i].variable;
        if (!other)
            continue;
        join_one(joins, variable->id, other->id, true);
        join_one(joins, other->id, variable->id, false);
        if (!rewrite_moves(rewrite, variable))
            mark_staying(joins, variable->id);
        if (!rewrite_moves(rewrite, other))
            mark_staying(joins, other->id);
    }
}

static uint64_t count_joins(const struct ptx_variable *const *variables, uint32_t count)
{
    uint64_t joins = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < variables[i]->initialiser_count; k++)
            joins += variables[i]->initialisers[k].variable ? 2 : 0;
    return joins;
}

static bool joins_open(struct joins *joins, struct rewrite *rewrite)
{
    const struct ptx_module *tree = rewrite->tree;
    uint64_t max = count_joins(tree->variables, tree->variable_count);
    for (uint32_t f = 0; f < tree->function_count; f++)
        max += count_joins(tree->functions[f]->variables, tree->functions[f]->variable_count);
    if (max >= UINT32_MAX)
        return false;
    size_t ids = (size_t)tree->variable_ids + 1;
    joins->all = rewrite_allocate(rewrite, max + 1, sizeof *joins->all);
    joins->first = rewrite_allocate(rewrite, ids, sizeof *joins->first);
    joins->todo = rewrite_allocate(rewrite, ids, sizeof *joins->todo);
    joins->seen = rewrite_allocate(rewrite, ids, 1);
    if (!joins->all || !joins->first || !joins->todo || !joins->seen)
        return false;
    for (uint32_t i = 0; i < tree->variable_count; i++)
        join_variable(rewrite, joins, tree->variables[i]);
    for (uint32_t f = 0; f < tree->function_count; f++)
        for (uint32_t i = 0; i < tree->functions[f]->variable_count; i++)
            join_variable(rewrite, joins, tree->functions[f]->variables[i]);
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (rewrite->placed[i].stays)
            mark_staying(joins, rewrite->placed[i].variable->id);
    return true;
}

static void keep_in_place(struct joins *joins, struct placed *placed, const char *why)
{
    if (!placed || placed->stays)
        return;
    placed->stays = why;
    mark_staying(joins, placed->variable->id);
}

/* Either all variables of a statement move or none does. They are neighbours in the table. */
static void keep_statement(struct rewrite *rewrite, struct joins *joins, struct placed *placed)
{
    uint32_t start = placed->variable->start;
    const struct placed *end = rewrite->placed + rewrite->count;
    if (joins->seen[placed->variable->id] & SEEN_STATEMENT)
        return;
    while (placed > rewrite->placed && placed[-1].variable->start == start)
        placed--;
    for (; placed < end && placed->variable->start == start; placed++) {
        joins->seen[placed->variable->id] |= SEEN_STATEMENT;
        keep_in_place(joins, placed, MESSAGE_TEXT(variable_stays_beside));
    }
}

static void keep_the_joined(struct rewrite *rewrite, struct joins *joins)
{
    while (joins->waiting) {
        uint32_t id = joins->todo[--joins->waiting];
        struct placed *placed = rewrite->by_id[id];
        for (uint32_t i = joins->first[id]; i; i = joins->all[i - 1].next)
            keep_in_place(joins, rewrite->by_id[joins->all[i - 1].other],
                          joins->all[i - 1].holds ? MESSAGE_TEXT(variable_is_held)
                                                  : MESSAGE_TEXT(variable_holds));
        if (placed)
            keep_statement(rewrite, joins, placed);
    }
}

bool moves_decide(struct rewrite *rewrite)
{
    struct joins joins = {0};
    size_t used = rewrite->used;
    for (uint32_t i = 0; i < rewrite->count; i++)
        rewrite->placed[i].stays = why_by_itself(rewrite->placed[i].variable);
    bool decided = keep_what_sections_name(rewrite) && joins_open(&joins, rewrite);
    if (decided)
        keep_the_joined(rewrite, &joins);
    free(joins.all);
    free(joins.first);
    free(joins.todo);
    free(joins.seen);
    rewrite->used = used;
    return decided;
}
