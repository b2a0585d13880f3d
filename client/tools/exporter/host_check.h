/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * host_check: whether a question over HTTP was meant for this machine. A page of a stranger's whose
 * name is made to mean 127.0.0.1 would otherwise read, in a browser on this machine, what only this
 * machine may ask for (DNS rebinding). Any thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_HOST_CHECK_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_HOST_CHECK_H

#include <stdbool.h>
#include <sys/socket.h>

/* Whether only this machine can connect to an address. */
bool host_check_is_loopback(const struct sockaddr *address);

/* Whether a Host header, with or without a port, names this machine: "localhost", a loopback
 * address, or `own`, which is the host that the operator gave. */
bool host_check_is_local(const char *header, const char *own);

#endif
