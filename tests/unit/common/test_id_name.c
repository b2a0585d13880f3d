/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Users are this machine's, and passwd(5) read line by line is the oracle. Groups are this
 * file's: its own functions stand in the place of the C library's. */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/id_name.h"

enum { CROWD = 4711, CROWD_BYTES = 300000, NOBODYS = 4712 };

static int interruptions;

static int give_group(int error, struct group *group, char *buffer, size_t bytes,
                      struct group **found)
{
    *found = NULL;
    if (error)
        return error;
    if (bytes < CROWD_BYTES)
        return ERANGE;
    memset(buffer, 'm', CROWD_BYTES);
    strcpy(buffer, "crowd");
    *group = (struct group){.gr_name = buffer, .gr_gid = CROWD};
    *found = group;
    return 0;
}

int getgrnam_r(const char *name, struct group *group, char *buffer, size_t bytes,
               struct group **found)
{
    int error = strcmp(name, "crowd") == 0 ? 0 : strcmp(name, "gone") == 0 ? ESRCH : EIO;
    if (strcmp(name, "endless") == 0)
        error = ERANGE;
    if (!error && interruptions > 0) {
        interruptions--;
        error = EINTR;
    }
    return give_group(error, group, buffer, bytes, found);
}

int getgrgid_r(gid_t gid, struct group *group, char *buffer, size_t bytes, struct group **found)
{
    return give_group(gid == CROWD ? 0 : EIO, group, buffer, bytes, found);
}

static void users_of_this_machine(void **state)
{
    (void)state;
    FILE *passwords = fopen("/etc/passwd", "re");
    assert_non_null(passwords);
    char line[1024];
    unsigned seen = 0;
    while (fgets(line, sizeof line, passwords)) {
        char name[256];
        unsigned uid;
        if (sscanf(line, "%255[^:]:%*[^:]:%u:", name, &uid) != 2)
            continue;
        struct error why;
        uint32_t id = UINT32_MAX;
        assert_int_equal(id_name_find(ID_NAME_USER, name, &id, &why), 0);
        assert_int_equal(id, uid);
        /* Several names may have one number. Any of them is right. */
        char *first = id_name_of(ID_NAME_USER, uid);
        assert_non_null(first);
        assert_int_equal(id_name_find(ID_NAME_USER, first, &id, &why), 0);
        assert_int_equal(id, uid);
        free(first);
        seen++;
    }
    fclose(passwords);
    assert_true(seen > 0);
}

static void what_nobody_has_is_refused(void **state)
{
    (void)state;
    struct error why;
    uint32_t id = 5;
    assert_int_not_equal(id_name_find(ID_NAME_USER, "no such user", &id, &why), 0);
    assert_non_null(strstr(why.text, "no user \"no such user\""));
    assert_int_not_equal(id_name_find(ID_NAME_GROUP, "gone", &id, &why), 0);
    assert_non_null(strstr(why.text, "no group \"gone\""));
    assert_int_equal(id, 5);
    assert_null(id_name_of(ID_NAME_USER, UINT32_MAX - 1));
}

static void a_lookup_that_fails_is_no_missing_name(void **state)
{
    (void)state;
    struct error why;
    uint32_t id = 5;
    assert_int_not_equal(id_name_find(ID_NAME_GROUP, "broken", &id, &why), 0);
    assert_non_null(strstr(why.text, strerror(EIO)));
    assert_non_null(strstr(why.text, "group \"broken\""));
    assert_int_not_equal(id_name_find(ID_NAME_GROUP, "endless", &id, &why), 0);
    assert_non_null(strstr(why.text, strerror(ERANGE)));
    assert_int_equal(id, 5);
    assert_null(id_name_of(ID_NAME_GROUP, NOBODYS));
}

static void a_group_of_many_members_is_found(void **state)
{
    (void)state;
    struct error why;
    uint32_t id = 0;
    interruptions = 2;
    assert_int_equal(id_name_find(ID_NAME_GROUP, "crowd", &id, &why), 0);
    assert_int_equal(id, CROWD);
    assert_int_equal(interruptions, 0);
    char *name = id_name_of(ID_NAME_GROUP, CROWD);
    assert_string_equal(name, "crowd");
    free(name);
}

static void numbers_are_no_names(void **state)
{
    (void)state;
    static const char *const numbers[] = {"", "0", "1000", "1000-1999", "-1", "1-", "99999999999"};
    static const char *const names[] = {"root", "systemd-network", "5x", "a", "x-1", "_apt"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_false(id_name_is_possible(numbers[i]));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_true(id_name_is_possible(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_of_this_machine),
        cmocka_unit_test(what_nobody_has_is_refused),
        cmocka_unit_test(a_lookup_that_fails_is_no_missing_name),
        cmocka_unit_test(a_group_of_many_members_is_found),
        cmocka_unit_test(numbers_are_no_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
