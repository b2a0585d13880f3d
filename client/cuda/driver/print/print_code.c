/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/print/print_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/ptx_token.h"

static const char word[] = "vprintf";
enum { LETTERS = sizeof word - 1 };

/*
 * Our function, in one line. @ stands for the beginning of our names. It goes through the format
 * twice, as print_format.c does on the other side: the first time to measure the record, the second
 * time to write it. A record (print_ring.h) has a head, the arguments as they lay, the format, and
 * the text of each %s.
 *
 * ring, mask, nonce: of the ring's head. f: the next letter of the format. a: bytes of arguments
 * that were read. to: where the format's next letter goes, and more: where the next text goes, both
 * from the ring's beginning without end. w: this is the second time. The two masks of 64 bits have
 * a bit for each letter, from 0 and from 64 on.
 */
static const char function[] =
    ".global .align 8 .u64 @ring;"
    ".func (.param .b32 result) @print (.param .b64 format, .param .b64 arguments) {"
    " .reg .pred %p, %q, %w; .reg .b32 %c, %n, %i, %wide; .reg .b64 %ring, %mask, %nonce, %f, %a,"
    " %args, %to, %more, %at, %record, %size, %x, %y, %head, %format_bytes;"
    " ld.param.u64 %f, [format]; ld.param.u64 %args, [arguments]; ld.global.u64 %ring, [@ring];"
    /* CUDA's results: -1 for no format, -2 for an error of its own. */
    " mov.u32 %n, -1; setp.eq.u64 %p, %f, 0; @%p bra leave;"
    " mov.u32 %n, -2; setp.eq.u64 %p, %ring, 0; @%p bra leave;"
    " ld.global.u64 %mask, [%ring+8]; ld.global.u64 %nonce, [%ring+16]; add.u64 %ring, %ring, 64;"
    " setp.ne.u64 %w, %f, %f; mov.u64 %head, 0; mov.u64 %to, 0; mov.u64 %more, 0;"
    "again: mov.u32 %n, 0; mov.u64 %a, 0;"
    "letter: ld.u8 %c, [%f]; add.u64 %f, %f, 1; and.b64 %x, %to, %mask; add.u64 %x, %x, %ring;"
    " @%w st.global.u8 [%x], %c; add.u64 %to, %to, 1;"
    " setp.eq.u32 %p, %c, 0; @%p bra end; setp.ne.u32 %p, %c, 37; @%p bra letter;"
    " mov.u32 %wide, 0;"
    "part: ld.u8 %c, [%f]; setp.eq.u32 %p, %c, 0; @%p bra letter;"
    " add.u64 %f, %f, 1; and.b64 %x, %to, %mask; add.u64 %x, %x, %ring;"
    " @%w st.global.u8 [%x], %c; add.u64 %to, %to, 1;"
    " setp.ge.u32 %p, %c, 128; @%p bra letter; setp.ge.u32 %p, %c, 64; @%p bra high;"
    /* space # + - . 0 to 9 */
    " mov.u64 %x, 0x03ff680900000000; shr.u64 %x, %x, %c; and.b64 %x, %x, 1;"
    " setp.ne.u64 %p, %x, 0; @%p bra part;"
    " setp.ne.u32 %p, %c, 42; @%p bra letter; mov.u32 %i, 0; bra four;"
    "high: sub.u32 %i, %c, 64;"
    " setp.eq.u32 %p, %c, 104; @%p bra part;"
    /* j l t z */
    " mov.u64 %x, 0x0410140000000000; shr.u64 %y, %x, %i; and.b64 %y, %y, 1;"
    " setp.ne.u64 %p, %y, 0; @%p mov.u32 %wide, 1; @%p bra part;"
    /* A E F G a e f g p s */
    " mov.u64 %x, 0x000900e2000000e2; shr.u64 %y, %x, %i; and.b64 %y, %y, 1;"
    " setp.ne.u64 %p, %y, 0; @%p bra eight;"
    " mov.u32 %i, 1; setp.eq.u32 %p, %c, 99; @%p bra four;"
    /* X d i o u x */
    " sub.u32 %i, %c, 64; mov.u64 %x, 0x0120821001000000; shr.u64 %y, %x, %i; and.b64 %y, %y, 1;"
    " setp.eq.u64 %p, %y, 0; @%p bra letter;"
    " setp.ne.u32 %p, %wide, 0; @%p bra eight; mov.u32 %i, 1;"
    /* i: whether the letter ends the conversion */
    "four: add.u64 %a, %a, 3; and.b64 %a, %a, -4; add.u32 %n, %n, 1; add.u64 %at, %args, %a;"
    " add.u64 %x, %head, %a; and.b64 %x, %x, %mask; add.u64 %x, %x, %ring; add.u64 %a, %a, 4;"
    " @%w ld.u32 %c, [%at]; @%w st.global.u32 [%x], %c;"
    " setp.eq.u32 %p, %i, 0; @%p bra part; bra letter;"
    "eight: add.u64 %a, %a, 7; and.b64 %a, %a, -8; add.u32 %n, %n, 1; add.u64 %at, %args, %a;"
    " add.u64 %x, %head, %a; and.b64 %x, %x, %mask; add.u64 %x, %x, %ring; add.u64 %a, %a, 8;"
    " ld.u64 %at, [%at]; @%w st.global.u64 [%x], %at;"
    " setp.ne.u32 %p, %c, 115; @%p bra letter;"
    "text: mov.u32 %c, 0; setp.ne.u64 %p, %at, 0; @%p ld.u8 %c, [%at]; add.u64 %at, %at, 1;"
    " and.b64 %x, %more, %mask; add.u64 %x, %x, %ring; @%w st.global.u8 [%x], %c;"
    " add.u64 %more, %more, 1; setp.ne.u32 %p, %c, 0; @%p bra text; bra letter;"
    "end: @%w bra done;"
    " add.u64 %a, %a, 7; and.b64 %a, %a, -8; mov.u64 %format_bytes, %to;"
    " add.u64 %size, %a, %to; add.u64 %size, %size, %more; add.u64 %size, %size, 23;"
    " and.b64 %size, %size, -8;"
    /* One that is larger than the ring is not printed. */
    " mov.u32 %n, -2; setp.gt.u64 %p, %size, %mask; @%p bra leave;"
    " atom.global.add.u64 %record, [%ring+-64], %size;"
    " add.u64 %head, %record, 16; add.u64 %to, %head, %a; add.u64 %more, %to, %format_bytes;"
    " and.b64 %x, %record, %mask; add.u64 %x, %x, %ring;"
    " cvt.u32.u64 %c, %size; st.global.u32 [%x+8], %c; cvt.u32.u64 %c, %a;"
    " st.global.u32 [%x+12], %c;"
    " ld.param.u64 %f, [format]; setp.eq.u64 %w, %f, %f; bra again;"
    /* The whole record is there before its tag. */
    "done: membar.sys; and.b64 %x, %record, %mask; add.u64 %x, %x, %ring;"
    " add.u64 %y, %record, %nonce; st.volatile.global.u64 [%x], %y;"
    "leave: st.param.b32 [result], %n; ret; } ";

/* A beginning of names that the text does not have. It begins like no name of the server's. */
static void choose_names(const char *text, size_t length, char *name, size_t size)
{
    unsigned number = 0;
    do
        snprintf(name, size, "gpushare_print%u_", number++);
    while (memmem(text, length, name, strlen(name)));
}

static void write_function(FILE *to, const char *name)
{
    for (const char *at = function; *at; at++)
        if (*at == '@' && at[1] != '%')
            (void)fputs(name, to);
        else
            (void)fputc(*at, to);
}

/* A text on its way to another one. */
struct rewriting {
    const char *text;
    const char *name;
    FILE *to;
    uint32_t copied;   /* bytes of the text that were copied or left out */
    uint32_t declared; /* where the declaration begins that is being read */
    bool declares, of_ours, any;
};

static void copy_up_to(struct rewriting *rewriting, uint32_t end)
{
    (void)fwrite(rewriting->text + rewriting->copied, 1, end - rewriting->copied, rewriting->to);
    rewriting->copied = end;
}

/* Leaves an external declaration out, but not the ends of its lines. Ours takes the place of the
 * first: a function has to stand before its calls. */
static void replace_declaration(struct rewriting *rewriting, uint32_t end)
{
    copy_up_to(rewriting, rewriting->declared);
    if (!rewriting->any)
        write_function(rewriting->to, rewriting->name);
    for (; rewriting->copied < end; rewriting->copied++)
        if (rewriting->text[rewriting->copied] == '\n')
            (void)fputc('\n', rewriting->to);
    rewriting->any = true;
}

static bool is_text(const struct rewriting *rewriting, const struct ptx_token *token,
                    const char *text)
{
    size_t length = strlen(text);
    return token->end - token->start == length &&
           memcmp(rewriting->text + token->start, text, length) == 0;
}

static void take_token(struct rewriting *rewriting, const struct ptx_token *token)
{
    bool ours = token->kind == PTX_TOKEN_WORD && is_text(rewriting, token, word);
    if (token->kind == PTX_TOKEN_DOT && is_text(rewriting, token, ".extern")) {
        rewriting->declares = true;
        rewriting->of_ours = false;
        rewriting->declared = token->start;
    } else if (rewriting->declares) {
        rewriting->of_ours |= ours;
        if (!is_text(rewriting, token, ";"))
            return;
        rewriting->declares = false;
        if (rewriting->of_ours)
            replace_declaration(rewriting, token->end);
    } else if (ours) {
        copy_up_to(rewriting, token->start);
        (void)fprintf(rewriting->to, "%sprint", rewriting->name);
        rewriting->copied = token->end;
    }
}

/* Without an external declaration the name is a function of the text's own, or none: the text stays
 * as it is. So does one whose tokens nobody knows. */
static int rewrite(const char *text, uint32_t length, struct print_code *code)
{
    char name[32], *out = NULL;
    size_t bytes = 0;
    choose_names(text, length, name, sizeof name);
    struct rewriting rewriting = {.text = text, .name = name, .to = open_memstream(&out, &bytes)};
    if (!rewriting.to)
        return -ENOMEM;
    struct ptx_lexer lexer;
    struct ptx_token token;
    ptx_lexer_init(&lexer, text, length);
    for (token = ptx_lexer_next(&lexer); token.kind != PTX_TOKEN_END && token.kind != PTX_TOKEN_BAD;
         token = ptx_lexer_next(&lexer))
        take_token(&rewriting, &token);
    copy_up_to(&rewriting, length);
    bool failed = ferror(rewriting.to);
    failed |= fclose(rewriting.to) != 0;
    if (failed || !rewriting.any || token.kind == PTX_TOKEN_BAD) {
        free(out);
        return failed ? -ENOMEM : 0;
    }
    code->text = out;
    code->bytes = bytes;
    snprintf(code->ring, sizeof code->ring, "%sring", name);
    return 0;
}

int print_code_make(const char *text, size_t length, struct print_code *code)
{
    *code = (struct print_code){.text = NULL};
    bool may = length <= UINT32_MAX && memmem(text, length, word, LETTERS);
    return may ? rewrite(text, (uint32_t)length, code) : 0;
}
