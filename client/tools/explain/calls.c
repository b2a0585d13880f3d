/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/calls.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Others' names that begin like CUDA's are few. A file with more of them was made to keep us busy.
 */
enum { DEFINED_MAX = 4096 };

enum library { NOBODYS, THE_DRIVERS, THE_RUNTIMES };

/* The libraries' names go on with a capital: cublasCreate and __cudart are none of them. */
static enum library library_of(const char *symbol)
{
    static const struct {
        const char *begin;
        enum library library;
    } families[] = {{"__cuda", THE_RUNTIMES}, {"cuda", THE_RUNTIMES}, {"cu", THE_DRIVERS}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        size_t bytes = strlen(families[i].begin);
        if (!strncmp(symbol, families[i].begin, bytes) && symbol[bytes] >= 'A' &&
            symbol[bytes] <= 'Z')
            return families[i].library;
    }
    return NOBODYS;
}

static int compare_row(const void *symbol, const void *row)
{
    return strcmp(symbol, ((const struct cuda_function *)row)->symbol);
}

static const struct cuda_function *find_row(const char *symbol)
{
    return bsearch(symbol, cuda_functions, cuda_function_count, sizeof *cuda_functions,
                   compare_row);
}

/* A file that does not name its runtime gets the program's, and the better one is assumed. */
static enum cuda_function_state state_of(const struct calls *calls, const struct cuda_function *row)
{
    unsigned best = CUDA_FUNCTION_UNKNOWN;
    for (unsigned i = 0; i < CUDA_FUNCTION_RELEASES; i++)
        if (!calls->from.releases || calls->from.releases & 1u << i)
            best = max(best, (unsigned)row->states[i]);
    return (enum cuda_function_state)best;
}

/* Where the name stands among the unknown ones, or is to stand. */
static size_t unknown_place(const struct calls *calls, const char *symbol, bool *there)
{
    size_t place = 0;
    int order = 1;
    while (place < calls->unknown_count && (order = strcmp(calls->unknown[place], symbol)) < 0)
        place++;
    *there = place < calls->unknown_count && !order;
    return place;
}

static void note_unknown(struct calls *calls, const char *symbol)
{
    bool there;
    size_t place = unknown_place(calls, symbol, &there);
    if (there)
        return;
    if (calls->unknown_count == CALLS_UNKNOWN_MAX) {
        calls->unknown_more++;
        if (place == CALLS_UNKNOWN_MAX)
            return;
        calls->unknown_count--;
    }
    memmove(calls->unknown + place + 1, calls->unknown + place,
            (calls->unknown_count - place) * sizeof *calls->unknown);
    calls->unknown[place] = symbol;
    calls->unknown_count++;
}

static bool is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info), bind = ELF64_ST_BIND(symbol->st_info);
    /* A linker that did not see the library leaves out what the symbol is. */
    return (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC) &&
           (bind == STB_GLOBAL || bind == STB_WEAK);
}

static void note(struct calls *calls, const char *name, bool weak)
{
    enum library library = library_of(name);
    if (library == NOBODYS)
        return;
    const struct cuda_function *row = find_row(name);
    if (row && state_of(calls, row) != CUDA_FUNCTION_UNKNOWN)
        calls->called[row - cuda_functions] = true;
    /* The dynamic linker lets a weak one be absent, and the program asks whether it is. */
    else if (!weak && (library == THE_DRIVERS ? calls->from.driver : calls->from.runtime))
        note_unknown(calls, name);
}

void calls_read(struct calls *calls, const struct elf_file *file, const struct calls_from *from)
{
    Elf64_Sym symbol;
    const char *name;
    *calls = (struct calls){.from = *from};
    for (uint64_t i = 0; elf_file_symbol(file, i, &symbol, &name); i++)
        if (symbol.st_shndx == SHN_UNDEF && is_function(&symbol))
            note(calls, name, ELF64_ST_BIND(symbol.st_info) == STB_WEAK);
}

void calls_remove(struct calls *calls, const char *symbol)
{
    bool there;
    const struct cuda_function *row = find_row(symbol);
    if (row)
        calls->called[row - cuda_functions] = false;
    size_t place = unknown_place(calls, symbol, &there);
    if (!there)
        return;
    calls->unknown_count--;
    memmove(calls->unknown + place, calls->unknown + place + 1,
            (calls->unknown_count - place) * sizeof *calls->unknown);
}

void calls_defined(const struct elf_file *file, void (*each)(const char *symbol, void *context),
                   void *context)
{
    Elf64_Sym symbol;
    const char *name;
    size_t count = 0;
    for (uint64_t i = 0; count < DEFINED_MAX && elf_file_symbol(file, i, &symbol, &name); i++)
        if (symbol.st_shndx != SHN_UNDEF && is_function(&symbol) && library_of(name) != NOBODYS) {
            each(name, context);
            count++;
        }
}

void calls_add(struct calls *calls, const struct calls *other)
{
    for (size_t i = 0; i < cuda_function_count; i++)
        if (other->called[i])
            calls->called[i] = true;
    for (size_t i = 0; i < other->unknown_count; i++)
        note_unknown(calls, other->unknown[i]);
    calls->unknown_more += other->unknown_more;
}

size_t calls_count(const struct calls *calls, enum cuda_function_state state)
{
    if (state == CUDA_FUNCTION_UNKNOWN)
        return calls->unknown_count + calls->unknown_more;
    size_t count = 0;
    for (size_t i = 0; i < cuda_function_count; i++)
        count += calls->called[i] && state_of(calls, &cuda_functions[i]) == state;
    return count;
}

size_t calls_names(const struct calls *calls, enum cuda_function_state state,
                   const char *names[CALLS_SHOWN])
{
    size_t count = 0;
    if (state == CUDA_FUNCTION_UNKNOWN) {
        count = min(calls->unknown_count, (size_t)CALLS_SHOWN);
        memcpy(names, calls->unknown, count * sizeof *names);
        return count;
    }
    for (size_t i = 0; i < cuda_function_count && count < CALLS_SHOWN; i++)
        if (calls->called[i] && state_of(calls, &cuda_functions[i]) == state)
            names[count++] = cuda_functions[i].symbol;
    return count;
}
