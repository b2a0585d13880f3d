/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/client/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/printable.h"
#include "common/util.h"
#include "server/supervisor/loop/peer_uid.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

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

/* The link to the program's file needs the right to trace it; its name may be read by anybody. */
static void read_program(struct identity *identity, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    identity->program[fread(identity->program, 1, sizeof identity->program - 1, file)] = '\0';
    identity->program[strcspn(identity->program, "\n")] = '\0';
    printable_replace(identity->program);
    fclose(file);
}

int identity_pidfd(int fd, pid_t pid, bool *by_number)
{
    int pidfd;
    socklen_t bytes = sizeof pidfd;
    *by_number = false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes) == 0) {
        fcntl(pidfd, F_SETFD, FD_CLOEXEC);
        return pidfd;
    }
    /* Another error says that the process has ended. */
    if (errno != ENOPROTOOPT || pid <= 0)
        return -1;
    *by_number = true;
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Ticks of the clock between the machine's start and the process's. 0: not known. */
static unsigned long long began_ticks(pid_t pid)
{
    enum { NAME_END = 2, BEGAN = 22 }; /* numbers of fields, proc_pid_stat(5) */
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    /* The name may contain blanks and parentheses. */
    const char *at = strrchr(text, ')');
    for (int field = NAME_END; at && field < BEGAN; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

bool identity_began_before(pid_t pid, uint64_t time)
{
    unsigned long long ticks = began_ticks(pid);
    long hertz = sysconf(_SC_CLK_TCK);
    if (!ticks || hertz <= 0)
        return false;
    /* The machine may have slept since; then the process seems older than it is. */
    uint64_t slept = saturating_sub(clock_read(CLOCK_BOOTTIME), clock_now());
    return saturating_sub(ticks * (UNITS_SECOND / (uint64_t)hertz), slept) < time;
}

static bool has_ended(int pidfd)
{
    struct pollfd question = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&question, 1, 0) != 0;
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
    read_program(identity, pid);
    /* Asked after reading: while the process lives, its pid belongs to no other process. */
    if (has_ended(pidfd)) {
        free(identity->cgroup);
        identity->cgroup = NULL;
        identity->program[0] = '\0';
    }
}

void identity_free(struct identity *identity)
{
    free(identity->gids);
    free(identity->cgroup);
    *identity = (struct identity){0};
}
