/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/cubin_state.h"

#include <stdbool.h>
#include <string.h>

#include "common/util.h"
#include "server/worker/image/cubin_file.h"

/* A kernel's mark among the bits of a symbol. ptxas 13.0 sets it on kernels and on no function. */
#define ENTRY_MARK 0x10

/* A longer one is looked at no further: a symbol must not cost more than it has bytes by far. */
#define KERNEL_NAME_MAX ((size_t)4096)

enum kind {
    KIND_UNKNOWN,
    KIND_TABLES, /* descriptions of other sections */
    KIND_DEBUG,  /* likewise, for debuggers: relocations of these reach no kernel */
    KIND_SYMBOLS,
    KIND_RELOCATIONS,
    KIND_CODE,
    KIND_KERNEL_CONSTANTS, /* parameters, literals and jump tables, which no program has a name for
                            */
    KIND_KERNEL_MEMORY,    /* shared and local memory, which end with the kernel */
    KIND_VARIABLES
};

struct section_name {
    const char *begins;
    bool whole; /* it is the name, not its beginning */
    enum kind kind;
};

/*
 * The sections of what ptxas and nvcc 13.0 make for sm_75 to sm_100 from kernels, functions and
 * variables of each sort. Not among them: .nv.constant4, which has addresses of variables and
 * functions.
 *
 * The .nv.merc sections repeat the others in another form.
 */
static const struct section_name names[] = {
    {".shstrtab", true, KIND_TABLES},
    {".strtab", true, KIND_TABLES},
    {".nv.info", true, KIND_TABLES},
    {".nv.info.", false, KIND_TABLES},
    {".nv.compat", true, KIND_TABLES},
    {".nv.callgraph", true, KIND_TABLES},
    {".nv.rel.action", true, KIND_TABLES},
    {".note.nv.", false, KIND_TABLES},
    {".nv.merc.", false, KIND_TABLES},
    {".nv.capmerc.text.", false, KIND_TABLES},
    {".debug_", false, KIND_DEBUG},
    {".nv_debug_", false, KIND_DEBUG},
    {".symtab", true, KIND_SYMBOLS},
    {".rel.", false, KIND_RELOCATIONS},
    {".rela.", false, KIND_RELOCATIONS},
    {".text.", false, KIND_CODE},
    {".nv.constant0.", false, KIND_KERNEL_CONSTANTS},
    {".nv.constant2.", false, KIND_KERNEL_CONSTANTS},
    {".nv.shared.", false, KIND_KERNEL_MEMORY},
    {".nv.local.", false, KIND_KERNEL_MEMORY},
    {".nv.global", true, KIND_VARIABLES},
    {".nv.global.init", true, KIND_VARIABLES},
    {".nv.constant3", true, KIND_VARIABLES},
};

/* The kind that the name says, if the type can be that of such a section. A driver may go by
 * either. */
static enum kind section_kind(const struct cubin_file *file, const Elf64_Shdr *section)
{
    enum kind kind = KIND_UNKNOWN;
    for (size_t i = 0; i < sizeof names / sizeof *names && kind == KIND_UNKNOWN; i++)
        if (names[i].whole
                ? cubin_file_name_equals(file->names, section->sh_name, names[i].begins, "")
                : cubin_file_name_begins(file->names, section->sh_name, names[i].begins))
            kind = names[i].kind;
    switch (section->sh_type) {
    case SHT_SYMTAB:
        return kind == KIND_SYMBOLS ? kind : KIND_UNKNOWN;
    case SHT_REL:
    case SHT_RELA:
        return kind == KIND_RELOCATIONS ? kind : KIND_UNKNOWN;
    case SHT_PROGBITS:
    case SHT_STRTAB:
    case SHT_NOTE:
    case SHT_NOBITS:
        return kind == KIND_SYMBOLS || kind == KIND_RELOCATIONS ? KIND_UNKNOWN : kind;
    default:
        return kind == KIND_TABLES && section->sh_type >= SHT_LOPROC &&
                       section->sh_type <= SHT_HIPROC
                   ? kind
                   : KIND_UNKNOWN;
    }
}

static enum kind kind_at(const struct cubin_file *file, uint64_t index)
{
    Elf64_Shdr section;
    return index && cubin_file_section(file, index, &section) ? section_kind(file, &section)
                                                              : KIND_UNKNOWN;
}

/* Relocations of code and constants may put an address there. Code without any has none but those
 * that it computes from its own place. */
static bool relocations_harmless(const struct cubin_file *file, const Elf64_Shdr *section)
{
    return section->sh_size == 0 || kind_at(file, section->sh_info) == KIND_DEBUG;
}

/* Whether it is one of NVIDIA's mathematical library, in the code of the kernel k:
 * "$k$__internal_accurate_pow". C++ keeps such names from programs. */
static bool is_library_function(const struct cubin_file *file, const Elf64_Sym *symbol,
                                struct cubin_span texts)
{
    static const char code[] = ".text.", library[] = "$__internal_";
    const size_t before = sizeof code - 1, behind = sizeof library - 1;
    struct cubin_span kernel, name;
    Elf64_Shdr section;
    if (!cubin_file_section(file, symbol->st_shndx, &section) ||
        section.sh_name > file->names.size || file->names.size - section.sh_name < before)
        return false;
    kernel.bytes = file->names.bytes + section.sh_name + before;
    kernel.size = strnlen((const char *)kernel.bytes,
                          min(file->names.size - section.sh_name - before, KERNEL_NAME_MAX));
    return cubin_file_cut(texts, symbol->st_name, 1 + kernel.size + behind, &name) &&
           name.bytes[0] == '$' && memcmp(name.bytes + 1, kernel.bytes, kernel.size) == 0 &&
           memcmp(name.bytes + 1 + kernel.size, library, behind) == 0;
}

/*
 * A function that is no kernel may have its address taken by code that counts from its own place,
 * without any other trace. Of ptxas's own functions, such as those that divide, no program has the
 * name.
 */
static bool function_harmless(const struct cubin_file *file, const Elf64_Sym *symbol,
                              struct cubin_span texts)
{
    return kind_at(file, symbol->st_shndx) == KIND_CODE &&
           ((symbol->st_other & ENTRY_MARK) ||
            cubin_file_name_begins(texts, symbol->st_name, "$__internal_") ||
            is_library_function(file, symbol, texts));
}

/* Shared memory that the system reserves is defined nowhere. So is a symbol without a name, which
 * ptxas leaves where a kernel's local memory has an address. */
static bool undefined_harmless(const Elf64_Sym *symbol, struct cubin_span texts)
{
    return cubin_file_name_equals(texts, symbol->st_name, "", "") ||
           cubin_file_name_begins(texts, symbol->st_name, ".nv.reservedSmem.");
}

static bool symbol_harmless(const struct cubin_file *file, const Elf64_Sym *symbol,
                            struct cubin_span texts)
{
    switch (ELF64_ST_TYPE(symbol->st_info)) {
    case STT_SECTION:
    case STT_FILE:
        return true;
    case STT_FUNC:
        return function_harmless(file, symbol, texts);
    case STT_NOTYPE:
    case STT_OBJECT:
        return symbol->st_shndx == SHN_UNDEF
                   ? undefined_harmless(symbol, texts)
                   : kind_at(file, symbol->st_shndx) == KIND_KERNEL_MEMORY;
    default: /* textures, surfaces and what else there may be */
        return false;
    }
}

/* Reading is not interrupted, and the image is somebody's: a table that takes long to read is no
 * compiler's. The largest kernels of PyTorch's libraries have some thousand. */
#define SYMBOLS_MAX (1u << 16)

static bool symbols_harmless(const struct cubin_file *file, const Elf64_Shdr *section)
{
    struct cubin_span symbols, texts, at;
    Elf64_Sym symbol;
    if (!cubin_file_symbols(file, section, &symbols, &texts) || symbols.size % sizeof symbol ||
        symbols.size / sizeof symbol > SYMBOLS_MAX)
        return false;
    for (uint64_t from = sizeof symbol; cubin_file_cut(symbols, from, sizeof symbol, &at);
         from += sizeof symbol) {
        memcpy(&symbol, at.bytes, sizeof symbol);
        if (!symbol_harmless(file, &symbol, texts))
            return false;
    }
    return true;
}

enum proto_unsaved cubin_state_unsaved(const uint8_t *cubin, size_t size)
{
    struct cubin_file file;
    Elf64_Shdr section;
    bool harmless = true;
    unsigned tables = 0;
    if (!cubin_file_open((struct cubin_span){cubin, size}, &file) ||
        file.header.e_type != ET_EXEC || file.header.e_machine != EM_CUDA)
        return PROTO_UNSAVED_NO_PTX;
    for (uint64_t i = 1; i < file.sections && cubin_file_section(&file, i, &section); i++) {
        const enum kind kind = section_kind(&file, &section);
        if (kind == KIND_VARIABLES)
            return PROTO_UNSAVED_VARIABLES;
        if (kind == KIND_SYMBOLS)
            harmless = harmless && tables++ == 0 && symbols_harmless(&file, &section);
        else if (kind == KIND_RELOCATIONS)
            harmless = harmless && relocations_harmless(&file, &section);
        else
            harmless = harmless && kind != KIND_UNKNOWN;
    }
    return harmless && tables == 1 ? PROTO_UNSAVED_CALLS : PROTO_UNSAVED_NO_PTX;
}
