/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cubin_file: the sections of a cubin, which is an ELF file, and their names.
 *
 * The input is hostile: every offset and size is checked against the bytes given. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_CUBIN_FILE_H
#define GPUSHARE_SERVER_WORKER_IMAGE_CUBIN_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cubin_span {
    const uint8_t *bytes;
    size_t size;
};

/* An ELF file whose table of sections lies in it. The bytes are the caller's. */
struct cubin_file {
    Elf64_Ehdr header;
    struct cubin_span whole, names;
    uint64_t sections_at, sections;
};

/* Returns false if the bytes are no ELF file of 64 bits, or its table of sections, or the section
 * with their names, lies outside of them. */
bool cubin_file_open(struct cubin_span bytes, struct cubin_file *file);

/* Copies the header of a section. Returns false if there is none with this index. */
bool cubin_file_section(const struct cubin_file *file, uint64_t index, Elf64_Shdr *section);

/* Returns false if the part does not lie in the whole. */
bool cubin_file_cut(struct cubin_span whole, uint64_t offset, uint64_t size,
                    struct cubin_span *part);

/* Whether the name at offset is prefix and name together. */
bool cubin_file_name_equals(struct cubin_span names, uint32_t offset, const char *prefix,
                            const char *name);

/* Whether the name at offset begins so. */
bool cubin_file_name_begins(struct cubin_span names, uint32_t offset, const char *prefix);

/* The entries of a table of symbols and their names. Returns false if either lies outside. */
bool cubin_file_symbols(const struct cubin_file *file, const Elf64_Shdr *section,
                        struct cubin_span *symbols, struct cubin_span *names);

#endif
