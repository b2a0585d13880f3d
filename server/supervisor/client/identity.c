/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/client/identity.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/supervisor/loop/peer_uid.h"

#define UID_NONE UINT32_MAX
/* Version 1 has a line for each of a dozen controllers, each with a path of its own. */
#define CGROUP_BYTES 65536

static void read_groups(struct identity *identity, int fd)
{
    struct ucred credentials;
    socklen_t bytes = sizeof credentials, more = IDENTITY_GROUPS_MAX * sizeof(gid_t);
    _Static_assert(sizeof(gid_t) == sizeof *identity->gids, "the kernel's form is ours");
    uint32_t *gids = malloc(sizeof *gids + more);
    if (gids && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids + 1, &more) == 0) {
        gids[0] = credentials.gid;
        identity->gids = gids;
        identity->gid_count = 1 + more / sizeof *gids;
    } else {
        free(gids);
    }
}

char *identity_cgroup(const char *text)
{
    static const char *const marks[] = {"0::", ":name=systemd:"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        for (const char *line = text; line && *line;) {
            size_t length = strcspn(line, "\n");
            const char *mark = strstr(line, marks[i]);
            /* Version 2's entry begins the line; the other one follows its number. */
            if (mark && mark < line + length &&
                (i ? strspn(line, "0123456789") == (size_t)(mark - line) : mark == line)) {
                mark += strlen(marks[i]);
                return *mark == '/' ? strndup(mark, (size_t)(line + length - mark)) : NULL;
            }
            line += length + (line[length] == '\n');
        }
    }
    return NULL;
}

static char *read_cgroup(pid_t pid)
{
    char path[64], *text = malloc(CGROUP_BYTES), *cgroup = NULL;
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    FILE *file = text ? fopen(path, "re") : NULL;
    if (file) {
        size_t bytes = fread(text, 1, CGROUP_BYTES - 1, file);
        text[bytes] = '\0';
        /* A path that is cut short would fit rules that the whole path does not fit. */
        if (bytes < CGROUP_BYTES - 1 && !ferror(file))
            cgroup = identity_cgroup(text);
        fclose(file);
    }
    free(text);
    return cgroup;
}

static bool has_ended(int pidfd)
{
    struct pollfd question = {.fd = pidfd, .events = POLLIN};
    return pidfd >= 0 && poll(&question, 1, 0) != 0;
}

bool identity_uid_is_seen(uint32_t uid)
{
    return uid != PEER_UID_UNMAPPED && uid != UID_NONE;
}

void identity_read(struct identity *identity, int fd, pid_t pid, uid_t uid, int pidfd)
{
    *identity = (struct identity){.known = pid > 0 && identity_uid_is_seen(uid)};
    if (!identity->known)
        return;
    read_groups(identity, fd);
    identity->cgroup = read_cgroup(pid);
    /* Asked after reading: while the process lives, its pid belongs to no other process. */
    if (has_ended(pidfd)) {
        free(identity->cgroup);
        identity->cgroup = NULL;
    }
}

void identity_free(struct identity *identity)
{
    free(identity->gids);
    free(identity->cgroup);
    *identity = (struct identity){0};
}
