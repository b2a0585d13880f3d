/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libelf would find the sections but does not know .nv.info, whose checked offsets
 * are most of this file. */
#include "server/worker/image/cubin.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* A record of .nv.info is a format, an attribute, and a 16-bit value or size. */
enum { FORMAT_SIZED = 4, ATTRIBUTE_PARAMETER = 0x17, ATTRIBUTE_PARAMETER_BYTES = 0x19 };
enum { PARAMETER_RECORD = 12 };

/* A section for each of half a million kernels; the sections are searched for each kernel. */
#define SECTIONS_MAX (UINT64_C(1) << 20)

#define SYMBOL_TABLES_MAX 4

struct span {
    const uint8_t *bytes;
    size_t size;
};

static bool cut_span(struct span whole, uint64_t offset, uint64_t size, struct span *part)
{
    if (offset > whole.size || size > whole.size - offset)
        return false;
    *part = (struct span){whole.bytes + offset, size};
    return true;
}

/* An ELF file whose table of sections lies in it. */
struct elf_file {
    struct span whole, names;
    uint64_t sections_at, sections;
};

static bool section_header(const struct elf_file *file, uint64_t index, Elf64_Shdr *header)
{
    struct span at;
    if (index >= file->sections ||
        !cut_span(file->whole, file->sections_at + index * sizeof *header, sizeof *header, &at))
        return false;
    memcpy(header, at.bytes, sizeof *header);
    return true;
}

/* A file of very many sections has their number, and the number of the section of names, in the
 * first section's header. */
static bool elf_open(struct span bytes, struct elf_file *file, Elf64_Ehdr *elf)
{
    Elf64_Shdr first, names;
    if (bytes.size < sizeof *elf)
        return false;
    memcpy(elf, bytes.bytes, sizeof *elf);
    if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_ident[EI_CLASS] != ELFCLASS64 ||
        elf->e_shentsize != sizeof first || elf->e_shoff > bytes.size)
        return false;
    *file = (struct elf_file){.whole = bytes, .sections_at = elf->e_shoff, .sections = 1};
    if (!section_header(file, 0, &first))
        return false;
    file->sections = elf->e_shnum ? elf->e_shnum : first.sh_size;
    return file->sections <= SECTIONS_MAX &&
           section_header(file, elf->e_shstrndx == SHN_XINDEX ? first.sh_link : elf->e_shstrndx,
                          &names) &&
           cut_span(bytes, names.sh_offset, names.sh_size, &file->names) &&
           section_header(file, file->sections - 1, &first);
}

/* Whether a section has bytes in the file. Those of NVIDIA's own types may have none, but for the
 * first, .nv.info. */
static bool has_bytes(const Elf64_Shdr *header)
{
    return header->sh_type == SHT_LOPROC ||
           (header->sh_type < SHT_LOOS && header->sh_type != SHT_NULL &&
            header->sh_type != SHT_NOBITS);
}

bool cubin_is_whole(const uint8_t *cubin, size_t size)
{
    struct elf_file file;
    struct span part;
    Elf64_Ehdr elf;
    Elf64_Shdr header;
    if (!elf_open((struct span){cubin, size}, &file, &elf) ||
        (elf.e_phnum && elf.e_phentsize != sizeof(Elf64_Phdr)) ||
        !cut_span(file.whole, elf.e_phoff, (uint64_t)elf.e_phnum * sizeof(Elf64_Phdr), &part))
        return false;
    for (uint64_t i = 0; i < file.sections; i++)
        if (!section_header(&file, i, &header) ||
            (has_bytes(&header) && !cut_span(file.whole, header.sh_offset, header.sh_size, &part)))
            return false;
    return true;
}

static bool name_equals(struct span names, uint32_t offset, const char *prefix, const char *name)
{
    size_t first = strlen(prefix), rest = strlen(name);
    struct span at;
    return cut_span(names, offset, first + rest + 1, &at) && memcmp(at.bytes, prefix, first) == 0 &&
           memcmp(at.bytes + first, name, rest + 1) == 0;
}

/* Returns -ENOENT if there is no such section. */
static int find_section(struct span cubin, const char *prefix, const char *name, struct span *found)
{
    struct elf_file file;
    Elf64_Ehdr elf;
    Elf64_Shdr header;
    if (!elf_open(cubin, &file, &elf))
        return -EINVAL;
    for (uint64_t i = 0; i < file.sections; i++) {
        if (!section_header(&file, i, &header))
            return -EINVAL;
        if (header.sh_type == SHT_NOBITS || !name_equals(file.names, header.sh_name, prefix, name))
            continue;
        return cut_span(cubin, header.sh_offset, header.sh_size, found) ? 0 : -EINVAL;
    }
    return -ENOENT;
}

uint64_t cubin_variable_bytes(const uint8_t *cubin, size_t size)
{
    struct elf_file file;
    Elf64_Ehdr elf;
    Elf64_Shdr header;
    uint64_t bytes = 0;
    if (!elf_open((struct span){cubin, size}, &file, &elf))
        return UINT64_MAX;
    for (uint64_t i = 0; i < file.sections && section_header(&file, i, &header); i++)
        if ((name_equals(file.names, header.sh_name, ".nv.global", "") ||
             name_equals(file.names, header.sh_name, ".nv.global", ".init")) &&
            __builtin_add_overflow(bytes, header.sh_size, &bytes))
            return UINT64_MAX;
    return bytes;
}

static bool symbols_name(const struct elf_file *file, const Elf64_Shdr *header, const char *prefix)
{
    struct span symbols, names, at;
    Elf64_Shdr strings;
    Elf64_Sym symbol;
    size_t letters = strlen(prefix);
    if (!cut_span(file->whole, header->sh_offset, header->sh_size, &symbols) ||
        !section_header(file, header->sh_link, &strings) ||
        !cut_span(file->whole, strings.sh_offset, strings.sh_size, &names))
        return false;
    for (uint64_t from = 0; cut_span(symbols, from, sizeof symbol, &at); from += sizeof symbol) {
        memcpy(&symbol, at.bytes, sizeof symbol);
        if (cut_span(names, symbol.st_name, letters, &at) && !memcmp(at.bytes, prefix, letters))
            return true;
    }
    return false;
}

bool cubin_names(const uint8_t *cubin, size_t size, const char *prefix)
{
    struct elf_file file;
    Elf64_Ehdr elf;
    Elf64_Shdr header;
    unsigned tables = 0;
    if (!elf_open((struct span){cubin, size}, &file, &elf))
        return false;
    for (uint64_t i = 0; i < file.sections && section_header(&file, i, &header); i++)
        /* An ELF file has one table of symbols. A driver may read any of several, and many tables
         * would be read as often as they come. */
        if (header.sh_type == SHT_SYMTAB &&
            (tables++ == SYMBOL_TABLES_MAX || symbols_name(&file, &header, prefix)))
            return true;
    return false;
}

static uint32_t read_word(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* A record has the parameter's ordinal and offset, and its size in the upper bits of the last
 * word. */
static int read_parameter(const uint8_t *record, uint32_t *pairs, uint32_t *count, uint64_t *end)
{
    uint32_t ordinal = read_word(record + 4) & 0xffff, offset = read_word(record + 4) >> 16;
    uint32_t size = read_word(record + 8) >> 18;
    if (ordinal >= PROTO_PARAMETER_COUNT_MAX)
        return -EINVAL;
    pairs[2 * ordinal] = offset;
    pairs[2 * ordinal + 1] = size;
    if (ordinal >= *count)
        *count = ordinal + 1;
    if ((uint64_t)offset + size > *end)
        *end = (uint64_t)offset + size;
    return 0;
}

int cubin_layout(const uint8_t *cubin, size_t size, const char *kernel, uint32_t *pairs,
                 uint32_t *count, uint64_t *end)
{
    struct span info = {NULL, 0}, code;
    uint32_t seen = 0;
    *count = 0;
    *end = 0;
    memset(pairs, 0, 2 * PROTO_PARAMETER_COUNT_MAX * sizeof *pairs);
    int error = find_section((struct span){cubin, size}, ".text.", kernel, &code);
    if (error == 0)
        error = find_section((struct span){cubin, size}, ".nv.info.", kernel, &info);
    if (error < 0)
        return error;
    for (size_t at = 0; at + 4 <= info.size;) {
        uint32_t head = read_word(info.bytes + at);
        uint32_t format = head & 0xff, attribute = head >> 8 & 0xff, bytes = head >> 16;
        at += 4;
        if (format != FORMAT_SIZED)
            continue;
        if (bytes > info.size - at)
            return -EINVAL;
        if (attribute == ATTRIBUTE_PARAMETER && bytes == PARAMETER_RECORD) {
            error = read_parameter(info.bytes + at, pairs, count, end);
            if (error < 0)
                return error;
            seen++;
        }
        at += bytes;
    }
    /* If there are fewer or more records than ordinals, one is missing or comes twice. */
    return seen == *count ? 0 : -EINVAL;
}
