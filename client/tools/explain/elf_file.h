/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * elf_file: reads an executable or a shared library: its sections, and what its dynamic section
 * says. The dynamic linker's tables are found by the program headers, as it finds them itself, so
 * a file whose section headers were stripped is read too.
 *
 * The content is hostile. Every offset and size is checked against the file, each loop ends with
 * it, and a text that is returned ends within it. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_ELF_FILE_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/error.h"

/* Texts of the dynamic section that are longer than this count as damaged. A list of folders
 * (DT_RUNPATH) is the longest. */
enum { ELF_FILE_TEXT_MAX = 64 << 10 };

struct elf_file {
    const unsigned char *data;
    size_t bytes;
    mode_t mode;
    Elf64_Ehdr head;
    /* Of the dynamic section; 0 entries: the file has none. */
    uint64_t dynamic_at, dynamic_entries;
    uint64_t strings_at, strings_bytes;
    uint64_t symbols_at, symbols;
    bool damaged; /* the dynamic section, or a table that it names, is not all in the file */
};

/* Returns 0; or an error number, with the sentence in *why: NOT_FOUND if the file can't be read,
 * INVALID_IMAGE if it is neither an executable nor a library for 64-bit machines. */
uint32_t elf_file_open(struct elf_file *file, const char *path, struct error *why);
void elf_file_close(struct elf_file *file);

/* Copies bytes from an offset. False, with nothing copied, if they are not all in the file. */
bool elf_file_copy(const struct elf_file *file, uint64_t at, void *to, size_t bytes);

/* Gives a section. False if there is none of that index. */
bool elf_file_section(const struct elf_file *file, uint64_t index, Elf64_Shdr *section);

/* The name of a section, or "". Valid until the file is closed. */
const char *elf_file_section_name(const struct elf_file *file, const Elf64_Shdr *section);

/* Gives an entry of the dynamic section. False if there is none of that index. */
bool elf_file_dynamic(const struct elf_file *file, uint64_t index, Elf64_Dyn *entry);

/* A text of the dynamic section, or "" if it does not end within ELF_FILE_TEXT_MAX bytes. Valid
 * until the file is closed. */
const char *elf_file_text(const struct elf_file *file, uint64_t offset);

/* Gives a symbol of the dynamic section, with its name, which is "" if it has 256 bytes or more.
 * False if there is none of that index. The name is valid until the file is closed. */
bool elf_file_symbol(const struct elf_file *file, uint64_t index, Elf64_Sym *symbol,
                     const char **name);

#endif
