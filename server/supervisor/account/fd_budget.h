/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fd_budget: file descriptors that the supervisor holds for clients.
 *
 * Everything that must outlive a worker is a descriptor here. Descriptors are scarce, so each
 * that a client can ask for (one a device memory handle, one a host buffer) is
 * charged to it; those that every client has (FD_BUDGET_CLIENT) are set aside for
 * as many clients as the server admits, so that no client's greed shuts others out.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_FD_BUDGET_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_FD_BUDGET_H

#include <stdint.h>

#include "server/supervisor/account/quota.h"

/* Connection, pidfd, ring, status and twin memory, doorbell; and the read-only status
 * descriptor or a received image while a message is under way. */
#define FD_BUDGET_CLIENT 7

/* Loop, log, sockets, spare, threads; and of each device: channel, pidfd, and a message under way.
 */
#define FD_BUDGET_SERVER 64
#define FD_BUDGET_DEVICE 8

/* A descriptor and what it was charged. fd is -1 when none is held. */
struct held_fd {
    int fd;
    struct charge charge;
};

#define HELD_FD_NONE ((struct held_fd){.fd = -1})

/* How the descriptors of this process are divided. */
struct fd_budget {
    uint32_t descriptors;  /* RLIMIT_NOFILE */
    uint32_t clients;      /* most clients */
    uint32_t shared;       /* for memory handles and buffers, all clients together */
    uint32_t client_share; /* of these, one client's most */
};

/*
 * Raises RLIMIT_NOFILE to its hard limit and divides it. clients: most clients
 * wished, 0 for as many as fit. Returns 0; -EMFILE if that many do not fit, with
 * what would in budget->clients; or another -errno.
 */
int fd_budget_open(struct fd_budget *budget, uint32_t devices, uint32_t clients);

/* The division alone, for a given limit. Same results. */
int fd_budget_divide(struct fd_budget *budget, uint32_t descriptors, uint32_t devices,
                     uint32_t clients);

/* Charges one descriptor, before it exists. Returns 0 or QUOTA_OVER as quota_charge. */
int fd_budget_charge(struct held_fd *held, struct quota *fds, const struct quota **culprit);

/* Closes and pays back; idempotent. */
void fd_budget_release(struct held_fd *held);

#endif
