/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libelf is no shorter for two tables, and this one reads no byte that it has not
 * checked. */
#include "server/worker/image/cubin_file.h"

#include <string.h>

/* A section for each of half a million kernels; the sections are searched for each kernel. */
#define SECTIONS_MAX (UINT64_C(1) << 20)

bool cubin_file_cut(struct cubin_span whole, uint64_t offset, uint64_t size,
                    struct cubin_span *part)
{
    if (offset > whole.size || size > whole.size - offset)
        return false;
    *part = (struct cubin_span){whole.bytes + offset, size};
    return true;
}

bool cubin_file_section(const struct cubin_file *file, uint64_t index, Elf64_Shdr *section)
{
    struct cubin_span at;
    if (index >= file->sections ||
        !cubin_file_cut(file->whole, file->sections_at + index * sizeof *section, sizeof *section,
                        &at))
        return false;
    memcpy(section, at.bytes, sizeof *section);
    return true;
}

/* A file of very many sections has their number, and the number of the section of names, in the
 * first section's header. */
bool cubin_file_open(struct cubin_span bytes, struct cubin_file *file)
{
    Elf64_Ehdr elf;
    Elf64_Shdr first, names;
    if (bytes.size < sizeof elf)
        return false;
    memcpy(&elf, bytes.bytes, sizeof elf);
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf.e_shentsize != sizeof first || elf.e_shoff > bytes.size)
        return false;
    *file = (struct cubin_file){
        .header = elf, .whole = bytes, .sections_at = elf.e_shoff, .sections = 1};
    if (!cubin_file_section(file, 0, &first))
        return false;
    file->sections = elf.e_shnum ? elf.e_shnum : first.sh_size;
    return file->sections <= SECTIONS_MAX &&
           cubin_file_section(file, elf.e_shstrndx == SHN_XINDEX ? first.sh_link : elf.e_shstrndx,
                              &names) &&
           cubin_file_cut(bytes, names.sh_offset, names.sh_size, &file->names) &&
           cubin_file_section(file, file->sections - 1, &first);
}

bool cubin_file_name_equals(struct cubin_span names, uint32_t offset, const char *prefix,
                            const char *name)
{
    size_t first = strlen(prefix), rest = strlen(name);
    struct cubin_span at;
    return cubin_file_cut(names, offset, first + rest + 1, &at) &&
           memcmp(at.bytes, prefix, first) == 0 && memcmp(at.bytes + first, name, rest + 1) == 0;
}

bool cubin_file_name_begins(struct cubin_span names, uint32_t offset, const char *prefix)
{
    size_t letters = strlen(prefix);
    struct cubin_span at;
    return cubin_file_cut(names, offset, letters, &at) && memcmp(at.bytes, prefix, letters) == 0;
}

bool cubin_file_symbols(const struct cubin_file *file, const Elf64_Shdr *section,
                        struct cubin_span *symbols, struct cubin_span *names)
{
    Elf64_Shdr strings;
    return cubin_file_cut(file->whole, section->sh_offset, section->sh_size, symbols) &&
           cubin_file_section(file, section->sh_link, &strings) &&
           cubin_file_cut(file->whole, strings.sh_offset, strings.sh_size, names);
}
