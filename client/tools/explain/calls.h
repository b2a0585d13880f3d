/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * calls: the functions of CUDA that a file calls, by what gpushare does with them. They are the
 * functions that the file leaves to the dynamic linker. A function that a program asks for by its
 * name (dlsym, cuGetProcAddress) is not among them. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_CALLS_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/tools/explain/cuda_functions.h"
#include "client/tools/explain/elf_file.h"

enum {
    CALLS_UNKNOWN_MAX = 64, /* more of them are counted only */
    CALLS_SHOWN = 8,        /* of a list; the rest is a number behind it */
};

/* The libraries of CUDA that the file names. */
struct calls_from {
    bool driver, runtime;
    unsigned releases; /* a bit for each enum cuda_function_release; 0: not known */
};

struct calls {
    struct calls_from from;
    bool called[CUDA_FUNCTIONS_MAX]; /* the rows of cuda_functions */
    /* Of CUDA by their names, but not in the table. Sorted, and valid while the file is open. */
    const char *unknown[CALLS_UNKNOWN_MAX];
    size_t unknown_count, unknown_more;
};

/* Reads the calls of a file. A name that the table lacks counts only if the file names the library
 * that would have it. *calls is for nothing before. */
void calls_read(struct calls *calls, const struct elf_file *file, const struct calls_from *from);

/* Takes a function away that is not CUDA's after all: another library of the program defines it. */
void calls_remove(struct calls *calls, const char *symbol);

/* Calls each with every function that the file defines under a name of CUDA's. */
void calls_defined(const struct elf_file *file, void (*each)(const char *symbol, void *context),
                   void *context);

/* Adds the other file's calls. */
void calls_add(struct calls *calls, const struct calls *other);

/* How many of the functions have that state. */
size_t calls_count(const struct calls *calls, enum cuda_function_state state);

/* Gives the names of those with that state, sorted and cut to CALLS_SHOWN. Returns how many it
 * gave; CUDA_FUNCTION_UNKNOWN has at most CALLS_UNKNOWN_MAX that can be given. */
size_t calls_names(const struct calls *calls, enum cuda_function_state state,
                   const char *names[CALLS_SHOWN]);

#endif
