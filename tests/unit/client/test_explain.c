/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* explain: functions that a file calls are found by each table that counts its symbols, and no
 * content of a file is a danger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <elf.h>

#include "client/tools/explain/explain.h"

enum {
    SYMBOLS_MAX = 128,
    STRINGS_BYTES = 2560,
    RELOCATIONS = 1,
    BASE = 0x400000 /* addresses are not offsets */
};

/* A table from which the number of symbols follows. */
enum count { BY_NOTHING, BY_HASH, BY_GNU_HASH, BY_RELOCATIONS, BY_SECTIONS };

/* A library, whose dynamic section and tables a test may spoil before it is written. */
struct image {
    Elf64_Ehdr head;
    Elf64_Phdr segments[2];
    Elf64_Shdr sections[2];
    Elf64_Dyn dynamic[16];
    uint32_t hash[2];
    uint32_t gnu_hash[4 + 2 + 1 + 1]; /* head, a word of the filter, a bucket, a chain */
    Elf64_Rela relocations[RELOCATIONS];
    Elf64_Sym symbols[SYMBOLS_MAX];
    char strings[STRINGS_BYTES];
};

static struct image image;
static size_t symbol_count, string_bytes, dynamic_count;
static char path[256];
static char *printed;
static unsigned problems;

static int make_file(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test_explain.XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    free(printed);
    return unlink(path);
}

static uint64_t address_of(const void *member)
{
    return BASE + (uint64_t)((const char *)member - (const char *)&image);
}

static uint32_t add_string(const char *text)
{
    size_t at = string_bytes;
    assert_true(at + strlen(text) < STRINGS_BYTES);
    strcpy(image.strings + at, text);
    string_bytes += strlen(text) + 1;
    return (uint32_t)at;
}

static void add_dynamic(int64_t tag, uint64_t value)
{
    image.dynamic[dynamic_count].d_tag = tag;
    image.dynamic[dynamic_count++].d_un.d_val = value;
}

static void add_symbol(const char *name, uint16_t section)
{
    assert_true(symbol_count < SYMBOLS_MAX);
    image.symbols[symbol_count++] = (Elf64_Sym){.st_name = add_string(name),
                                                .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                                .st_shndx = section};
}

/* A library that needs libcuda.so.1 and calls a carried function, one in part, and a refused one.
 */
static void begin(void)
{
    memset(&image, 0, sizeof image);
    symbol_count = string_bytes = 1;
    dynamic_count = 0;
    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_ident[EI_CLASS] = ELFCLASS64;
    image.head.e_ident[EI_DATA] = ELFDATA2LSB;
    image.head.e_type = ET_DYN;
    image.head.e_phoff = offsetof(struct image, segments);
    image.head.e_phentsize = sizeof(Elf64_Phdr);
    image.head.e_phnum = 2;
    image.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof image};
    image.segments[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                     .p_offset = offsetof(struct image, dynamic),
                                     .p_vaddr = address_of(image.dynamic),
                                     .p_filesz = sizeof image.dynamic};
    add_dynamic(DT_NEEDED, add_string("libcuda.so.1"));
    add_dynamic(DT_STRTAB, address_of(image.strings));
    add_dynamic(DT_STRSZ, sizeof image.strings);
    add_dynamic(DT_SYMTAB, address_of(image.symbols));
    add_symbol("cuInit", SHN_UNDEF);
    add_symbol("cuCtxGetLimit", SHN_UNDEF);
    add_symbol("cuGraphCreate", SHN_UNDEF);
}

/* To be called behind the last symbol. */
static void count(enum count how)
{
    switch (how) {
    case BY_HASH:
        image.hash[0] = 1;
        image.hash[1] = (uint32_t)symbol_count;
        add_dynamic(DT_HASH, address_of(image.hash));
        break;
    case BY_GNU_HASH:
        /* The last symbol alone is defined, and in the table. */
        add_symbol("defined", 1);
        image.gnu_hash[0] = 1;
        image.gnu_hash[1] = (uint32_t)symbol_count - 1;
        image.gnu_hash[2] = 1;
        image.gnu_hash[6] = (uint32_t)symbol_count - 1;
        image.gnu_hash[7] = 1;
        add_dynamic(DT_GNU_HASH, address_of(image.gnu_hash));
        break;
    case BY_RELOCATIONS:
        image.relocations[0].r_info = ELF64_R_INFO(symbol_count - 1, R_X86_64_JUMP_SLOT);
        add_dynamic(DT_JMPREL, address_of(image.relocations));
        add_dynamic(DT_PLTRELSZ, sizeof image.relocations);
        break;
    case BY_SECTIONS:
        image.head.e_shoff = offsetof(struct image, sections);
        image.head.e_shentsize = sizeof(Elf64_Shdr);
        image.head.e_shnum = 2;
        image.sections[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
                                         .sh_offset = offsetof(struct image, symbols),
                                         .sh_size = symbol_count * sizeof(Elf64_Sym)};
        break;
    case BY_NOTHING:
        break;
    }
}

static uint32_t explain_bytes(size_t bytes)
{
    struct error why;
    size_t size;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&image, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    free(printed);
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    problems = 0;
    uint32_t error = explain_path(path, NULL, out, &problems, &why);
    assert_int_equal(fclose(out), 0);
    return error;
}

static void explained(unsigned expected)
{
    assert_int_equal(explain_bytes(sizeof image), 0);
    if (problems != expected)
        fail_msg("%u problems: %s", problems, printed);
}

static void said(const char *words)
{
    if (!strstr(printed, words))
        fail_msg("no \"%s\" in: %s", words, printed);
}

static void not_said(const char *words)
{
    if (strstr(printed, words))
        fail_msg("\"%s\" in: %s", words, printed);
}

/* ---- what is said ---- */

static void each_table_counts_the_symbols(void **state)
{
    (void)state;
    for (enum count how = BY_HASH; how <= BY_SECTIONS; how++) {
        begin();
        count(how);
        explained(1);
        said("not supported: cuGraphCreate; ");
        said("in part: cuCtxGetLimit; ");
        not_said("cuInit");
        not_said("damaged");
    }
}

static void functions_that_no_table_has_are_named(void **state)
{
    (void)state;
    begin();
    add_symbol("cuZetaOfTomorrow", SHN_UNDEF);
    add_symbol("cublasCreate_v2", SHN_UNDEF);
    add_symbol("cudaZetaOfTomorrow", SHN_UNDEF); /* no runtime is needed that would have it */
    add_symbol("current_time", SHN_UNDEF);
    add_symbol("cuAlphaOfTomorrow", SHN_UNDEF);
    count(BY_HASH);
    explained(2);
    said("do not have: cuAlphaOfTomorrow, cuZetaOfTomorrow; ");
}

static void a_weak_function_may_be_absent(void **state)
{
    (void)state;
    begin();
    add_symbol("cuZetaOfTomorrow", SHN_UNDEF);
    image.symbols[symbol_count - 1].st_info = ELF64_ST_INFO(STB_WEAK, STT_NOTYPE);
    count(BY_HASH);
    explained(1);
    not_said("cuZeta");
}

static void lists_are_bounded(void **state)
{
    char name[32];
    (void)state;
    begin();
    for (int i = 99; i >= 0; i--) {
        snprintf(name, sizeof name, "cuTomorrow%02d", i);
        add_symbol(name, SHN_UNDEF);
    }
    count(BY_HASH);
    explained(2);
    said("have: cuTomorrow00, cuTomorrow01, cuTomorrow02, cuTomorrow03, cuTomorrow04, "
         "cuTomorrow05, cuTomorrow06, cuTomorrow07 and 92 more; ");
}

static void a_name_does_not_steer_a_terminal(void **state)
{
    (void)state;
    begin();
    add_symbol("cuX\033[2J", SHN_UNDEF);
    add_dynamic(DT_NEEDED, add_string("libcublas\033[2J.so"));
    add_dynamic(DT_NEEDED, add_string("lib\nnowhere.so"));
    count(BY_HASH);
    explained(3);
    said("cuX?[2J");
    said("libcublas?[2J.so");
    said("not looked at: lib?nowhere.so; ");
    not_said("\033");
}

/* ---- hostile content ---- */

static void a_dynamic_section_without_its_end_is_damaged(void **state)
{
    (void)state;
    begin();
    count(BY_HASH);
    while (dynamic_count < sizeof image.dynamic / sizeof *image.dynamic)
        add_dynamic(DT_DEBUG, 0);
    explained(2);
    said("is damaged");
    said("cuGraphCreate");
}

static void a_dynamic_section_beyond_the_file_is_damaged(void **state)
{
    static const uint64_t places[] = {sizeof image - 24, sizeof image, sizeof image + 1,
                                      UINT64_MAX - 15};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        begin();
        count(BY_HASH);
        memset(image.strings + STRINGS_BYTES - 32, 1, 32);
        image.segments[1].p_offset = places[i];
        explained(1);
        said("is damaged");
    }
}

static void tables_beyond_the_file_are_damaged(void **state)
{
    (void)state;
    for (size_t entry = 1; entry <= 3; entry++)
        for (size_t i = 0; i < 3; i++) {
            begin();
            count(BY_HASH);
            image.dynamic[entry].d_un.d_val =
                (uint64_t[]){BASE + sizeof image, UINT64_MAX, BASE + sizeof image - 8}[i];
            explain_bytes(sizeof image);
            said("is damaged");
        }
}

static void a_count_beyond_the_file_is_damaged(void **state)
{
    (void)state;
    for (enum count how = BY_HASH; how <= BY_SECTIONS; how++) {
        begin();
        count(how);
        image.hash[1] = UINT32_MAX;
        image.gnu_hash[1] = 0;
        image.gnu_hash[6] = UINT32_MAX / 64;
        image.relocations[0].r_info = ELF64_R_INFO((uint64_t)UINT32_MAX, R_X86_64_JUMP_SLOT);
        image.sections[1].sh_size = UINT64_MAX;
        explain_bytes(sizeof image);
        said("is damaged");
        /* GNU's table is the end of the count, so nothing is counted without that. */
        if (how != BY_GNU_HASH)
            said("cuGraphCreate");
    }
}

static void huge_numbers_of_the_header_are_no_danger(void **state)
{
    (void)state;
    begin();
    count(BY_GNU_HASH);
    memset(image.gnu_hash, 0xff, sizeof image.gnu_hash);
    explain_bytes(sizeof image);
    begin();
    count(BY_SECTIONS);
    image.head.e_shoff = UINT64_MAX - 8;
    image.head.e_shnum = image.head.e_shstrndx = UINT16_MAX;
    explain_bytes(sizeof image);
    said("has no section headers");
    begin();
    count(BY_HASH);
    image.head.e_phoff = UINT64_MAX - 8;
    image.head.e_phnum = UINT16_MAX;
    explained(0);
}

/* The file that needs a library is its own library, and the list of folders is endless. */
static void searches_end(void **state)
{
    (void)state;
    begin();
    add_dynamic(DT_RPATH, add_string("$ORIGIN:::/nonexistent:${ORIGIN}$ORIGIN:"));
    add_dynamic(DT_NEEDED, add_string(path));
    add_dynamic(DT_NEEDED, add_string(strrchr(path, '/') + 1));
    count(BY_HASH);
    explain_bytes(sizeof image);
    said("cuGraphCreate");
    not_said("not found");
}

static void every_cut_is_survived(void **state)
{
    (void)state;
    unsigned damaged = 0;
    for (enum count how = BY_HASH; how <= BY_SECTIONS; how++) {
        begin();
        count(how);
        /* All but the end of the strings, where nothing is. */
        for (size_t bytes = 0; bytes < offsetof(struct image, strings) + 64; bytes += 19)
            if (!explain_bytes(bytes))
                damaged += problems > 0;
    }
    assert_true(damaged > 100);
}

static void every_spoilt_byte_is_survived(void **state)
{
    (void)state;
    for (enum count how = BY_HASH; how <= BY_SECTIONS; how++) {
        begin();
        count(how);
        unsigned char *bytes = (unsigned char *)&image;
        for (size_t at = 0; at < offsetof(struct image, symbols) + 4 * sizeof(Elf64_Sym); at++) {
            unsigned char was = bytes[at];
            bytes[at] = how % 2 ? 0xff : (unsigned char)(was ^ 0x40);
            explain_bytes(sizeof image);
            bytes[at] = was;
        }
        explained(1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_table_counts_the_symbols),
        cmocka_unit_test(functions_that_no_table_has_are_named),
        cmocka_unit_test(a_weak_function_may_be_absent),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(a_name_does_not_steer_a_terminal),
        cmocka_unit_test(a_dynamic_section_without_its_end_is_damaged),
        cmocka_unit_test(a_dynamic_section_beyond_the_file_is_damaged),
        cmocka_unit_test(tables_beyond_the_file_are_damaged),
        cmocka_unit_test(a_count_beyond_the_file_is_damaged),
        cmocka_unit_test(huge_numbers_of_the_header_are_no_danger),
        cmocka_unit_test(searches_end),
        cmocka_unit_test(every_cut_is_survived),
        cmocka_unit_test(every_spoilt_byte_is_survived),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
