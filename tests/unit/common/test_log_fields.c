/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* log_journal and log_limit: journald, which this test plays, gets fields beside the text; and a
 * client that brings about too many lines is counted, not heard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/log_journal.h"
#include "common/log_limit.h"
#include "common/messages.h"
#include "common/units.h"

static char folder[] = "/tmp/journal-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int journald;

static int open_all(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    journald = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    log_limit_reset();
    return bind(journald, (struct sockaddr *)&address, sizeof address) < 0 ||
           log_journal_open(address.sun_path, "gpushared") < 0;
}

static int close_all(void **state)
{
    (void)state;
    log_journal_close();
    close(journald);
    unlink(address.sun_path);
    int result = rmdir(folder);
    strcpy(folder, "/tmp/journal-XXXXXX");
    return result;
}

/* The next datagram; "" without one. Static. */
static const char *heard(void)
{
    static char text[4096];
    ssize_t bytes = recv(journald, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    return text;
}

static void a_line_has_its_event_and_its_client(void **state)
{
    (void)state;
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_JOURNAL);
    log_about(&(struct log_subject){.client = 7, .uid = 1001, .pid = 4711, .device = 2});
    log_warning(MESSAGE_TEXT(log_client_ended), 7u, "a\nPRIORITY=0", 4711, 1001u, "killed", "b");
    const char *text = heard();
    static const char head[] = "PRIORITY=4\nSYSLOG_IDENTIFIER=gpushared\nMESSAGE=client 7 "
                               "'a?PRIORITY=0' (pid 4711, uid 1001) is disconnected: killed: b\n"
                               "EVENT=client_ended\nMESSAGE_ID=";
    assert_memory_equal(text, head, strlen(head));
    const char *rest = strchr(text + strlen(head), '\n');
    assert_int_equal(rest - (text + strlen(head)), 32);
    assert_string_equal(rest, "\nCLIENT=7\nCLIENT_UID=1001\nCLIENT_PID=4711\nDEVICE=2\n");
    /* The subject was that line's alone. */
    log_info("free %d", 1);
    assert_string_equal(heard(), "PRIORITY=6\nSYSLOG_IDENTIFIER=gpushared\nMESSAGE=free 1\n");
    log_about_device(4);
    log_debug("not written");
    log_about_device(3);
    log_error(MESSAGE_TEXT(log_setup_failed), "x");
    assert_string_equal(heard(),
                        "PRIORITY=3\nSYSLOG_IDENTIFIER=gpushared\nMESSAGE="
                        "the supervisor could not be set up: x\nEVENT=setup_failed\nDEVICE=3\n");
}

/* The event of the datagram; "" without one. Static. */
static const char *heard_event(void)
{
    static char event[128];
    const char *at = strstr(heard(), "\nEVENT=");
    event[0] = '\0';
    if (at)
        snprintf(event, sizeof event, "%.*s", (int)strcspn(at + 7, "\n"), at + 7);
    return event;
}

static const char *without_log(const char *name)
{
    return strncmp(name, "log_", 4) == 0 ? name + 4 : name;
}

/* Rows with one format have the event of the first of them: tests/unit/docs/test_messages.py sees
 * that no line of the log is such a row. */
static void each_message_has_its_own_event(void **state)
{
    (void)state;
    const struct message *row, *first;
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_JOURNAL);
    for (size_t i = 0; (row = messages_at(i)); i++) {
        struct error why = {.number = 1, .text = "a mistake", .format = row->format};
        first = row;
        for (size_t k = i; k-- > 0;)
            if (strcmp(messages_at(k)->format, row->format) == 0)
                first = messages_at(k);
        log_sentence(LOG_LEVEL_ERROR, &why);
        const char *event = heard_event();
        const char *wanted = strcmp(row->format, "%s") == 0 ? "" : without_log(first->name);
        if (strcmp(event, wanted) != 0)
            fail_msg("%s has the event '%s'", row->name, event);
    }
}

static void a_sentence_has_the_event_of_its_error(void **state)
{
    (void)state;
    struct error why;
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_JOURNAL);
    error_set(&why, MESSAGE(config_form), "mode", "a word");
    error_prefix(&why, "%s:%d: ", "gpushared.yaml", 2);
    log_sentence(LOG_LEVEL_ERROR, &why);
    assert_string_equal(heard_event(), "config_form");
    /* Words that were made elsewhere are no message, and no other's. */
    log_error("%s", why.text);
    assert_string_equal(heard_event(), "");
}

static void without_journald_standard_error_has_the_line(void **state)
{
    (void)state;
    char text[256];
    FILE *caught = tmpfile();
    int real = dup(STDERR_FILENO);
    assert_true(caught && real >= 0 && dup2(fileno(caught), STDERR_FILENO) >= 0);
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_JOURNAL);
    unlink(address.sun_path);
    log_notice("alone");
    assert_true(dup2(real, STDERR_FILENO) >= 0);
    close(real);
    ssize_t bytes = pread(fileno(caught), text, sizeof text, 0);
    assert_int_equal(bytes, strlen("<5>alone\n"));
    assert_memory_equal(text, "<5>alone\n", (size_t)bytes);
    fclose(caught);
}

static void a_flood_is_counted(void **state)
{
    (void)state;
    int lines = 0;
    log_open("gpushared", LOG_LEVEL_INFO, LOG_FORM_JOURNAL);
    for (int i = 0; i < LOG_LIMIT_CLIENT + 5; i++) {
        log_about(&(struct log_subject){.client = 9, .uid = 1, .device = -1});
        log_warning("flood");
        lines += *heard() != '\0';
    }
    assert_int_equal(lines, LOG_LIMIT_CLIENT);
    log_about(&(struct log_subject){.client = 9, .uid = 1, .device = -1});
    log_error("an error is heard");
    assert_true(*heard() != '\0');
    log_about(&(struct log_subject){.client = 10, .uid = 1, .device = -1});
    log_warning("another client is heard");
    assert_true(*heard() != '\0');
}

/* Times are the test's own. */
static void counts_are_told_when_the_time_is_over(void **state)
{
    (void)state;
    const uint64_t begin = 1000 * UNITS_SECOND, end = begin + LOG_LIMIT_SECONDS * UNITS_SECOND;
    struct log_limit_over over;
    for (int i = 0; i < LOG_LIMIT_CLIENT; i++)
        assert_true(log_limit_admits(4, 2, begin));
    assert_false(log_limit_admits(4, 2, begin + 1));
    assert_false(log_limit_admits(4, 2, end - 1));
    assert_false(log_limit_over(end - 1, &over));
    assert_true(log_limit_over(end, &over));
    assert_int_equal(over.client, 4);
    assert_int_equal(over.uid, 2);
    assert_int_equal(over.left_out, 2);
    assert_false(log_limit_over(end, &over));
    assert_true(log_limit_admits(4, 2, end));
    /* A user that connects again and again is one user. */
    uint32_t client = 100, heard_of = 0;
    for (; client < 100 + LOG_LIMIT_USER + 50; client++)
        heard_of += log_limit_admits(client, 3, end);
    assert_int_equal(heard_of, LOG_LIMIT_USER);
    assert_true(log_limit_over(2 * end, &over));
    assert_int_equal(over.client, 0);
    assert_int_equal(over.uid, 3);
    assert_int_equal(over.left_out, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_its_event_and_its_client, open_all, close_all),
        cmocka_unit_test_setup_teardown(each_message_has_its_own_event, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_sentence_has_the_event_of_its_error, open_all, close_all),
        cmocka_unit_test_setup_teardown(without_journald_standard_error_has_the_line, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_flood_is_counted, open_all, close_all),
        cmocka_unit_test_setup_teardown(counts_are_told_when_the_time_is_over, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
