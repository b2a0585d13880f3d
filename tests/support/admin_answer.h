/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_answer: what `gpusharectl --json` says of a private server. One thread. A command that
 * fails, or says no JSON, fails the test.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_ADMIN_ANSWER_H
#define GPUSHARE_TESTS_SUPPORT_ADMIN_ANSWER_H

#include <jansson.h>

struct server;

/* Runs gpusharectl with these words ("status", "clients"). Returns the whole answer; the caller
 * releases it with json_decref. */
json_t *admin_answer(const struct server *server, const char *words);

/* The row of `status` of the first device. The caller releases it. */
json_t *admin_answer_device(const struct server *server);

/* The row of `clients` of the client of this number; fails the test if there is none. The caller
 * releases it. */
json_t *admin_answer_client(const struct server *server, unsigned client);

#endif
