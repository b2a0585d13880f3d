/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/ptx_scan.h"

#include <stdbool.h>
#include <string.h>

#include "common/cuda/ptx_token.h"

/* Goes through the words of PTX without knowing its grammar. */
struct scan {
    const char *text;
    struct ptx_token before; /* the token before this one */
    uint32_t depth;          /* of braces */
    bool instruction;        /* modifiers of an instruction may follow without a blank */
};

static bool token_is(const struct scan *scan, const struct ptx_token *token, const char *word)
{
    size_t length = strlen(word);
    return token->end - token->start == length &&
           memcmp(scan->text + token->start, word, length) == 0;
}

/*
 * A word at the beginning of a statement is an opcode. After a guard (@p ld) two words follow one
 * another. No semicolon ends .loc and .file; they end with a number or a string.
 */
static bool is_opcode(const struct scan *scan, bool guarded)
{
    const struct ptx_token *before = &scan->before;
    return scan->depth > 0 && (guarded || token_is(scan, before, ";") ||
                               token_is(scan, before, "{") || token_is(scan, before, "}") ||
                               token_is(scan, before, ":") || before->kind == PTX_TOKEN_INTEGER);
}

/* A space after .ptr, as in .param .u64 .ptr .global, only says where a pointer points. */
static bool is_declaration(const struct scan *scan, const struct ptx_token *token)
{
    bool space = token_is(scan, token, ".global") || token_is(scan, token, ".const") ||
                 token_is(scan, token, ".tex");
    bool modifier = scan->instruction && scan->before.end == token->start;
    bool pointer = scan->before.kind == PTX_TOKEN_DOT && token_is(scan, &scan->before, ".ptr");
    return token->kind == PTX_TOKEN_DOT && space && !modifier && !pointer;
}

uint32_t ptx_scan_declaration(const char *text, size_t length)
{
    struct scan scan = {.text = text};
    struct ptx_lexer lexer;
    bool guard = false, guarded = false; /* the last token was @; it was the register after @ */
    if (length > UINT32_MAX)
        return 1;
    ptx_lexer_init(&lexer, text, (uint32_t)length);
    for (;;) {
        struct ptx_token token = ptx_lexer_next(&lexer);
        if (token.kind == PTX_TOKEN_END)
            return 0;
        /* A macro could stand for anything. */
        if (token.kind == PTX_TOKEN_BAD || token_is(&scan, &token, "#") ||
            is_declaration(&scan, &token))
            return token.line;
        bool word = token.kind == PTX_TOKEN_WORD;
        scan.instruction = word ? is_opcode(&scan, guarded)
                                : scan.instruction && token.kind == PTX_TOKEN_DOT &&
                                      scan.before.end == token.start;
        guarded = word && guard;
        guard = token_is(&scan, &token, "@") || (guard && token_is(&scan, &token, "!"));
        scan.depth += token_is(&scan, &token, "{");
        scan.depth -= scan.depth && token_is(&scan, &token, "}");
        scan.before = token;
    }
}
