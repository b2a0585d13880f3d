/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The state that a cubin keeps on the device: tables as ptxas 13.0 writes them, and hostile ones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/image/cubin_state.h"

enum { SECTIONS = 24, SYMBOLS = 8, TEXTS = 2048, ENTRY = 0x10 };

/* An ELF file with its tables at fixed places. Section 1 has all names, 2 the symbols, 3 the code
 * of the kernel k, which symbol 1 names. */
struct cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    Elf64_Sym symbols[SYMBOLS];
    char texts[TEXTS];
    size_t used;
};

static uint32_t put_text(struct cubin *cubin, const char *text)
{
    const size_t at = cubin->used, bytes = strlen(text) + 1;
    assert_true(at + bytes <= TEXTS);
    memcpy(cubin->texts + at, text, bytes);
    cubin->used += bytes;
    return (uint32_t)at;
}

static Elf64_Shdr *add_section(struct cubin *cubin, const char *name, uint32_t type, uint64_t size)
{
    Elf64_Shdr *section = &cubin->sections[cubin->header.e_shnum++];
    assert_true(cubin->header.e_shnum <= SECTIONS);
    *section = (Elf64_Shdr){.sh_name = put_text(cubin, name),
                            .sh_type = type,
                            .sh_offset = offsetof(struct cubin, symbols),
                            .sh_size = size};
    return section;
}

static void add_symbol(struct cubin *cubin, const char *name, unsigned type, unsigned other,
                       unsigned section)
{
    const size_t at = cubin->sections[2].sh_size / sizeof(Elf64_Sym);
    assert_true(at < SYMBOLS);
    cubin->symbols[at] = (Elf64_Sym){.st_name = put_text(cubin, name),
                                     .st_info = (uint8_t)ELF64_ST_INFO(STB_GLOBAL, type),
                                     .st_other = (uint8_t)other,
                                     .st_shndx = (uint16_t)section};
    cubin->sections[2].sh_size += sizeof(Elf64_Sym);
}

/* The sections that ptxas makes for sm_90 of a kernel that divides: a function of its own is in it.
 */
static struct cubin plain_cubin(void)
{
    struct cubin cubin = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                                     .e_type = ET_EXEC,
                                     .e_machine = EM_CUDA,
                                     .e_shoff = offsetof(struct cubin, sections),
                                     .e_shentsize = sizeof(Elf64_Shdr),
                                     .e_shstrndx = 1}};
    put_text(&cubin, "");
    cubin.header.e_shnum = 1;
    *add_section(&cubin, ".shstrtab", SHT_STRTAB, sizeof cubin.texts) =
        (Elf64_Shdr){.sh_name = 1,
                     .sh_type = SHT_STRTAB,
                     .sh_offset = offsetof(struct cubin, texts),
                     .sh_size = sizeof cubin.texts};
    add_section(&cubin, ".symtab", SHT_SYMTAB, sizeof(Elf64_Sym))->sh_link = 1;
    add_section(&cubin, ".text.k", SHT_PROGBITS, 128);
    add_section(&cubin, ".debug_frame", SHT_PROGBITS, 64);
    add_section(&cubin, ".rela.debug_frame", SHT_RELA, 48)->sh_info = 4;
    add_section(&cubin, ".rela.text.k", SHT_RELA, 0)->sh_info = 3;
    add_section(&cubin, ".note.nv.tkinfo", SHT_NOTE, 16);
    add_section(&cubin, ".nv.info", SHT_LOPROC, 16);
    add_section(&cubin, ".nv.info.k", SHT_LOPROC, 16);
    add_section(&cubin, ".nv.compat", SHT_LOPROC + 0x86, 16);
    add_section(&cubin, ".nv.callgraph", SHT_LOPROC + 1, 32);
    add_section(&cubin, ".nv.rel.action", SHT_LOPROC + 0xb, 16);
    add_section(&cubin, ".nv.constant0.k", SHT_PROGBITS, 64);
    add_section(&cubin, ".nv.constant2.k", SHT_PROGBITS, 20);
    add_section(&cubin, ".nv.shared.k", SHT_NOBITS, 1024); /* 15 */
    add_symbol(&cubin, "k", STT_FUNC, ENTRY, 3);
    add_symbol(&cubin, "$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath", STT_FUNC, 0, 3);
    add_symbol(&cubin, "$k$__internal_accurate_pow", STT_FUNC, 0, 3);
    add_symbol(&cubin, ".nv.reservedSmem.offset0", STT_OBJECT, 0, SHN_UNDEF);
    add_symbol(&cubin, "buffer", STT_OBJECT, 0, 15);
    return cubin;
}

static enum proto_unsaved unsaved(const struct cubin *cubin)
{
    return cubin_state_unsaved((const uint8_t *)cubin, sizeof *cubin);
}

static void kernels_alone_keep_nothing(void **state)
{
    (void)state;
    struct cubin cubin = plain_cubin();
    assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_CALLS);
    /* Blackwell's have all sections twice. */
    add_section(&cubin, ".nv.merc.rela.text.k", SHT_LOPROC + 0x82, 48);
    add_section(&cubin, ".nv.capmerc.text.k", SHT_LOPROC + 0x16, 48);
    assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_CALLS);
}

static void variables_and_constants_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t type;
    } cases[] = {{".nv.global", SHT_NOBITS},
                 {".nv.global.init", SHT_PROGBITS},
                 {".nv.constant3", SHT_PROGBITS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cubin cubin = plain_cubin();
        add_section(&cubin, cases[i].name, cases[i].type, 4);
        assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_VARIABLES);
    }
}

static void what_is_not_known_is_state(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t type;
    } cases[] = {{".nv.constant4", SHT_PROGBITS}, /* addresses of variables and functions */
                 {".nv.global.other", SHT_NOBITS}, {".nv.constant3.k", SHT_PROGBITS},
                 {".nv.uft", SHT_PROGBITS},        {"", SHT_PROGBITS},
                 {".text.k2", SHT_LOPROC + 40},    {".nv.info.k2", SHT_DYNSYM},
                 {".debug_line", SHT_RELA},        {".rela.debug_line", SHT_PROGBITS},
                 {".symtab", SHT_SYMTAB}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cubin cubin = plain_cubin();
        add_section(&cubin, cases[i].name, cases[i].type, 0);
        if (unsaved(&cubin) != PROTO_UNSAVED_NO_PTX)
            print_error("section '%s'\n", cases[i].name);
        assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_NO_PTX);
    }
    struct cubin cubin = plain_cubin();
    cubin.sections[2].sh_type = SHT_NULL; /* no symbols at all */
    assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_NO_PTX);
    cubin = plain_cubin();
    cubin.header.e_type = ET_REL;
    assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_NO_PTX);
    cubin = plain_cubin();
    cubin.header.e_machine = EM_X86_64;
    assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_NO_PTX);
}

/* Such code may store the address of a function, or of what another file defines. */
static void symbols_tell_of_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned type, other, section;
    } cases[] = {{"$k$f1", STT_FUNC, 0, 3},
                 {"$other$__internal_accurate_pow", STT_FUNC, 0, 3},
                 {"f1", STT_FUNC, ENTRY, 4},
                 {"f2", STT_FUNC, ENTRY, 0xfff0},
                 {"malloc", STT_FUNC, ENTRY, SHN_UNDEF},
                 {"vprintf", STT_NOTYPE, 0, SHN_UNDEF},
                 {"variable", STT_OBJECT, 0, SHN_UNDEF},
                 {"label", STT_NOTYPE, 0, 3},
                 {"absolute", STT_OBJECT, 0, SHN_ABS},
                 {"texture", STT_LOOS, 0, SHN_UNDEF}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cubin cubin = plain_cubin();
        add_symbol(&cubin, cases[i].name, cases[i].type, cases[i].other, cases[i].section);
        if (unsaved(&cubin) != PROTO_UNSAVED_NO_PTX)
            print_error("symbol '%s'\n", cases[i].name);
        assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_NO_PTX);
    }
}

static void relocations_of_code_and_constants_are_state(void **state)
{
    (void)state;
    static const uint32_t targets[] = {0, 3, 13, 14, 1000};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct cubin cubin = plain_cubin();
        add_section(&cubin, ".rel.nv.constant0.k", SHT_REL, 16)->sh_info = targets[i];
        assert_int_equal(unsaved(&cubin), PROTO_UNSAVED_NO_PTX);
    }
}

/* Every number of such a file is the client's; the sanitizers watch the bounds. */
static void damaged_cubins_are_read_within_bounds(void **state)
{
    (void)state;
    const struct cubin whole = plain_cubin();
    const size_t tables = offsetof(struct cubin, texts);
    for (size_t size = 0; size < sizeof whole; size += 7) {
        uint8_t *cut = malloc(size ? size : 1);
        assert_non_null(cut);
        memcpy(cut, &whole, size);
        if (size < tables)
            assert_int_equal(cubin_state_unsaved(cut, size), PROTO_UNSAVED_NO_PTX);
        else
            cubin_state_unsaved(cut, size);
        free(cut);
    }
    const size_t all = sizeof whole;
    uint8_t *bytes = malloc(all);
    assert_non_null(bytes);
    for (size_t at = 0; at < tables; at++) {
        static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
        for (size_t i = 0; i < sizeof values; i++) {
            memcpy(bytes, &whole, sizeof whole);
            bytes[at] = values[i];
            cubin_state_unsaved(bytes, sizeof whole);
        }
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_alone_keep_nothing),
        cmocka_unit_test(variables_and_constants_are_found),
        cmocka_unit_test(what_is_not_known_is_state),
        cmocka_unit_test(symbols_tell_of_addresses),
        cmocka_unit_test(relocations_of_code_and_constants_are_state),
        cmocka_unit_test(damaged_cubins_are_read_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
