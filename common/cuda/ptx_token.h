/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_token: cuts PTX text into tokens. It reads only [text, text + length), needs no NUL at the
 * end, and allocates nothing. A text that is no token gives PTX_TOKEN_BAD. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_PTX_TOKEN_H
#define GPUSHARE_COMMON_CUDA_PTX_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_WORD,    /* identifier: %r1, foo, $L__BB0_1, sm_90 */
    PTX_TOKEN_DOT,     /* directive or modifier with its dot: .global, .v4, .shared::cta */
    PTX_TOKEN_INTEGER, /* value */
    PTX_TOKEN_FLOAT32, /* value: the bits of a binary32 (0f3F800000) */
    PTX_TOKEN_FLOAT64, /* value: the bits of a binary64 (0d..., 1.5) */
    PTX_TOKEN_STRING,  /* with its quotes */
    PTX_TOKEN_PUNCT,   /* one character */
    PTX_TOKEN_BAD,
};

struct ptx_token {
    enum ptx_token_kind kind;
    uint32_t start, end; /* byte offsets in the text */
    uint32_t line;       /* from 1 */
    uint64_t value;
};

struct ptx_lexer {
    const char *text;
    uint32_t length;
    uint32_t at, line;
};

/* Begins at the start of a text, which stays the caller's and must outlive the lexer. */
void ptx_lexer_init(struct ptx_lexer *lexer, const char *text, uint32_t length);
/* Returns the next token; PTX_TOKEN_END, as often as it is called, at the end of the text. */
struct ptx_token ptx_lexer_next(struct ptx_lexer *lexer);

#endif
