/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fd_budget: the file descriptors that the supervisor holds for clients.
 *
 * Everything that must outlive a worker is a descriptor here, and descriptors are scarce. Each
 * descriptor that a client can ask for (one for a device memory handle, one for a host buffer) is
 * charged to the client. Those that every client has (FD_BUDGET_CLIENT) are set aside for as many
 * clients as the server admits, so that no client's greed shuts others out. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_FD_BUDGET_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_FD_BUDGET_H

#include <stdint.h>

#include "server/supervisor/account/quota.h"

/* For each client: connection, pidfd, ring, status and shadow memory, doorbell; and the read-only
 * status descriptor or a received image while a message is under way. */
#define FD_BUDGET_CLIENT 7

/* Descriptors that clients have sent and that wait to be closed. */
#define FD_BUDGET_CLOSING 128

/* For the server: loop, log, sockets, spare descriptor, threads; and those above. For each device:
 * channel, pidfd, and a message under way. */
#define FD_BUDGET_SERVER (64 + FD_BUDGET_CLOSING)
#define FD_BUDGET_DEVICE 8

/* A descriptor and its charge. fd is -1 when none is held. */
struct charged_fd {
    int fd;
    struct charge charge;
};

#define CHARGED_FD_NONE ((struct charged_fd){.fd = -1})

/* The most descriptors of this process: the kernel's own default for a hard limit (fs.nr_open).
 * Some systems have a thousand times as many, and tables by number must have an end. */
#define FD_BUDGET_MOST (UINT32_C(1) << 20)

/* How the descriptors of this process are divided. */
struct fd_budget {
    uint32_t descriptors; /* RLIMIT_NOFILE */
    uint32_t clients;     /* maximum of clients */
    uint32_t shared;      /* for memory handles and buffers of all clients together */
    uint32_t client_max;  /* maximum of these for one client */
};

/*
 * Sets RLIMIT_NOFILE to its hard limit or FD_BUDGET_MOST, whichever is less, and divides that, or
 * `most` if that is less still. clients: the number of clients that is wished, or 0 for as many as
 * fit. Returns 0; -EMFILE if so many do not fit, and budget->clients is the number that would; or
 * another -errno.
 */
int fd_budget_open(struct fd_budget *budget, uint32_t devices, uint32_t clients, uint32_t most);

/* Divides a given limit without changing the process. Results as above. */
int fd_budget_divide(struct fd_budget *budget, uint32_t descriptors, uint32_t devices,
                     uint32_t clients);

/* Charges a descriptor before it exists. Returns 0 or QUOTA_OVER, as quota_charge does. */
int fd_budget_charge(struct charged_fd *charged, struct quota *fds, const struct quota **culprit);

/* The same as quota_charge_again, with the descriptor that is charged. */
void fd_budget_charge_again(struct charged_fd *charged, struct quota *fds, int fd);

/* Closes the descriptor if there is one, and gives its charge back. Idempotent. */
void fd_budget_release(struct charged_fd *charged);

#endif
