/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/fd_budget.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/util.h"

/* A node with more clients than this would rather want several servers. */
#define CLIENTS_DEFAULT_MAX UINT64_C(4096)

int fd_budget_divide(struct fd_budget *budget, uint32_t descriptors, uint32_t devices,
                     uint32_t clients)
{
    uint64_t own = FD_BUDGET_SERVER + (uint64_t)devices * FD_BUDGET_DEVICE;
    uint64_t free = descriptors > own ? descriptors - own : 0;
    /* One more for each client than it always has, so that each can hold memory at all. */
    uint64_t fit = free / (FD_BUDGET_CLIENT + 1);
    *budget = (struct fd_budget){.descriptors = descriptors};
    if (clients > fit || fit == 0) {
        budget->clients = (uint32_t)fit;
        return -EMFILE;
    }
    if (!clients) {
        /* One half of the descriptors is for clients to come, the other half for their requests. */
        uint64_t half = free / (2 * FD_BUDGET_CLIENT);
        clients = max((uint32_t)min(half, CLIENTS_DEFAULT_MAX), 1u);
    }
    budget->clients = clients;
    budget->shared = (uint32_t)(free - (uint64_t)clients * FD_BUDGET_CLIENT);
    /* A quarter, so that one client can't take all of them. */
    budget->client_max = budget->shared / 4 ? budget->shared / 4 : budget->shared;
    return 0;
}

int fd_budget_open(struct fd_budget *budget, uint32_t devices, uint32_t clients, uint32_t most)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    const rlim_t wanted = min(limit.rlim_max, (rlim_t)FD_BUDGET_MOST);
    if (limit.rlim_cur != wanted) {
        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            return -errno;
    }
    uint32_t descriptors = (uint32_t)min(wanted, (rlim_t)most);
    return fd_budget_divide(budget, descriptors, devices, clients);
}

int fd_budget_charge(struct charged_fd *charged, struct quota *fds, const struct quota **culprit)
{
    return quota_charge(fds, &charged->charge, 1, culprit);
}

void fd_budget_charge_again(struct charged_fd *charged, struct quota *fds, int fd)
{
    quota_charge_again(fds, &charged->charge, 1);
    charged->fd = fd;
}

void fd_budget_release(struct charged_fd *charged)
{
    if (charged->fd >= 0)
        close(charged->fd);
    charged->fd = -1;
    quota_return(&charged->charge);
}
