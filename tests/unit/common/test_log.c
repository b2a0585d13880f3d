/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* log: one event, one line, whatever a client's text holds. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/log.h"
#include "common/log_journal.h"

static FILE *caught;
static int real_stderr;

static int catch (void **state)
{
    (void)state;
    caught = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    return dup2(fileno(caught), STDERR_FILENO) < 0;
}

static int release(void **state)
{
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    fclose(caught);
    return 0;
}

/* The text written since the start; static. */
static const char *written(void)
{
    static char text[1 << 20];
    ssize_t length = pread(fileno(caught), text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void a_terminal_sees_the_program(void **state)
{
    (void)state;
    log_open("gpushared", LOG_LEVEL_DEBUG, LOG_FORM_PLAIN);
    log_error("%d %s", 7, "sevens");
    log_debug("last");
    assert_string_equal(written(), "gpushared: 7 sevens\ngpushared: last\n");
}

static void a_file_sees_when_it_was(void **state)
{
    (void)state;
    struct tm local = {.tm_isdst = -1};
    unsigned ms;
    char rest[32];
    setenv("TZ", "IST-5:30", 1);
    tzset();
    log_open("gpushared", LOG_LEVEL_DEBUG, LOG_FORM_TIMED);
    time_t before = time(NULL);
    log_info("now");
    time_t after = time(NULL);
    assert_int_equal(sscanf(written(), "%d-%d-%d %d:%d:%d.%3u gpushared: %31s", &local.tm_year,
                            &local.tm_mon, &local.tm_mday, &local.tm_hour, &local.tm_min,
                            &local.tm_sec, &ms, rest),
                     8);
    assert_string_equal(rest, "now");
    assert_int_equal(strchr(written(), '\n') - written(),
                     strlen("2026-11-25 12:00:00.000 gpushared: now"));
    local.tm_year -= 1900;
    local.tm_mon--;
    time_t said = timegm(&local) - (5 * 60 + 30) * 60;
    assert_true(said >= before && said <= after);
    unsetenv("TZ");
    tzset();
}

/* A shell of a service hands the variable on to programs whose standard error is a file. */
static void the_journal_is_known_by_its_file(void **state)
{
    (void)state;
    struct stat status;
    char name[64];
    assert_int_equal(fstat(STDERR_FILENO, &status), 0);
    unsetenv("JOURNAL_STREAM");
    assert_int_equal(log_journal_form(), LOG_FORM_TIMED);
    snprintf(name, sizeof name, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", name, 1);
    assert_int_equal(log_journal_form(), LOG_FORM_JOURNAL);
    strcat(name, "0");
    setenv("JOURNAL_STREAM", name, 1);
    assert_int_equal(log_journal_form(), LOG_FORM_TIMED);
    setenv("JOURNAL_STREAM", "journal", 1);
    assert_int_equal(log_journal_form(), LOG_FORM_TIMED);
    unsetenv("JOURNAL_STREAM");
}

static void journald_sees_the_priority(void **state)
{
    (void)state;
    log_open("gpushared", LOG_LEVEL_DEBUG, LOG_FORM_JOURNAL);
    log_error("a");
    log_warning("b");
    log_notice("c");
    log_info("d");
    log_debug("e");
    assert_string_equal(written(), "<3>a\n<4>b\n<5>c\n<6>d\n<7>e\n");
}

static void lines_above_the_level_are_dropped(void **state)
{
    (void)state;
    log_open("p", LOG_LEVEL_WARNING, LOG_FORM_PLAIN);
    log_info("no");
    log_notice("no");
    log_warning("yes");
    assert_string_equal(written(), "p: yes\n");
}

static char observed[4096];

static void observe(enum log_level level, const char *text)
{
    size_t used = strlen(observed);
    snprintf(observed + used, sizeof observed - used, "%s: %s;", log_level_name(level), text);
}

static void an_observer_sees_what_is_not_written_too(void **state)
{
    (void)state;
    log_open("p", LOG_LEVEL_ERROR, LOG_FORM_JOURNAL);
    log_observe(observe);
    log_error("a\n%d", 1);
    log_info("b");
    log_debug("c");
    log_set_level(LOG_LEVEL_DEBUG);
    assert_int_equal(log_level(), LOG_LEVEL_DEBUG);
    log_debug("d");
    log_observe(NULL);
    log_notice("e");
    assert_string_equal(observed, "error: a?1;info: b;");
    assert_string_equal(written(), "<3>a?1\n<7>d\n<5>e\n");
}

static void levels_have_names(void **state)
{
    (void)state;
    enum log_level level = LOG_LEVEL_NOTICE;
    for (enum log_level i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
        assert_int_equal(log_level_find(log_level_name(i), &level), 0);
        assert_int_equal(level, i);
    }
    assert_int_equal(log_level_find("loud", &level), -EINVAL);
    assert_int_equal(level, LOG_LEVEL_DEBUG);
}

static void a_clients_text_cannot_forge_a_line(void **state)
{
    (void)state;
    log_open("p", LOG_LEVEL_INFO, LOG_FORM_PLAIN);
    log_info("name=%s", "x\n<3>forged\r\x1b[31m\x7f\t");
    assert_string_equal(written(), "p: name=x?<3>forged??[31m??\n");
}

static void a_long_text_is_cut_and_ends_in_a_newline(void **state)
{
    (void)state;
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    log_open("p", LOG_LEVEL_INFO, LOG_FORM_PLAIN);
    log_info("%s", text);
    log_info("next");
    const char *lines = written();
    const char *newline = strchr(lines, '\n');
    assert_non_null(newline);
    assert_true(newline - lines > 900 && newline - lines < 1024);
    assert_string_equal(newline + 1, "p: next\n");
}

enum { THREADS = 4, LINES = 300 };

static void *write_lines(void *context)
{
    int self = (int)(intptr_t)context;
    for (int i = 0; i < LINES; i++)
        log_info("%d:%0*d", self, 60 + self, i);
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int next[THREADS] = {0};
    log_open("p", LOG_LEVEL_INFO, LOG_FORM_PLAIN);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_lines, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *copy = strdup(written()), *rest = copy, *line;
    int count = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        int self, number;
        assert_int_equal(sscanf(line, "p: %d:%d", &self, &number), 2);
        assert_true(self >= 0 && self < THREADS);
        assert_int_equal(number, next[self]++);
        assert_int_equal(strlen(line), 5 + 60 + (size_t)self);
        count++;
    }
    assert_int_equal(count, THREADS * LINES);
    free(copy);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, catch, release)
    const struct CMUnitTest tests[] = {
        CASE(a_terminal_sees_the_program),
        CASE(the_journal_is_known_by_its_file),
        CASE(a_file_sees_when_it_was),
        CASE(journald_sees_the_priority),
        CASE(lines_above_the_level_are_dropped),
        CASE(an_observer_sees_what_is_not_written_too),
        CASE(levels_have_names),
        CASE(a_clients_text_cannot_forge_a_line),
        CASE(a_long_text_is_cut_and_ends_in_a_newline),
        CASE(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
