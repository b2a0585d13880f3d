/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* lines, moment and sums of `gpusharectl report`: files as logrotate leaves them, and moments as
 * people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "client/tools/report/lines.h"
#include "client/tools/report/moment.h"
#include "client/tools/report/sums.h"

enum { MANY = 20000 };

static char path[] = "/tmp/lines-XXXXXX";

static void write_file(const void *data, size_t bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Lines "line 0" to "line MANY - 1", the last one without an end. The caller frees it. */
static char *many_lines(size_t *bytes)
{
    char *text = malloc(MANY * 16);
    assert_non_null(text);
    *bytes = 0;
    for (int i = 0; i < MANY; i++)
        *bytes += (size_t)sprintf(text + *bytes, "line %d%s", i, i < MANY - 1 ? "\n" : "");
    return text;
}

static void assert_many(void)
{
    struct lines *lines;
    struct error why;
    const char *text;
    char wanted[32];
    size_t bytes;
    bool whole;
    assert_int_equal(lines_open(&lines, path, &why), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(lines_next(lines, &text, &bytes, &whole, &why), 1);
        assert_true(whole);
        assert_int_equal(bytes, sprintf(wanted, "line %d", i));
        assert_memory_equal(text, wanted, bytes);
    }
    assert_int_equal(lines_next(lines, &text, &bytes, &whole, &why), 0);
    lines_close(lines);
}

/* Reads to the end. Returns what lines_next said there. */
static int read_through(int *count, struct error *why)
{
    struct lines *lines;
    const char *text;
    size_t bytes;
    bool whole;
    int got;
    assert_int_equal(lines_open(&lines, path, why), 0);
    for (*count = 0; (got = lines_next(lines, &text, &bytes, &whole, why)) > 0; ++*count)
        ;
    lines_close(lines);
    return got;
}

static void files_are_read_in_each_form(void **state)
{
    (void)state;
    size_t bytes, room;
    char *text = many_lines(&bytes);
    write_file(text, bytes);
    assert_many();
    gzFile gzip = gzopen(path, "wb");
    assert_int_equal(gzwrite(gzip, text, (unsigned)bytes), (int)bytes);
    assert_int_equal(gzclose(gzip), Z_OK);
    assert_many();
    /* Two frames, as two files that were joined. */
    room = ZSTD_compressBound(bytes);
    char *packed = malloc(2 * room);
    assert_non_null(packed);
    size_t first = ZSTD_compress(packed, room, text, bytes / 2, 3);
    size_t second = ZSTD_compress(packed + first, room, text + bytes / 2, bytes - bytes / 2, 3);
    assert_false(ZSTD_isError(first) || ZSTD_isError(second));
    write_file(packed, first + second);
    assert_many();
    free(packed);
    free(text);
}

static void a_file_that_was_cut_says_so(void **state)
{
    (void)state;
    size_t bytes;
    int count;
    struct error why;
    char *text = many_lines(&bytes), *packed = malloc(bytes + 1024);
    assert_non_null(packed);
    size_t whole = ZSTD_compress(packed, bytes + 1024, text, bytes, 3);
    write_file(packed, whole / 2);
    assert_int_equal(read_through(&count, &why), -1);
    assert_non_null(strstr(why.text, path));
    gzFile gzip = gzopen(path, "wb");
    assert_int_equal(gzwrite(gzip, text, (unsigned)bytes), (int)bytes);
    assert_int_equal(gzclose(gzip), Z_OK);
    assert_int_equal(truncate(path, 9000), 0);
    assert_int_equal(read_through(&count, &why), -1);
    free(packed);
    free(text);
}

static void a_file_that_is_not_there_says_so(void **state)
{
    (void)state;
    struct lines *lines;
    struct error why;
    assert_true(lines_open(&lines, "/nonexistent/lines", &why) != 0);
    assert_null(lines);
    assert_non_null(strstr(why.text, "/nonexistent/lines"));
    assert_true(lines_open(&lines, "/dev/null", &why) != 0);
}

static void a_line_that_is_too_long_is_left_out(void **state)
{
    (void)state;
    const size_t bytes = 5 * LINES_BYTES_MAX;
    struct lines *lines;
    struct error why;
    const char *at;
    size_t length;
    bool whole;
    char *text = malloc(bytes + 8);
    assert_non_null(text);
    memset(text, 'x', bytes);
    memcpy(text + bytes, "\nshort\n", 8);
    write_file(text, bytes + 7);
    assert_int_equal(lines_open(&lines, path, &why), 0);
    assert_int_equal(lines_next(lines, &at, &length, &whole, &why), 1);
    assert_false(whole);
    assert_int_equal(lines_next(lines, &at, &length, &whole, &why), 1);
    assert_true(whole && length == 5 && !memcmp(at, "short", 5));
    assert_int_equal(lines_next(lines, &at, &length, &whole, &why), 0);
    lines_close(lines);
    free(text);
}

static void names_that_logrotate_makes_are_known(void **state)
{
    (void)state;
    static const char *const rotated[] = {
        "a.jsonl",       "a.jsonl.1",        "a.jsonl.12.gz",       "a.jsonl-20261127",
        "a.jsonl.1.zst", "a-20261127.jsonl", "a-20261127.jsonl.gz", "a-20261127-1764201600.jsonl"};
    static const char *const others[] = {"a.jsonl.new", "b.jsonl.1", "a.json",    "a.jsonl.1.xz",
                                         "aa.jsonl",    "a.jsonl.",  "a-b.jsonl", ""};
    for (size_t i = 0; i < sizeof rotated / sizeof *rotated; i++)
        assert_true(lines_is_rotated(rotated[i], "a.jsonl"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(lines_is_rotated(others[i], "a.jsonl"));
    static const char *const packed[] = {"a.jsonl.1.xz", "a-20261127.jsonl.bz2", "a.jsonl.Z"};
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        assert_true(lines_is_packed(packed[i], "a.jsonl") &&
                    !lines_is_rotated(packed[i], "a.jsonl"));
    assert_false(lines_is_packed("a.jsonl.1.gz", "a.jsonl"));
    assert_false(lines_is_packed("b.jsonl.1.xz", "a.jsonl"));
    assert_false(lines_is_packed(".xz", "a.jsonl"));
    assert_true(lines_is_rotated("use.1", "use"));
}

static void moments_are_read(void **state)
{
    (void)state;
    const time_t now = 1795780800 + 3600; /* 2026-11-27T13:00:00Z */
    static const struct {
        const char *text;
        double moment;
    } rows[] = {{"2026-11-27", 1795737600},           {"2026-11-27T12:00", 1795780800},
                {"2026-11-27T12:00:01Z", 1795780801}, {"today", 1795737600},
                {"yesterday", 1795737600 - 86400},    {"36h", 1795780800 + 3600 - 36 * 3600},
                {"7d", 1795780800 + 3600 - 7 * 86400}};
    static const char *const wrong[] = {"", "2026-02-30", "2026-11", "7", "d", "1w", "2026-11-27x"};
    double moment;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(moment_parse(rows[i].text, now, &moment), 0);
        assert_true(moment == rows[i].moment);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_true(moment_parse(wrong[i], now, &moment) < 0);
}

static void keys_are_read(void **state)
{
    (void)state;
    struct sums_options options;
    struct error why;
    assert_int_equal(sums_parse_by("user,day", &options, &why), 0);
    assert_int_equal(options.by_count, 2);
    assert_int_equal(options.by[1], SUMS_DAY);
    static const char *const wrong[] = {"", "user,", "user,user", "users",
                                        "day,name,gpu,user,cgroup"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_true(sums_parse_by(wrong[i], &options, &why) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_in_each_form),
        cmocka_unit_test(a_file_that_was_cut_says_so),
        cmocka_unit_test(a_file_that_is_not_there_says_so),
        cmocka_unit_test(a_line_that_is_too_long_is_left_out),
        cmocka_unit_test(names_that_logrotate_makes_are_known),
        cmocka_unit_test(moments_are_read),
        cmocka_unit_test(keys_are_read),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
