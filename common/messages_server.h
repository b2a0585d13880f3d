/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_server: gpushared's start, its command line, its devices, and what its log says of
 * clients. Part of the table in common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_SERVER_H
#define GPUSHARE_COMMON_MESSAGES_SERVER_H

/* clang-format off */
#define MESSAGES_SERVER(X) \
    X(hello_late, CONNECTION_LOST, \
      "the client connected and sent nothing: --hello-timeout says how long it may take") \
    X(attach_late, CONNECTION_LOST, \
      "the client said hello and did not attach: --hello-timeout says how long it may take") \
    X(guarantee_total, OUT_OF_MEMORY, \
      "a request of %s of %s does not fit: %s: of %s others hold %s, in use or guaranteed: " \
      "ask for less, or wait until they have freed some") \
    X(guarantee_never, INVALID_VALUE, \
      "a request of %s of %s does not fit: %s are guaranteed to other clients, together %s, " \
      "and there are %s: ask for less") \
    X(guarantee_not_now, OUT_OF_MEMORY, \
      "a request of %s of %s does not fit now: of %s other clients have %s guaranteed and " \
      "use %s beyond that: ask for less, or wait until they have freed some")
/* clang-format on */

#endif
