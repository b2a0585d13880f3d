/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libelf finds the tables of an executable by its section headers, which may be
 * stripped. The dynamic linker does without them, and so must whoever says what it will do. */
#include "client/tools/explain/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/messages.h"
#include "common/util.h"

enum {
    DYNAMIC_MAX = 4096, /* a library has some thirty, and one more for each library that it needs */
    NAME_BYTES = 256, /* of a symbol: those of C++ can be longer, and none of these is asked for */
};

/* The tables that the dynamic section names. 0: it does not. */
struct tables {
    uint64_t strings, strings_bytes, symbols, hash, gnu_hash;
    uint64_t relocations[2], relocation_bytes[2]; /* of data, and of calls */
};

bool elf_file_copy(const struct elf_file *file, uint64_t at, void *to, size_t bytes)
{
    if (at > file->bytes || file->bytes - at < bytes)
        return false;
    memcpy(to, file->data + at, bytes);
    return true;
}

/* A text that ends within so many bytes and within the file, or "". */
static const char *text_at(const struct elf_file *file, uint64_t at, uint64_t most)
{
    if (at >= file->bytes || !memchr(file->data + at, '\0', min(file->bytes - at, most)))
        return "";
    return (const char *)file->data + at;
}

/* ---- sections ---- */

bool elf_file_section(const struct elf_file *file, uint64_t index, Elf64_Shdr *section)
{
    const Elf64_Ehdr *head = &file->head;
    return head->e_shoff && index < head->e_shnum && head->e_shentsize == sizeof *section &&
           elf_file_copy(file, saturating_add(head->e_shoff, index * sizeof *section), section,
                         sizeof *section);
}

const char *elf_file_section_name(const struct elf_file *file, const Elf64_Shdr *section)
{
    Elf64_Shdr names;
    return elf_file_section(file, file->head.e_shstrndx, &names)
               ? text_at(file, saturating_add(names.sh_offset, section->sh_name), NAME_BYTES)
               : "";
}

/* ---- what the dynamic section says ---- */

static bool segment_at(const struct elf_file *file, uint64_t index, Elf64_Phdr *segment)
{
    const Elf64_Ehdr *head = &file->head;
    return index < head->e_phnum && head->e_phentsize == sizeof *segment &&
           elf_file_copy(file, saturating_add(head->e_phoff, index * sizeof *segment), segment,
                         sizeof *segment);
}

/* Where the file has what is mapped at the address. */
static bool offset_of(const struct elf_file *file, uint64_t address, uint64_t *at)
{
    Elf64_Phdr segment;
    for (uint64_t i = 0; segment_at(file, i, &segment); i++)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            *at = saturating_add(segment.p_offset, address - segment.p_vaddr);
            return *at < file->bytes;
        }
    return false;
}

bool elf_file_dynamic(const struct elf_file *file, uint64_t index, Elf64_Dyn *entry)
{
    return index < file->dynamic_entries &&
           elf_file_copy(file, saturating_add(file->dynamic_at, index * sizeof *entry), entry,
                         sizeof *entry);
}

static void find_dynamic(struct elf_file *file)
{
    Elf64_Phdr segment;
    Elf64_Dyn entry;
    for (uint64_t i = 0; segment_at(file, i, &segment); i++) {
        if (segment.p_type != PT_DYNAMIC)
            continue;
        uint64_t count = segment.p_filesz / sizeof entry;
        file->dynamic_at = segment.p_offset;
        file->dynamic_entries = min(count, (uint64_t)DYNAMIC_MAX);
        for (uint64_t j = 0; elf_file_dynamic(file, j, &entry); j++)
            if (entry.d_tag == DT_NULL) {
                file->dynamic_entries = j;
                return;
            }
        /* The end is missing, and the dynamic linker would read on. */
        file->damaged = true;
        return;
    }
}

static struct tables find_tables(const struct elf_file *file)
{
    struct tables tables = {0};
    Elf64_Dyn entry;
    for (uint64_t i = 0; elf_file_dynamic(file, i, &entry); i++) {
        uint64_t value = entry.d_un.d_val;
        switch (entry.d_tag) {
        case DT_STRTAB:
            tables.strings = value;
            break;
        case DT_STRSZ:
            tables.strings_bytes = value;
            break;
        case DT_SYMTAB:
            tables.symbols = value;
            break;
        case DT_HASH:
            tables.hash = value;
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = value;
            break;
        case DT_RELA:
            tables.relocations[0] = value;
            break;
        case DT_RELASZ:
            tables.relocation_bytes[0] = value;
            break;
        case DT_JMPREL:
            tables.relocations[1] = value;
            break;
        case DT_PLTRELSZ:
            tables.relocation_bytes[1] = value;
            break;
        default:
            break;
        }
    }
    return tables;
}

/* ---- how many symbols there are, which no entry of the dynamic section says ---- */

/* Reads from a table, which is damaged where the file ends before it. */
static bool read_table(struct elf_file *file, uint64_t at, void *to, size_t bytes)
{
    if (elf_file_copy(file, at, to, bytes))
        return true;
    file->damaged = true;
    return false;
}

/* Where the file has the table. Only what is in the file counts. */
static uint64_t table_at(const struct elf_file *file, uint64_t address)
{
    uint64_t at;
    return offset_of(file, address, &at) ? at : UINT64_MAX;
}

/* The old hash table has a word for each symbol. */
static uint64_t count_by_hash(struct elf_file *file, uint64_t address)
{
    uint32_t words[2]; /* buckets, symbols */
    return address && read_table(file, table_at(file, address), words, sizeof words) ? words[1] : 0;
}

/* GNU's has those alone that the file defines, which stand behind the others. The last chain ends
 * with the last symbol. */
static uint64_t count_by_gnu_hash(struct elf_file *file, uint64_t address)
{
    uint32_t words[4]; /* buckets, the first symbol in the table, words of the filter, a shift */
    uint32_t word, last = 0;
    uint64_t at = table_at(file, address);
    if (!address || !read_table(file, at, words, sizeof words))
        return 0;
    at += sizeof words + (uint64_t)words[2] * sizeof(uint64_t);
    for (uint32_t i = 0; i < words[0]; i++, at += sizeof word) {
        if (!read_table(file, at, &word, sizeof word))
            return 0;
        last = max(last, word);
    }
    if (last < words[1]) /* it has none, and so says nothing */
        return 0;
    at += (uint64_t)(last - words[1]) * sizeof word;
    for (uint64_t count = last;; at += sizeof word) {
        if (!read_table(file, at, &word, sizeof word))
            return 0;
        count++;
        if (word & 1)
            return count;
    }
}

/* A function that the file calls without defining it has a relocation. */
static uint64_t count_by_relocations(struct elf_file *file, const struct tables *tables)
{
    uint64_t count = 0;
    Elf64_Rela relocation;
    for (int i = 0; i < 2; i++) {
        uint64_t left = tables->relocation_bytes[i] / sizeof relocation;
        uint64_t at = table_at(file, tables->relocations[i]);
        for (; left && read_table(file, at, &relocation, sizeof relocation); left--) {
            count = max(count, ELF64_R_SYM(relocation.r_info) + 1);
            at += sizeof relocation;
        }
    }
    return count;
}

static uint64_t count_by_sections(const struct elf_file *file)
{
    Elf64_Shdr section;
    for (uint64_t i = 0; elf_file_section(file, i, &section); i++)
        if (section.sh_type == SHT_DYNSYM)
            return section.sh_size / sizeof(Elf64_Sym);
    return 0;
}

static uint64_t count_symbols(struct elf_file *file, const struct tables *tables)
{
    uint64_t count = count_by_hash(file, tables->hash);
    count = count ? count : count_by_gnu_hash(file, tables->gnu_hash);
    count = count ? count : count_by_sections(file);
    return count ? count : count_by_relocations(file, tables);
}

static void read_dynamic(struct elf_file *file)
{
    find_dynamic(file);
    if (!file->dynamic_entries)
        return;
    struct tables tables = find_tables(file);
    if (!tables.strings || !offset_of(file, tables.strings, &file->strings_at) || !tables.symbols ||
        !offset_of(file, tables.symbols, &file->symbols_at)) {
        file->strings_bytes = 0;
        file->damaged = true;
        return;
    }
    file->strings_bytes = min(tables.strings_bytes, (uint64_t)file->bytes - file->strings_at);
    file->symbols = count_symbols(file, &tables);
    uint64_t room = (file->bytes - file->symbols_at) / sizeof(Elf64_Sym);
    if (file->symbols > room || tables.strings_bytes > file->strings_bytes)
        file->damaged = true;
    file->symbols = min(file->symbols, room);
}

const char *elf_file_text(const struct elf_file *file, uint64_t offset)
{
    if (offset >= file->strings_bytes)
        return "";
    return text_at(file, file->strings_at + offset,
                   min(file->strings_bytes - offset, (uint64_t)ELF_FILE_TEXT_MAX));
}

bool elf_file_symbol(const struct elf_file *file, uint64_t index, Elf64_Sym *symbol,
                     const char **name)
{
    if (index >= file->symbols ||
        !elf_file_copy(file, file->symbols_at + index * sizeof *symbol, symbol, sizeof *symbol))
        return false;
    *name = symbol->st_name < file->strings_bytes
                ? text_at(file, file->strings_at + symbol->st_name,
                          min(file->strings_bytes - symbol->st_name, (uint64_t)NAME_BYTES))
                : "";
    return true;
}

/* ---- the file ---- */

/* Opens a regular file alone. The path may come from a hostile file, and to open a device can
 * start it, as it starts a watchdog. Returns -1 with errno, or -2 for another kind of file. */
static int open_regular(const char *path, struct stat *status)
{
    char again[64];
    int place = open(path, O_PATH | O_CLOEXEC), fd = -1;
    if (place < 0)
        return -1;
    if (!fstat(place, status)) {
        snprintf(again, sizeof again, "/proc/self/fd/%d", place);
        fd = S_ISREG(status->st_mode) ? open(again, O_RDONLY | O_CLOEXEC) : -2;
    }
    int error = errno;
    close(place);
    errno = error;
    return fd;
}

static uint32_t map_file(struct elf_file *file, const char *path, struct error *why)
{
    struct stat status;
    int fd = open_regular(path, &status);
    if (fd == -1)
        return error_set(why, MESSAGE(explain_file), path, strerror(errno));
    if (fd < 0)
        return error_set(why, MESSAGE(explain_no_executable), path);
    file->mode = status.st_mode;
    file->bytes = (size_t)status.st_size;
    void *data = file->bytes ? mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (data == MAP_FAILED)
        return error_set(why, MESSAGE(explain_no_executable), path);
    file->data = data;
    return 0;
}

static bool read_head(struct elf_file *file)
{
    Elf64_Ehdr *head = &file->head;
    return elf_file_copy(file, 0, head, sizeof *head) && !memcmp(head->e_ident, ELFMAG, SELFMAG) &&
           head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_ident[EI_DATA] == ELFDATA2LSB &&
           (head->e_type == ET_EXEC || head->e_type == ET_DYN);
}

uint32_t elf_file_open(struct elf_file *file, const char *path, struct error *why)
{
    *file = (struct elf_file){0};
    uint32_t error = map_file(file, path, why);
    if (error)
        return error;
    if (!read_head(file)) {
        elf_file_close(file);
        return error_set(why, MESSAGE(explain_no_executable), path);
    }
    read_dynamic(file);
    return 0;
}

void elf_file_close(struct elf_file *file)
{
    if (file->data)
        munmap((void *)file->data, file->bytes);
    file->data = NULL;
}
