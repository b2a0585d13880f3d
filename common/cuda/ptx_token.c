/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/ptx_token.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void ptx_lexer_init(struct ptx_lexer *lexer, const char *text, uint32_t length)
{
    *lexer = (struct ptx_lexer){.text = text, .length = length, .line = 1};
}

static char peek_char(const struct ptx_lexer *lx, uint32_t ahead)
{
    return lx->length - lx->at > ahead ? lx->text[lx->at + ahead] : '\0';
}

/* ctype.h depends on the locale of the process; PTX does not. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The manual does not say whether a carriage return alone ends a line, and code could hide behind
 * it. Returns false there. */
static bool skip_line(struct ptx_lexer *lx)
{
    for (; lx->at < lx->length && peek_char(lx, 0) != '\n'; lx->at++)
        if (peek_char(lx, 0) == '\r' && lx->at + 1 < lx->length && peek_char(lx, 1) != '\n')
            return false;
    return true;
}

/* Returns false if a comment does not end. */
static bool skip_blank(struct ptx_lexer *lx)
{
    while (lx->at < lx->length) {
        char c = peek_char(lx, 0);
        if (c == '\n') {
            lx->line++;
            lx->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\0') {
            lx->at++;
        } else if (c == '/' && peek_char(lx, 1) == '/') {
            if (!skip_line(lx))
                return false;
        } else if (c == '/' && peek_char(lx, 1) == '*') {
            lx->at += 2;
            while (lx->at < lx->length && !(peek_char(lx, 0) == '*' && peek_char(lx, 1) == '/')) {
                lx->line += lx->text[lx->at] == '\n';
                lx->at++;
            }
            if (lx->at >= lx->length)
                return false;
            lx->at += 2;
        } else {
            return true;
        }
    }
    return true;
}

static void lex_hex_float(struct ptx_lexer *lx, struct ptx_token *token, int digits)
{
    lx->at += 2;
    for (int i = 0; i < digits; i++, lx->at++) {
        int v = hex_value(peek_char(lx, 0));
        if (v < 0) {
            token->kind = PTX_TOKEN_BAD;
            return;
        }
        token->value = token->value << 4 | (uint64_t)v;
    }
    token->kind = digits == 8 ? PTX_TOKEN_FLOAT32 : PTX_TOKEN_FLOAT64;
}

static void lex_digits(struct ptx_lexer *lx, struct ptx_token *token, unsigned base)
{
    uint64_t value = 0;
    bool any = false;
    for (;; lx->at++, any = true) {
        int v = hex_value(peek_char(lx, 0));
        if (v < 0 || (unsigned)v >= base)
            break;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (uint64_t)v, &value))
            token->kind = PTX_TOKEN_BAD;
    }
    if (!any)
        token->kind = PTX_TOKEN_BAD;
    token->value = value;
}

static void lex_decimal_float(struct ptx_lexer *lx, struct ptx_token *token)
{
    char digits[64];
    size_t n = 0;
    while (n < sizeof(digits) - 1) {
        char c = peek_char(lx, 0);
        bool sign = (c == '-' || c == '+') && n && (digits[n - 1] == 'e' || digits[n - 1] == 'E');
        if (!is_digit(c) && c != '.' && c != 'e' && c != 'E' && !sign)
            break;
        digits[n++] = c;
        lx->at++;
    }
    digits[n] = '\0';
    char *end;
    double value = strtod(digits, &end);
    token->kind = *end ? PTX_TOKEN_BAD : PTX_TOKEN_FLOAT64;
    memcpy(&token->value, &value, sizeof(value));
}

static void lex_number(struct ptx_lexer *lx, struct ptx_token *token)
{
    char c = peek_char(lx, 1);
    token->kind = PTX_TOKEN_INTEGER;
    if (peek_char(lx, 0) == '0' && (c == 'f' || c == 'F')) {
        lex_hex_float(lx, token, 8);
        return;
    }
    if (peek_char(lx, 0) == '0' && (c == 'd' || c == 'D')) {
        lex_hex_float(lx, token, 16);
        return;
    }
    if (peek_char(lx, 0) == '0' && (c == 'x' || c == 'X')) {
        lx->at += 2;
        lex_digits(lx, token, 16);
    } else if (peek_char(lx, 0) == '0' && (c == 'b' || c == 'B')) {
        lx->at += 2;
        lex_digits(lx, token, 2);
    } else {
        struct ptx_lexer mark = *lx;
        while (is_digit(peek_char(lx, 0)))
            lx->at++;
        char next = peek_char(lx, 0);
        bool real = (next == '.' && is_digit(peek_char(lx, 1))) || next == 'e' || next == 'E';
        *lx = mark;
        if (real)
            lex_decimal_float(lx, token);
        else
            lex_digits(lx, token, peek_char(lx, 0) == '0' && is_digit(c) ? 8 : 10);
    }
    if (peek_char(lx, 0) == 'U' || peek_char(lx, 0) == 'u')
        lx->at++;
}

static void lex_string(struct ptx_lexer *lx, struct ptx_token *token)
{
    token->kind = PTX_TOKEN_STRING;
    for (lx->at++; lx->at < lx->length && peek_char(lx, 0) != '"'; lx->at++) {
        if (peek_char(lx, 0) == '\n')
            break;
        if (peek_char(lx, 0) != '\\' || peek_char(lx, 1) == '\n')
            continue;
        /* The manual does not say where a string with \" ends, and code could hide behind it. */
        if (peek_char(lx, 1) == '"')
            break;
        lx->at++;
    }
    if (lx->at >= lx->length || peek_char(lx, 0) != '"') {
        lx->at = min(lx->at, lx->length);
        token->kind = PTX_TOKEN_BAD;
        return;
    }
    lx->at++;
}

struct ptx_token ptx_lexer_next(struct ptx_lexer *lx)
{
    struct ptx_token token = {.kind = PTX_TOKEN_END};
    bool whole = skip_blank(lx);
    token.line = lx->line;
    token.start = token.end = lx->at;
    if (!whole)
        token.kind = PTX_TOKEN_BAD;
    if (!whole || lx->at >= lx->length)
        return token;
    char c = peek_char(lx, 0);
    if (is_digit(c)) {
        lex_number(lx, &token);
    } else if (c == '"') {
        lex_string(lx, &token);
    } else if (is_word(c) || (c == '%' && is_word(peek_char(lx, 1)))) {
        token.kind = PTX_TOKEN_WORD;
        for (lx->at++; is_word(peek_char(lx, 0)); lx->at++)
            ;
    } else if (c == '.' && is_word(peek_char(lx, 1))) {
        token.kind = PTX_TOKEN_DOT;
        for (lx->at++;; lx->at++) {
            if (peek_char(lx, 0) == ':' && peek_char(lx, 1) == ':' && is_word(peek_char(lx, 2)))
                lx->at++;
            else if (!is_word(peek_char(lx, 0)))
                break;
        }
    } else {
        token.kind = (unsigned char)c < 0x80 && c > ' ' ? PTX_TOKEN_PUNCT : PTX_TOKEN_BAD;
        lx->at++;
    }
    token.end = lx->at;
    return token;
}
