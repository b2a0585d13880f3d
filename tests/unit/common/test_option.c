/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "common/option.h"
#include "protocol.h"

static const struct option longs[] = {
    {"socket", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};

/* Reads a command line of three words at most up to its first fault. */
static void expect(const char *first, const char *second, const char *third, const char *said)
{
    char words[4][32] = {"program"};
    char *argv[5] = {words[0]};
    const char *given[] = {first, second, third};
    int argc = 1, result;
    for (unsigned i = 0; i < 3 && given[i]; i++) {
        strcpy(words[argc], given[i]);
        argv[argc] = words[argc];
        argc++;
    }
    opterr = 0;
    optind = 0; /* glibc: begin anew */
    do
        result = getopt_long(argc, argv, ":ho:", longs, NULL);
    while (result != -1 && result != '?' && result != ':');
    struct error why;
    assert_int_not_equal(result, -1);
    assert_int_equal(option_explain(result, argv, longs, &why), PROTO_ERROR_INVALID_VALUE);
    if (!strstr(why.text, said))
        fail_msg("\"%s\" is not in: %s", said, why.text);
}

static void an_option_that_is_not_there_is_named(void **state)
{
    (void)state;
    expect("--sockets", NULL, NULL, "no option --sockets:");
    expect("--json", "--nothing=4", NULL, "no option --nothing:");
    expect("-x", NULL, NULL, "no option -x:");
    expect("--json", "-xh", NULL, "no option -x:");
    expect("--socket=/path", "-j", NULL, "no option -j:");
    expect("-hj", NULL, NULL, "no option -j:");
}

static void a_value_that_is_missing_or_too_much_is_told_apart(void **state)
{
    (void)state;
    expect("--socket", NULL, NULL, "--socket needs a value");
    expect("--json", "--sock", NULL, "--sock needs a value");
    expect("-h", "-o", NULL, "-o needs a value");
    expect("--json=4", NULL, NULL, "--json takes no value");
    expect("--js=4", NULL, NULL, "--js takes no value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_that_is_not_there_is_named),
        cmocka_unit_test(a_value_that_is_missing_or_too_much_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
