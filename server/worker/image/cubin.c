/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libelf does not know .nv.info, whose checked offsets are most of this file. */
#include "server/worker/image/cubin.h"

#include <errno.h>
#include <string.h>

#include "server/worker/image/cubin_file.h"

/* A record of .nv.info is a format, an attribute, and a 16-bit value or size. */
enum { FORMAT_SIZED = 4, ATTRIBUTE_PARAMETER = 0x17, ATTRIBUTE_PARAMETER_BYTES = 0x19 };
enum { PARAMETER_RECORD = 12 };

#define SYMBOL_TABLES_MAX 4

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
    struct cubin_file file;
    struct cubin_span part;
    Elf64_Shdr header;
    if (!cubin_file_open((struct cubin_span){cubin, size}, &file) ||
        (file.header.e_phnum && file.header.e_phentsize != sizeof(Elf64_Phdr)) ||
        !cubin_file_cut(file.whole, file.header.e_phoff,
                        (uint64_t)file.header.e_phnum * sizeof(Elf64_Phdr), &part))
        return false;
    for (uint64_t i = 0; i < file.sections; i++)
        if (!cubin_file_section(&file, i, &header) ||
            (has_bytes(&header) &&
             !cubin_file_cut(file.whole, header.sh_offset, header.sh_size, &part)))
            return false;
    return true;
}

/* Returns -ENOENT if there is no such section. */
static int find_section(struct cubin_span cubin, const char *prefix, const char *name,
                        struct cubin_span *found)
{
    struct cubin_file file;
    Elf64_Shdr header;
    if (!cubin_file_open(cubin, &file))
        return -EINVAL;
    for (uint64_t i = 0; i < file.sections; i++) {
        if (!cubin_file_section(&file, i, &header))
            return -EINVAL;
        if (header.sh_type == SHT_NOBITS ||
            !cubin_file_name_equals(file.names, header.sh_name, prefix, name))
            continue;
        return cubin_file_cut(cubin, header.sh_offset, header.sh_size, found) ? 0 : -EINVAL;
    }
    return -ENOENT;
}

uint64_t cubin_variable_bytes(const uint8_t *cubin, size_t size)
{
    struct cubin_file file;
    Elf64_Shdr header;
    uint64_t bytes = 0;
    if (!cubin_file_open((struct cubin_span){cubin, size}, &file))
        return UINT64_MAX;
    for (uint64_t i = 0; i < file.sections && cubin_file_section(&file, i, &header); i++)
        if ((cubin_file_name_equals(file.names, header.sh_name, ".nv.global", "") ||
             cubin_file_name_equals(file.names, header.sh_name, ".nv.global", ".init")) &&
            __builtin_add_overflow(bytes, header.sh_size, &bytes))
            return UINT64_MAX;
    return bytes;
}

static bool symbols_name(const struct cubin_file *file, const Elf64_Shdr *header,
                         const char *prefix)
{
    struct cubin_span symbols, names, at;
    Elf64_Sym symbol;
    if (!cubin_file_symbols(file, header, &symbols, &names))
        return false;
    for (uint64_t from = 0; cubin_file_cut(symbols, from, sizeof symbol, &at);
         from += sizeof symbol) {
        memcpy(&symbol, at.bytes, sizeof symbol);
        if (cubin_file_name_begins(names, symbol.st_name, prefix))
            return true;
    }
    return false;
}

bool cubin_names(const uint8_t *cubin, size_t size, const char *prefix)
{
    struct cubin_file file;
    Elf64_Shdr header;
    unsigned tables = 0;
    if (!cubin_file_open((struct cubin_span){cubin, size}, &file))
        return false;
    for (uint64_t i = 0; i < file.sections && cubin_file_section(&file, i, &header); i++)
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
    struct cubin_span info = {NULL, 0}, code;
    uint32_t seen = 0;
    *count = 0;
    *end = 0;
    memset(pairs, 0, 2 * PROTO_PARAMETER_COUNT_MAX * sizeof *pairs);
    int error = find_section((struct cubin_span){cubin, size}, ".text.", kernel, &code);
    if (error == 0)
        error = find_section((struct cubin_span){cubin, size}, ".nv.info.", kernel, &info);
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
