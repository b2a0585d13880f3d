/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * lines: reads files of lines, as they are or compressed by gzip or zstd, whatever they are called.
 * One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_REPORT_LINES_H
#define GPUSHARE_CLIENT_TOOLS_REPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum { LINES_BYTES_MAX = 64 << 10 };

struct lines;

/* Opens a file. Returns 0, or an error number that *why explains; *lines is NULL then. */
uint32_t lines_open(struct lines **lines, const char *path, struct error *why);

/* Reads the next line without its newline; it is valid until the next call. *whole: false for one
 * that is too long, of which *bytes have a part. Returns 1; 0 at the end; or -1, and *why says why
 * the rest of the file can't be read. */
int lines_next(struct lines *lines, const char **text, size_t *bytes, bool *whole,
               struct error *why);

void lines_close(struct lines *lines);

/* Whether a file of that name may be `base` after logrotate has moved and maybe compressed it:
 * "a.jsonl.1", "a.jsonl-20261127.gz", "a-20261127.jsonl.zst"; or is `base` itself. Both without
 * folders. */
bool lines_is_rotated(const char *name, const char *base);

/* Whether it may be such a file, compressed in a way that lines_open can't read: "a.jsonl.1.xz". */
bool lines_is_packed(const char *name, const char *base);

#endif
