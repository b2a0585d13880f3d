/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * keeper: file descriptors that the supervisor holds for clients.
 *
 * What must outlive a worker is a descriptor here. Descriptors are scarce, so each
 * that a client can ask for (one a device memory handle, one a host buffer) is
 * charged to it; those that every client has (KEEPER_FDS_CLIENT) are set aside for
 * as many clients as the server admits, so that no client's greed shuts others out.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEPER_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEPER_H

#include <stdint.h>

#include "server/supervisor/quota.h"

/* Connection, pidfd, ring, status and twin memory, doorbell; and the read-only status
 * descriptor or a received image while a message is under way. */
#define KEEPER_FDS_CLIENT 7

/* Loop, log, sockets, spare, threads; and of each device: channel, pidfd, and a message under way.
 */
#define KEEPER_FDS_SERVER 64
#define KEEPER_FDS_DEVICE 8

/* A descriptor and what it was charged. fd is -1 when none is held. */
struct kept {
    int fd;
    struct charge charge;
};

#define KEPT_NONE ((struct kept){.fd = -1})

/* How the descriptors of this process are divided. */
struct keeper_budget {
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
int keeper_budget(struct keeper_budget *budget, uint32_t devices, uint32_t clients);

/* The division alone, for a given limit. Same results. */
int keeper_divide(struct keeper_budget *budget, uint32_t descriptors, uint32_t devices,
                  uint32_t clients);

/* Charges one descriptor, before it exists. Returns 0 or QUOTA_OVER as quota_charge. */
int keeper_charge(struct kept *kept, struct quota *fds, const struct quota **culprit);

/* Closes and pays back; idempotent. */
void keeper_release(struct kept *kept);

#endif
