/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/admin_answer.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/server.h"

json_t *admin_answer(const struct server *server, const char *words)
{
    char program[PATH_MAX], command[2 * PATH_MAX];
    json_error_t wrong;
    snprintf(command, sizeof command, "%s --socket %s --json %s",
             server_build_path("bin/gpusharectl", program, sizeof program),
             server_admin_socket(server), words);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    json_t *answer = json_loadf(pipe, 0, &wrong);
    assert_int_equal(pclose(pipe), 0);
    if (!answer)
        fail_msg("gpusharectl %s: %s", words, wrong.text);
    return answer;
}

/* Keeps one part of an answer, and releases the rest. */
static json_t *take_part(json_t *answer, json_t *part)
{
    assert_non_null(part);
    json_incref(part);
    json_decref(answer);
    return part;
}

json_t *admin_answer_device(const struct server *server)
{
    json_t *answer = admin_answer(server, "status");
    return take_part(answer, json_array_get(json_object_get(answer, "devices"), 0));
}

json_t *admin_answer_client(const struct server *server, unsigned client)
{
    json_t *answer = admin_answer(server, "clients"), *row, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(answer, "clients"), i,
                       row) if (json_integer_value(json_object_get(row, "client")) == client)
        found = row;
    if (!found)
        fail_msg("gpusharectl knows no client %u", client);
    return take_part(answer, found);
}
