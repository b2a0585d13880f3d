/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libelf does not know .nv.info, whose checked offsets are most of this file. */
#include "server/worker/image/cubin.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "server/worker/image/cubin_file.h"

/* A record of .nv.info is a format, an attribute, and a 16-bit value or size. cuobjdump lists the
 * first two attributes as KPARAM_INFO and CBANK_PARAM_SIZE. The third is inferred: kernels of
 * cuBLASLt 13.0, cuDNN 9 and PyTorch 2.15 have it instead of the first where their parameters are
 * longer than 4 KiB. tests/programs/wheels/kernels.py read it in 2,600 kernels. */
enum { FORMAT_HALF = 3, FORMAT_SIZED = 4 };
enum { ATTRIBUTE_PARAMETER = 0x17, ATTRIBUTE_PARAMETERS = 0x19, ATTRIBUTE_LARGE_PARAMETER = 0x45 };
enum { PARAMETER_RECORD = 12 };

/* No parameter is read as missing: the records have to fill all that the kernel takes. The end of
 * the last one may be rounded up to the widest type's alignment. */
enum { WIDEST = 16 };

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

struct cubin_parameters {
    uint32_t *pairs, count;
    uint32_t seen; /* records */
    uint64_t end;  /* of the last one */
    uint64_t all;  /* bytes that the kernel says it takes */
};

static uint32_t read_word(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* A record has the parameter's ordinal and offset, and then its size beside something else, which
 * has the lower 18 bits in the older form and the upper 8 in the newer one. */
static int read_parameter(uint32_t attribute, const uint8_t *record, struct cubin_parameters *into)
{
    uint32_t ordinal = read_word(record + 4) & 0xffff, offset = read_word(record + 4) >> 16;
    uint32_t word = read_word(record + 8);
    uint32_t size = attribute == ATTRIBUTE_PARAMETER ? word >> 18 : word & 0xffffff;
    if (ordinal >= PROTO_PARAMETER_COUNT_MAX)
        return -EINVAL;
    into->pairs[2 * ordinal] = offset;
    into->pairs[2 * ordinal + 1] = size;
    into->count = max(into->count, ordinal + 1);
    into->end = max(into->end, (uint64_t)offset + size);
    into->seen++;
    return 0;
}

/* Each ordinal has one record, and together they are as long as the kernel's parameters. */
static bool is_complete(const struct cubin_parameters *read)
{
    return read->seen == read->count && read->end <= read->all && read->all - read->end < WIDEST;
}

int cubin_layout(const uint8_t *cubin, size_t size, const char *kernel, uint32_t *pairs,
                 uint32_t *count, uint64_t *end)
{
    struct cubin_span info = {NULL, 0}, code;
    struct cubin_parameters read = {.pairs = pairs};
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
        if (format == FORMAT_HALF && attribute == ATTRIBUTE_PARAMETERS)
            read.all = bytes;
        if (format != FORMAT_SIZED)
            continue;
        if (bytes > info.size - at)
            return -EINVAL;
        if ((attribute == ATTRIBUTE_PARAMETER || attribute == ATTRIBUTE_LARGE_PARAMETER) &&
            bytes == PARAMETER_RECORD) {
            error = read_parameter(attribute, info.bytes + at, &read);
            if (error < 0)
                return error;
        }
        at += bytes;
    }
    *count = read.count;
    *end = read.end;
    return is_complete(&read) ? 0 : -EINVAL;
}
