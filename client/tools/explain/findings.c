/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/findings.h"

#include <stdio.h>
#include <string.h>

#include "common/cuda/fatbin.h"
#include "common/printable.h"

/* ---- libraries ---- */

/* A library may be needed by a path, and gpushare run has it found by its last part. */
static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

enum findings_library findings_library(const char *name)
{
    /* They link the runtime statically. */
    static const char *const asking[] = {"libcublas",   "libcudnn",  "libcufft", "libcusparse",
                                         "libcusolver", "libcurand", "libnccl"};
    name = base_of(name);
    if (!strncmp(name, "libcuda.so", 10))
        return FINDINGS_LIBRARY_DRIVER;
    if (!strncmp(name, "libcudart.so.", 13))
        return strcmp(name, "libcudart.so.12") != 0 && strcmp(name, "libcudart.so.13") != 0
                   ? FINDINGS_LIBRARY_OLD_RUNTIME
                   : FINDINGS_LIBRARY_RUNTIME;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (!strncmp(name, asking[i], strlen(asking[i])))
            return FINDINGS_LIBRARY_ASKS_TABLES;
    return FINDINGS_LIBRARY_OTHER;
}

static void take_name(char to[FINDINGS_NAME_BYTES], const char *name)
{
    snprintf(to, FINDINGS_NAME_BYTES, "%s", name);
    printable_replace(to);
}

static void note_library(struct findings *findings, const char *name, unsigned *releases)
{
    name = base_of(name);
    switch (findings_library(name)) {
    case FINDINGS_LIBRARY_DRIVER:
        findings->driver = true;
        break;
    case FINDINGS_LIBRARY_RUNTIME:
        findings->shared_runtime = true;
        *releases |= 1u << (strcmp(name, "libcudart.so.12") ? CUDA_FUNCTION_RELEASE_13
                                                            : CUDA_FUNCTION_RELEASE_12);
        break;
    case FINDINGS_LIBRARY_OLD_RUNTIME:
        findings->shared_runtime = true;
        take_name(findings->old_runtime, name);
        break;
    case FINDINGS_LIBRARY_ASKS_TABLES:
        take_name(findings->asks_tables, name);
        break;
    case FINDINGS_LIBRARY_OTHER:
        break;
    }
}

/* ---- kernels ---- */

/* The section has one container after another, each at a multiple of eight. */
static void read_fatbins(const struct elf_file *file, const Elf64_Shdr *section,
                         struct findings *findings)
{
    uint64_t at = section->sh_offset, end;
    if (__builtin_add_overflow(at, section->sh_size, &end) || end > file->bytes)
        return;
    while (at < end && end - at >= FATBIN_HEADER_BYTES) {
        size_t bytes = fatbin_size(file->data + at);
        struct fatbin fatbin;
        struct fatbin_entry entry;
        if (!bytes || bytes > end - at || fatbin_open(&fatbin, file->data + at, bytes))
            return;
        while (fatbin_next(&fatbin, &entry) == 1) {
            findings->ptx += entry.kind == FATBIN_PTX;
            findings->cubins += entry.kind == FATBIN_CUBIN;
        }
        at += (bytes + 7) & ~(uint64_t)7;
    }
}

/* The second is of objects that nvcc compiles apart (-rdc=true). */
static bool has_fatbins(const char *section)
{
    return strcmp(section, ".nv_fatbin") == 0 || strcmp(section, "__nv_relfatbin") == 0;
}

/* Sections lie side by side. Many that claim the same bytes would have them read as many times. */
static void read_sections(const struct elf_file *file, struct findings *findings)
{
    Elf64_Shdr section;
    uint64_t left = file->bytes;
    for (uint64_t i = 0; elf_file_section(file, i, &section); i++) {
        if (section.sh_type == SHT_NOBITS || !has_fatbins(elf_file_section_name(file, &section)))
            continue;
        if (section.sh_size > left)
            return;
        left -= section.sh_size;
        read_fatbins(file, &section, findings);
    }
    findings->no_sections = !elf_file_section(file, 0, &section);
}

/* ---- a file ---- */

void findings_read(struct findings *findings, const struct elf_file *file, unsigned releases)
{
    Elf64_Dyn entry;
    unsigned own = 0;
    *findings = (struct findings){0};
    findings->setid = file->mode & (S_ISUID | S_ISGID);
    findings->damaged = file->damaged;
    for (uint64_t i = 0; elf_file_dynamic(file, i, &entry); i++)
        if (entry.d_tag == DT_NEEDED)
            note_library(findings, elf_file_text(file, entry.d_un.d_val), &own);
    read_sections(file, findings);
    struct calls_from from = {.driver = findings->driver,
                              .runtime = findings->shared_runtime,
                              .releases = own ? own : releases};
    calls_read(&findings->calls, file, &from);
}

bool findings_of_cuda(const struct findings *findings)
{
    bool calls = false;
    for (int state = 0; state < CUDA_FUNCTION_STATES; state++)
        calls |= calls_count(&findings->calls, (enum cuda_function_state)state) > 0;
    return calls || findings->ptx || findings->cubins || findings->driver ||
           findings->shared_runtime || *findings->asks_tables;
}

bool findings_static_runtime(const struct findings *findings)
{
    return (findings->ptx || findings->cubins) && !findings->shared_runtime && !findings->driver;
}
