/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * program: an executable with the libraries that it needs, found as ld.so(8) finds them: by
 * DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the linker's cache, and the system's folders. NVIDIA's
 * libraries of CUDA are not among them: gpushare's take the place of some, and the others are
 * named for themselves (findings_library). Libraries that a program opens later (dlopen) aren't
 * either.
 *
 * The files are hostile: how many are opened, and how many places are looked at, is bounded. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_PROGRAM_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tools/explain/elf_file.h"
#include "common/error.h"

enum {
    PROGRAM_FILES_MAX = 256,
    PROGRAM_NAMES_MAX = 1024,
};

struct program_file {
    struct elf_file file;
    char *path;
    char *origin; /* $ORIGIN of its lists: its folder */
    size_t by;    /* the file that needs it; of the program itself, itself */
};

struct program {
    struct program_file files[PROGRAM_FILES_MAX]; /* the program first */
    size_t count;
    const char *missing[PROGRAM_NAMES_MAX]; /* needed, and not found */
    size_t missing_count;
    bool cut; /* a bound was reached */
    /* private */
    const char *names[PROGRAM_NAMES_MAX];
    size_t names_count;
    unsigned places;
};

/*
 * Opens the program and its libraries. library_path: LD_LIBRARY_PATH, or NULL. Returns a program,
 * which the caller closes. NULL, with the sentence in *why, where elf_file_open would fail, and
 * without memory.
 */
struct program *program_open(const char *path, const char *library_path, struct error *why);
void program_close(struct program *program);

#endif
