/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/regular_file.h"

static char folder[64], path[96];

static int open_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gpushare-regular-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/it", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void a_file_is_opened_and_not_inherited(void **state)
{
    (void)state;
    assert_int_equal(regular_file_open(path, O_RDONLY), -ENOENT);
    int fd = regular_file_open(path, O_RDWR | O_CREAT);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & (S_IWGRP | S_IRWXO), 0);
}

/* Nobody reads the pipe: opening it in the ordinary way would not come back. */
static void what_is_no_file_is_refused_at_once(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(regular_file_open(path, O_RDONLY), -EINVAL);
    assert_int_equal(regular_file_open(folder, O_RDONLY), -EINVAL);
    assert_int_equal(regular_file_open("/dev/null", O_RDWR), -EINVAL);
}

static void a_link_is_followed_unless_the_caller_says_otherwise(void **state)
{
    (void)state;
    assert_int_equal(symlink("/etc/passwd", path), 0);
    int fd = regular_file_open(path, O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(regular_file_open(path, O_RDONLY | O_NOFOLLOW), -ELOOP);
}

static void a_text_is_written_whole_or_the_reason_is_told(void **state)
{
    (void)state;
    char found[8] = "";
    int fd = regular_file_open(path, O_RDWR | O_CREAT | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(regular_file_write(fd, "abc", 3), 0);
    assert_int_equal(regular_file_write(fd, "", 0), 0);
    assert_int_equal(regular_file_write(fd, "def", 2), 0);
    assert_int_equal(pread(fd, found, sizeof found, 0), 5);
    assert_string_equal(found, "abcde");
    close(fd);
    fd = regular_file_open(path, O_RDONLY);
    assert_int_equal(regular_file_write(fd, "x", 1), -EBADF);
    close(fd);
}

static void a_file_is_replaced_whole_and_nothing_of_others_is_opened(void **state)
{
    (void)state;
    char fresh[128], other[128], found[8] = "";
    struct stat file;
    snprintf(fresh, sizeof fresh, "%s.new", path);
    snprintf(other, sizeof other, "%s.other", path);
    const mode_t before = umask(077);
    assert_int_equal(regular_file_replace(other, 0644, "others", 6), 0);
    assert_int_equal(regular_file_replace(path, 0644, "a", 1), 0);
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(kind == 0   ? mkfifo(fresh, 0666)
                         : kind == 1 ? symlink(other, fresh)
                                     : link(other, fresh),
                         0);
        assert_int_equal(regular_file_replace(path, 0640, "abc", 3), 0);
        assert_int_equal(stat(path, &file), 0);
        assert_int_equal(file.st_mode, S_IFREG | 0640);
        assert_int_equal(file.st_size, 3);
        assert_int_equal(lstat(fresh, &file), -1);
        assert_int_equal(stat(other, &file), 0);
        assert_int_equal(file.st_size, 6);
    }
    umask(before);
    /* A text that can't be written leaves the old one. */
    assert_int_equal(mkdir(fresh, 0700), 0);
    assert_true(regular_file_replace(path, 0640, "defg", 4) < 0);
    int fd = regular_file_open(path, O_RDONLY);
    assert_int_equal(read(fd, found, sizeof found), 3);
    assert_string_equal(found, "abc");
    close(fd);
    assert_int_equal(rmdir(fresh), 0);
    unlink(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_opened_and_not_inherited, open_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused_at_once, open_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_link_is_followed_unless_the_caller_says_otherwise,
                                        open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_text_is_written_whole_or_the_reason_is_told, open_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_file_is_replaced_whole_and_nothing_of_others_is_opened,
                                        open_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
