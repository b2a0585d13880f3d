/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fd_store: the part of systemd that a server's life crosses with: it hears the notifications of
 * sd_notify(3), and keeps the descriptors that the server stores with FDSTORE=1 under their names,
 * until it removes them. Names are unique: the server stores one descriptor under each.
 *
 * A thread hears, since a server that is not heard stops at its next notification.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_FD_STORE_H
#define GPUSHARE_TESTS_SUPPORT_FD_STORE_H

#include <stdbool.h>
#include <stddef.h>

struct fd_store;

/* Binds a socket at this path and begins to hear. Ends the program where that is impossible. */
struct fd_store *fd_store_open(const char *path);

/* Closes all that is kept, and removes the socket. NULL: does nothing. */
void fd_store_close(struct fd_store *store);

/* The server that is started next is not ready yet. */
void fd_store_begin(struct fd_store *store);

/* Whether it has said READY=1; waits for that, as long as this. */
bool fd_store_await_ready(struct fd_store *store, double seconds);

/* Returns when all is heard that was sent before, so that what a dead server stored is kept. */
void fd_store_settle(struct fd_store *store);

/* The number of descriptors that are kept. */
size_t fd_store_count(struct fd_store *store);

/*
 * Copies of the kept descriptors for the next server, each at least `from` and closed on exec: the
 * names go behind `names`, each after a colon, as LISTEN_FDNAMES has them. Returns their number.
 * The caller frees *fds and closes the copies.
 */
size_t fd_store_copy(struct fd_store *store, int from, int **fds, char **names);

#endif
