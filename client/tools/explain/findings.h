/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * findings: those parts of an executable or library that matter for gpushare run. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_FINDINGS_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_FINDINGS_H

#include <stdbool.h>

#include "client/tools/explain/calls.h"
#include "client/tools/explain/elf_file.h"

/* The kind of a library, by its file's name. */
enum findings_library {
    FINDINGS_LIBRARY_OTHER,
    FINDINGS_LIBRARY_DRIVER,
    FINDINGS_LIBRARY_RUNTIME,     /* of a release that gpushare has */
    FINDINGS_LIBRARY_OLD_RUNTIME, /* of another */
    FINDINGS_LIBRARY_ASKS_TABLES, /* NVIDIA's, which asks the driver for undocumented tables */
};

enum { FINDINGS_NAME_BYTES = 64 };

struct findings {
    bool shared_runtime, driver;
    bool setid, damaged, no_sections;
    /* The library's name, without characters that steer a terminal. "": there is none. */
    char old_runtime[FINDINGS_NAME_BYTES], asks_tables[FINDINGS_NAME_BYTES];
    unsigned ptx, cubins;
    struct calls calls;
};

/* name: of its file, or a path to it. */
enum findings_library findings_library(const char *name);

/* releases: of the program whose library the file is, as in struct calls_from; 0: none is known. */
void findings_read(struct findings *findings, const struct elf_file *file, unsigned releases);

/* Whether the file has kernels, names a library of CUDA's or calls one. */
bool findings_of_cuda(const struct findings *findings);

/* Whether the file has kernels and nothing that would link gpushare's libraries to it. */
bool findings_static_runtime(const struct findings *findings);

#endif
