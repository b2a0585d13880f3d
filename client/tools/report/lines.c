/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/report/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "common/messages.h"
#include "common/regular_file.h"

enum { INPUT_BYTES = 64 << 10 };

struct lines {
    const char *path;
    gzFile gzip; /* of a compressed file, or of one that is not */
    int fd;      /* of one by zstd; -1 */
    ZSTD_DStream *zstd;
    ZSTD_inBuffer input;
    size_t wants; /* what zstd said last: 0 between two frames */
    bool ended;
    size_t from, until; /* of what was decompressed, not taken yet */
    char compressed[INPUT_BYTES];
    char text[2 * LINES_BYTES_MAX];
};

/* ---- files ---- */

static bool is_zstd(int fd)
{
    static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    unsigned char begin[4];
    return pread(fd, begin, sizeof begin, 0) == sizeof begin && !memcmp(begin, magic, sizeof magic);
}

static bool open_form(struct lines *lines, int fd)
{
    if (is_zstd(fd)) {
        lines->fd = fd;
        lines->zstd = ZSTD_createDStream();
        return lines->zstd != NULL;
    }
    /* It reads what is not compressed as it is. */
    lines->gzip = gzdopen(fd, "rb");
    if (!lines->gzip)
        close(fd);
    return lines->gzip != NULL;
}

uint32_t lines_open(struct lines **out, const char *path, struct error *why)
{
    *out = NULL;
    int fd = regular_file_open(path, O_RDONLY);
    if (fd == -EACCES)
        return error_set(why, MESSAGE(report_denied), path, regular_file_reason(-fd));
    if (fd < 0)
        return error_set(why, MESSAGE(report_file), path, regular_file_reason(-fd));
    struct lines *lines = calloc(1, sizeof *lines);
    if (!lines) {
        close(fd);
        return error_set(why, MESSAGE(process_no_memory));
    }
    lines->path = path;
    lines->fd = -1;
    if (!open_form(lines, fd)) {
        lines_close(lines);
        return error_set(why, MESSAGE(process_no_memory));
    }
    *out = lines;
    return 0;
}

void lines_close(struct lines *lines)
{
    if (!lines)
        return;
    if (lines->gzip)
        gzclose(lines->gzip);
    ZSTD_freeDStream(lines->zstd);
    if (lines->fd >= 0)
        close(lines->fd);
    free(lines);
}

/* ---- bytes ---- */

static int damaged(const struct lines *lines, const char *text, struct error *why)
{
    error_set(why, MESSAGE(report_file), lines->path, text);
    return -1;
}

/* Returns 0 at the end of the file. */
static int input_fill(struct lines *lines, struct error *why)
{
    ssize_t got;
    do
        got = read(lines->fd, lines->compressed, sizeof lines->compressed);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return damaged(lines, strerror(errno), why);
    if (got == 0 && lines->wants)
        return damaged(lines, MESSAGE_TEXT(report_cut), why);
    lines->input = (ZSTD_inBuffer){.src = lines->compressed, .size = (size_t)got};
    return got > 0;
}

static long read_zstd(struct lines *lines, char *to, size_t room, struct error *why)
{
    ZSTD_outBuffer output = {.dst = to, .size = room};
    while (output.pos == 0) {
        if (lines->input.pos == lines->input.size) {
            int more = input_fill(lines, why);
            if (more <= 0)
                return more;
        }
        lines->wants = ZSTD_decompressStream(lines->zstd, &output, &lines->input);
        if (ZSTD_isError(lines->wants))
            return damaged(lines, ZSTD_getErrorName(lines->wants), why);
    }
    return (long)output.pos;
}

static long read_gzip(struct lines *lines, char *to, size_t room, struct error *why)
{
    int got = gzread(lines->gzip, to, (unsigned)room);
    int number = 0;
    const char *text = gzerror(lines->gzip, &number);
    if (got < 0 || number < 0)
        return damaged(lines, number == Z_ERRNO ? strerror(errno) : text, why);
    return got;
}

/* ---- lines ---- */

static int more(struct lines *lines, struct error *why)
{
    memmove(lines->text, lines->text + lines->from, lines->until - lines->from);
    lines->until -= lines->from;
    lines->from = 0;
    char *to = lines->text + lines->until;
    const size_t room = sizeof lines->text - lines->until;
    long got = lines->zstd ? read_zstd(lines, to, room, why) : read_gzip(lines, to, room, why);
    if (got > 0)
        lines->until += (size_t)got;
    lines->ended = got == 0;
    return got < 0 ? -1 : 0;
}

/* Leaves out the rest of a line that is too long. */
static int skip_line(struct lines *lines, struct error *why)
{
    for (;;) {
        const char *from = lines->text + lines->from;
        const char *end = memchr(from, '\n', lines->until - lines->from);
        lines->from = end ? (size_t)(end + 1 - lines->text) : lines->until;
        if (end || lines->ended)
            return 1;
        if (more(lines, why) < 0)
            return -1;
    }
}

int lines_next(struct lines *lines, const char **text, size_t *bytes, bool *whole,
               struct error *why)
{
    const char *end;
    for (;;) {
        *text = lines->text + lines->from;
        *bytes = lines->until - lines->from;
        end = memchr(*text, '\n', *bytes);
        if (end || lines->ended || *bytes > LINES_BYTES_MAX)
            break;
        if (more(lines, why) < 0)
            return -1;
    }
    *whole = end ? end - *text <= LINES_BYTES_MAX : *bytes <= LINES_BYTES_MAX;
    if (!end && !*whole) {
        *bytes = 0;
        return skip_line(lines, why);
    }
    if (!end && !*bytes)
        return 0;
    if (end)
        *bytes = (size_t)(end - *text);
    lines->from += *bytes + (end != NULL);
    return 1;
}

/* ---- names ---- */

static size_t without_ending(const char *name, size_t length, const char *ending)
{
    const size_t bytes = strlen(ending);
    return length > bytes && !memcmp(name + length - bytes, ending, bytes) ? length - bytes
                                                                           : length;
}

/* "", ".1", "-20261127", "-20261127-1764201600" */
static bool is_rotation(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        if (text[at] != '.' && text[at] != '-')
            return false;
        const size_t digits = strspn(text + at + 1, "0123456789");
        if (!digits)
            return false;
        at += 1 + digits;
    }
    return true;
}

bool lines_is_rotated(const char *name, const char *base)
{
    size_t length = strlen(name);
    length = without_ending(name, without_ending(name, length, ".gz"), ".zst");
    const size_t bytes = strlen(base);
    const char *dot = strrchr(base, '.');
    const size_t stem = dot ? (size_t)(dot - base) : bytes, ending = bytes - stem;
    if (length >= bytes && !memcmp(name, base, bytes))
        return is_rotation(name + bytes, length - bytes);
    return length >= bytes && !memcmp(name, base, stem) &&
           !memcmp(name + length - ending, base + stem, ending) &&
           is_rotation(name + stem, length - bytes);
}

bool lines_is_packed(const char *name, const char *base)
{
    static const char *const endings[] = {".xz", ".bz2", ".lzma", ".lz4", ".lz", ".Z", ".zip"};
    char unpacked[NAME_MAX + 1];
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t left = without_ending(name, length, endings[i]);
        snprintf(unpacked, sizeof unpacked, "%.*s", (int)left, name);
        if (left < length && lines_is_rotated(unpacked, base))
            return true;
    }
    return false;
}
