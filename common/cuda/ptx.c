/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: no library reads PTX. NVIDIA's compiler returns a cubin, and LLVM only writes PTX.
 */
#include "common/cuda/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "common/cuda/ptx_reader.h"
#include "common/messages.h"

static uint32_t slice_number(const char *text, uint32_t length, uint32_t *at)
{
    uint32_t n = 0;
    /* The bound keeps n from overflowing. No version and no target has so many digits. */
    for (; *at < length && text[*at] >= '0' && text[*at] <= '9' && n < 100000; ++*at)
        n = n * 10 + (uint32_t)(text[*at] - '0');
    return n;
}

static void read_version(struct ptx_reader *r)
{
    const char *text = r->lexer.text + r->token.start;
    uint32_t length = r->token.end - r->token.start, at = 0;
    uint32_t major = slice_number(text, length, &at);
    uint32_t minor = at < length && text[at] == '.' ? (at++, slice_number(text, length, &at)) : 0;
    if (r->token.kind != PTX_TOKEN_FLOAT64 || at != length || minor > 9 || major > 99)
        ptx_unexpected(r, PTX_WANTED_VERSION);
    r->module->version = major * 10 + minor;
    ptx_advance(r);
}

static void read_target(struct ptx_reader *r)
{
    do {
        const char *name = ptx_slice(r, r->token.start, r->token.end);
        if (r->token.kind != PTX_TOKEN_WORD || !name) {
            ptx_unexpected(r, PTX_WANTED_TARGET);
            return;
        }
        uint32_t at = 3;
        if (strncmp(name, "sm_", 3) == 0) {
            r->module->target = slice_number(name, (uint32_t)strlen(name), &at);
            r->module->target_name = name;
        }
        ptx_advance(r);
    } while (ptx_accept(r, ','));
}

/* Skips .section .debug_info { ... }, which is DWARF. Its braces don't nest. */
static void skip_section(struct ptx_reader *r)
{
    while (r->token.kind != PTX_TOKEN_END && !ptx_at(r, '{'))
        ptx_advance(r);
    while (r->token.kind != PTX_TOKEN_END && !ptx_at(r, '}'))
        ptx_advance(r);
    ptx_expect(r, '}');
}

static void read_threads(struct ptx_reader *r, struct ptx_function *f)
{
    for (int i = 0; i < 3; i++)
        f->max_threads[i] = 1;
    for (int i = 0; i < 3; i++) {
        f->max_threads[i] = (uint32_t)ptx_read_integer(r, 1u << 20);
        if (!ptx_accept(r, ','))
            break;
    }
}

/* Reads the directives between parameters and body: .maxntid and the like. */
static void read_performance(struct ptx_reader *r, struct ptx_function *f)
{
    while (r->token.kind == PTX_TOKEN_DOT) {
        if (ptx_at_dot(r, ".maxntid") || ptx_at_dot(r, ".reqntid")) {
            f->required_threads = ptx_at_dot(r, ".reqntid");
            ptx_advance(r);
            read_threads(r, f);
        } else if (ptx_accept_dot(r, ".noreturn")) {
            f->noreturn = true;
        } else if (ptx_accept_dot(r, ".pragma")) {
            while (r->token.kind == PTX_TOKEN_STRING || ptx_at(r, ','))
                ptx_advance(r);
            ptx_accept(r, ';');
        } else if (ptx_at_dot(r, ".minnctapersm") || ptx_at_dot(r, ".maxnctapersm") ||
                   ptx_at_dot(r, ".maxnreg") || ptx_at_dot(r, ".abi_preserve") ||
                   ptx_at_dot(r, ".abi_preserve_control")) {
            ptx_advance(r);
            ptx_read_integer(r, UINT32_MAX);
        } else {
            /* Clusters change the meaning of a kernel, so these directives must not be skipped. */
            ptx_unknown_directive(r);
        }
    }
}

static void declare_function(struct ptx_reader *r, struct ptx_function *f)
{
    struct ptx_name *n = ptx_declare(r, f->name, PTX_NAME_FUNCTION, f, true);
    if (!n || n->object == f || r->failed)
        return;
    const struct ptx_function *old = n->object;
    if (old->entry != f->entry)
        ptx_fail(r, f->line, MESSAGE(ptx_declared_twice), f->name);
}

static void define_function(struct ptx_reader *r, struct ptx_function *f)
{
    struct ptx_name *n = ptx_lookup(r, 0, f->name, strlen(f->name), 1u << PTX_NAME_FUNCTION);
    if (!n)
        return;
    const struct ptx_function *old = n->object;
    if (old != f && old->defined)
        ptx_fail(r, f->line, MESSAGE(ptx_defined_twice), f->name);
    f->defined = true;
    n->object = f;
}

static void read_function(struct ptx_reader *r, enum ptx_linkage linkage, uint32_t start,
                          bool entry)
{
    struct ptx_function *f = ptx_new(r, sizeof(*f));
    const struct ptx_function **slot = ptx_list_add(r, &r->functions, sizeof(*slot));
    if (!f || !slot)
        return;
    *slot = f;
    *f = (struct ptx_function){.entry = entry, .linkage = linkage, .start = start, .name = ""};
    f->id = r->functions.count - 1;
    f->line = r->token.line;
    ptx_advance(r);
    ptx_scope_push(r);
    if (ptx_accept_dot(r, ".attribute")) {
        while (r->token.kind != PTX_TOKEN_END && !ptx_accept(r, ')'))
            ptx_advance(r);
    }
    if (ptx_at(r, '(') && !entry)
        ptx_read_params(r, f, true);
    if (r->token.kind != PTX_TOKEN_WORD) {
        ptx_unexpected(r, PTX_WANTED_FUNCTION);
        return;
    }
    const char *name = ptx_slice(r, r->token.start, r->token.end);
    if (!name)
        return;
    f->name = name;
    ptx_advance(r);
    if (ptx_at(r, '('))
        ptx_read_params(r, f, false);
    read_performance(r, f);
    uint32_t inner = r->scope;
    r->scope = 0;
    declare_function(r, f);
    r->scope = inner;
    if (ptx_at(r, '{')) {
        define_function(r, f);
        r->function = f;
        ptx_read_body(r, f);
        r->function = NULL;
    } else {
        ptx_expect(r, ';');
    }
    f->end = r->last_end;
    r->scope = 0;
}

static enum ptx_linkage read_linkage(struct ptx_reader *r)
{
    static const struct {
        const char *name;
        enum ptx_linkage linkage;
    } all[] = {{".visible", PTX_LINK_VISIBLE},
               {".extern", PTX_LINK_EXTERN},
               {".weak", PTX_LINK_WEAK},
               {".common", PTX_LINK_COMMON}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (ptx_accept_dot(r, all[i].name))
            return all[i].linkage;
    }
    return PTX_LINK_NONE;
}

static void read_address_size(struct ptx_reader *r)
{
    uint32_t line = r->token.line;
    uint64_t bits = ptx_read_integer(r, UINT32_MAX);
    if (!r->failed && bits != 64)
        ptx_fail(r, line, MESSAGE(ptx_address_size), (unsigned long long)bits);
}

static void skip_file(struct ptx_reader *r)
{
    while (r->token.kind == PTX_TOKEN_INTEGER || r->token.kind == PTX_TOKEN_STRING ||
           ptx_at(r, ','))
        ptx_advance(r);
}

static void skip_pragma(struct ptx_reader *r)
{
    while (r->token.kind != PTX_TOKEN_END && !ptx_at(r, ';'))
        ptx_advance(r);
    ptx_expect(r, ';');
}

static void read_top(struct ptx_reader *r)
{
    uint32_t start = r->token.start;
    if (ptx_accept_dot(r, ".version"))
        read_version(r);
    else if (ptx_accept_dot(r, ".target"))
        read_target(r);
    else if (ptx_accept_dot(r, ".address_size"))
        read_address_size(r);
    else if (ptx_accept_dot(r, ".file"))
        skip_file(r);
    else if (ptx_accept_dot(r, ".section"))
        skip_section(r);
    else if (ptx_accept_dot(r, ".pragma"))
        skip_pragma(r);
    else if (ptx_accept(r, ';'))
        return;
    else {
        enum ptx_linkage linkage = read_linkage(r);
        enum ptx_space space = ptx_space_at(r);
        if (ptx_at_dot(r, ".entry") || ptx_at_dot(r, ".func"))
            read_function(r, linkage, start, ptx_at_dot(r, ".entry"));
        else if (space != PTX_SPACE_NONE && space != PTX_SPACE_REG)
            ptx_read_variables(r, linkage, start);
        else if (r->token.kind == PTX_TOKEN_DOT) {
            ptx_unknown_directive(r);
        } else {
            ptx_unexpected(r, PTX_WANTED_DIRECTIVE);
        }
    }
}

static void link_definitions(struct ptx_reader *r)
{
    const struct ptx_module *m = r->module;
    for (uint32_t i = 0; i < m->function_count; i++) {
        struct ptx_function *f = (struct ptx_function *)m->functions[i];
        struct ptx_name *n = ptx_lookup(r, 0, f->name, strlen(f->name), 1u << PTX_NAME_FUNCTION);
        const struct ptx_function *d = n ? n->object : NULL;
        f->definition = f->defined ? f : d && d->defined ? d : NULL;
    }
}

static void check_header(struct ptx_reader *r)
{
    if (!r->failed && !r->module->version)
        ptx_fail(r, 1, MESSAGE(ptx_version_missing));
    if (!r->failed && !r->module->target)
        ptx_fail(r, 1, MESSAGE(ptx_target_missing));
}

uint32_t ptx_read(const char *text, size_t length, struct ptx_module **module, struct error *why)
{
    const struct ptx_limits limits = {.bytes = SIZE_MAX};
    return ptx_read_within(text, length, &limits, module, why);
}

uint32_t ptx_read_within(const char *text, size_t length, const struct ptx_limits *limits,
                         struct ptx_module **module, struct error *why)
{
    struct ptx_reader r = {.why = why, .limits = limits};
    *module = NULL;
    struct ptx_arena *arena = ptx_arena_create(limits->bytes);
    r.module = arena ? ptx_arena_alloc(arena, sizeof(*r.module)) : NULL;
    if (!r.module) {
        bool exceeded = arena && ptx_arena_exceeded(arena);
        ptx_arena_destroy(arena);
        return exceeded ? error_set(why, MESSAGE(ptx_memory_max), limits->bytes)
                        : error_set(why, MESSAGE(ptx_no_memory));
    }
    r.module->arena = arena;
    if (hash_key_make(&r.key) < 0)
        ptx_fail(&r, 0, MESSAGE(ptx_no_random_numbers));
    if (length > PTX_TEXT_BYTES)
        ptx_fail(&r, 0, MESSAGE(ptx_length_max), length);
    ptx_lexer_init(&r.lexer, text, length > PTX_TEXT_BYTES ? 0 : (uint32_t)length);
    ptx_list_add(&r, &r.scopes, sizeof(uint32_t));
    ptx_advance(&r);
    while (!r.failed && r.token.kind != PTX_TOKEN_END)
        read_top(&r);
    check_header(&r);
    r.module->variable_count = r.variables.count;
    r.module->variables = ptx_list_keep(&r, &r.variables, sizeof(void *));
    r.module->function_count = r.functions.count;
    r.module->functions = ptx_list_keep(&r, &r.functions, sizeof(void *));
    if (!r.failed)
        link_definitions(&r);
    struct ptx_list *const lists[] = {&r.scopes, &r.instructions, &r.labels, &r.body_variables,
                                      &r.label_uses};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        ptx_list_drop(&r, lists[i]);
    ptx_arena_return(arena, r.name_capacity * sizeof(*r.names));
    free(r.names);
    if (r.failed) {
        ptx_arena_destroy(arena);
        return why->number;
    }
    r.module->memory = ptx_arena_used(arena);
    *module = r.module;
    return 0;
}

void ptx_destroy(struct ptx_module *module)
{
    if (module)
        ptx_arena_destroy(module->arena);
}

const struct ptx_variable *ptx_find_variable(const struct ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->variable_count; i++) {
        if (strcmp(module->variables[i]->name, name) == 0)
            return module->variables[i];
    }
    return NULL;
}

uint64_t ptx_param_offset(const struct ptx_function *function, uint32_t index)
{
    return index < function->param_count ? function->params[index]->offset : function->param_end;
}
