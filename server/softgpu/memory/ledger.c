/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/memory/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol.h"

enum { LEDGER_LINES = 32768 };

/* "SGLEDG01". A change of the layout changes the number. */
static const uint64_t ledger_magic = 0x3130474445474c53;

enum { LINE_CHARGED = 1, LINE_EXPORTED = 2, LINE_ORPHAN = 4, LINE_OPEN = 8 };

/* One process's charge of one allocation. The line is free if bytes is 0. */
struct line {
    uint64_t inode;
    uint64_t bytes;
    uint64_t start_time; /* of the process, in clock ticks since boot */
    int32_t pid;         /* 0 for an orphan: held by a file descriptor alone */
    uint16_t device;
    uint16_t flags;
    uint32_t holds; /* references of that process */
    uint32_t reserved;
};

struct ledger_file {
    uint64_t magic;
    uint32_t lines; /* high-water mark */
    uint32_t reserved;
    struct line line[LEDGER_LINES];
};

struct ledger {
    pthread_mutex_t lock; /* flock() does not exclude threads of one process from each other */
    int fd;               /* -1 without a file */
    struct ledger_file *file;
    int32_t pid;
    uint64_t start_time;
};

static bool read_start_time(int32_t pid, uint64_t *start_time)
{
    char path[64], text[1024];
    const char *field;
    ssize_t length;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    /* The name of the command may contain any character, so the fields begin behind its last
     * bracket. */
    field = strrchr(text, ')');
    for (int i = 0; field && i < 20; i++)
        field = strchr(field + 1, ' ');
    if (!field)
        return false;
    *start_time = strtoull(field + 1, NULL, 10);
    return true;
}

static void ledger_lock(struct ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    if (ledger->fd >= 0)
        while (flock(ledger->fd, LOCK_EX) < 0 && errno == EINTR)
            ;
}

static void ledger_unlock(struct ledger *ledger)
{
    if (ledger->fd >= 0)
        flock(ledger->fd, LOCK_UN);
    pthread_mutex_unlock(&ledger->lock);
}

/* ---- what file descriptors alone hold ---- */

/* Orphans' lines, by inode; those that a descriptor was found for are marked. */
struct orphans {
    struct line **lines;
    size_t count;
};

static int by_inode(const void *a, const void *b)
{
    uint64_t x = (*(struct line *const *)a)->inode, y = (*(struct line *const *)b)->inode;
    return (x > y) - (x < y);
}

static void mark_inode(const struct orphans *orphans, uint64_t inode)
{
    size_t low = 0, high = orphans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (orphans->lines[middle]->inode < inode)
            low = middle + 1;
        else
            high = middle;
    }
    /* The same memory can be charged on two devices. */
    for (; low < orphans->count && orphans->lines[low]->inode == inode; low++)
        orphans->lines[low]->flags |= LINE_OPEN;
}

/* All memfds of a kernel are in one file system, so the inode of a file without links identifies
 * it well enough. */
static void mark_process(const struct orphans *orphans, const char *pid)
{
    char path[64];
    struct dirent *entry;
    struct stat status;

    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &status, 0) == 0 &&
            S_ISREG(status.st_mode) && status.st_nlink == 0)
            mark_inode(orphans, status.st_ino);
    closedir(dir);
}

static bool mark_all(const struct orphans *orphans)
{
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    if (!dir)
        return false;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            mark_process(orphans, entry->d_name);
    closedir(dir);
    return true;
}

/* One pass over the processes serves all orphans, because the driver's memory is locked
 * meanwhile. */
static void strike_closed(struct ledger_file *file)
{
    struct orphans orphans = {calloc(file->lines + 1, sizeof(struct line *)), 0};

    /* If we can't look at the processes, the memory stays charged. */
    if (!orphans.lines)
        return;
    for (uint32_t i = 0; i < file->lines; i++)
        if (file->line[i].bytes && file->line[i].pid == 0) {
            file->line[i].flags &= (uint16_t)~LINE_OPEN;
            orphans.lines[orphans.count++] = &file->line[i];
        }
    qsort(orphans.lines, orphans.count, sizeof(struct line *), by_inode);
    if (orphans.count && mark_all(&orphans))
        for (size_t i = 0; i < orphans.count; i++)
            if (!(orphans.lines[i]->flags & LINE_OPEN))
                memset(orphans.lines[i], 0, sizeof(struct line));
    free(orphans.lines);
}

static struct line *find_line(struct ledger_file *file, int32_t pid, unsigned device,
                              uint64_t inode)
{
    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line->bytes && line->pid == pid && line->device == device && line->inode == inode)
            return line;
    }
    return NULL;
}

static struct line *free_line(struct ledger_file *file)
{
    for (uint32_t i = 0; i < file->lines; i++)
        if (file->line[i].bytes == 0)
            return &file->line[i];
    return file->lines < LEDGER_LINES ? &file->line[file->lines++] : NULL;
}

/* Another line of the same memory, which can take the charge over. */
static struct line *find_heir(struct ledger_file *file, const struct line *leaver)
{
    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line != leaver && line->bytes && line->inode == leaver->inode &&
            line->device == leaver->device)
            return line;
    }
    return NULL;
}

/* Removes a line. Its charge passes to another line of the same memory, or to an orphan's line. */
static void strike_line(struct ledger_file *file, struct line *line)
{
    struct line *heir = line->inode ? find_heir(file, line) : NULL;

    if (heir) {
        heir->flags |= line->flags & (LINE_CHARGED | LINE_EXPORTED);
    } else if (line->inode && (line->flags & LINE_EXPORTED)) {
        line->pid = 0;
        line->holds = 0;
        line->flags |= LINE_ORPHAN;
        return;
    }
    memset(line, 0, sizeof(*line));
}

static bool is_alive(const struct ledger *ledger, const struct line *line)
{
    uint64_t start_time;

    return line->pid == ledger->pid ||
           (read_start_time(line->pid, &start_time) && start_time == line->start_time);
}

static void strike_dead(struct ledger *ledger)
{
    struct ledger_file *file = ledger->file;
    /* Lines of one process are mostly adjacent, so each process is looked up once. */
    struct line known = {0};
    bool alive = false;

    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line->bytes == 0 || line->pid == 0)
            continue;
        if (line->pid != known.pid || line->start_time != known.start_time) {
            known = *line;
            alive = is_alive(ledger, line);
        }
        if (!alive)
            strike_line(file, line);
    }
    strike_closed(file);
    while (file->lines > 0 && file->line[file->lines - 1].bytes == 0)
        file->lines--;
}

static uint64_t sum_charges(const struct ledger_file *file, unsigned device)
{
    uint64_t used = 0;

    for (uint32_t i = 0; i < file->lines; i++)
        if (file->line[i].device == device && (file->line[i].flags & LINE_CHARGED))
            used += file->line[i].bytes;
    return used;
}

static uint32_t map_file(struct ledger *ledger, const char *path, struct error *why)
{
    struct stat status;
    int result = 0;

    ledger->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (ledger->fd < 0)
        goto failed;
    ledger_lock(ledger);
    if (fstat(ledger->fd, &status) < 0 ||
        (status.st_size == 0 && ftruncate(ledger->fd, sizeof(struct ledger_file)) < 0))
        goto unlock;
    if (status.st_size != 0 && status.st_size != (off_t)sizeof(struct ledger_file)) {
        errno = EPROTO;
        goto unlock;
    }
    ledger->file =
        mmap(NULL, sizeof(struct ledger_file), PROT_READ | PROT_WRITE, MAP_SHARED, ledger->fd, 0);
    if (ledger->file == MAP_FAILED)
        goto unlock;
    if (status.st_size == 0)
        ledger->file->magic = ledger_magic;
    if (ledger->file->magic != ledger_magic || ledger->file->lines > LEDGER_LINES) {
        munmap(ledger->file, sizeof(struct ledger_file));
        errno = EPROTO;
        goto unlock;
    }
    ledger_unlock(ledger);
    return 0;
unlock:
    result = -errno;
    ledger_unlock(ledger);
    close(ledger->fd);
    errno = -result;
failed:
    result = -errno;
    return error_set(why, error_from_errno(result), "SOFTGPU_STATE='%s': %s", path,
                     result == -EPROTO ? "not a state file of this version" : strerror(-result));
}

uint32_t ledger_open(struct ledger **out, const char *path, struct error *why)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    uint32_t error = 0;

    if (!ledger) {
        return error_set(why, PROTO_ERROR_SERVER_RESOURCES, "out of memory");
    }
    ledger->fd = -1;
    pthread_mutex_init(&ledger->lock, NULL);
    ledger->pid = getpid();
    if (!read_start_time(ledger->pid, &ledger->start_time)) {
        error = error_set(why, PROTO_ERROR_SERVER_RESOURCES, "/proc/self/stat cannot be read");
    } else if (path[0]) {
        error = map_file(ledger, path, why);
    } else {
        ledger->file = mmap(NULL, sizeof(struct ledger_file), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (ledger->file == MAP_FAILED) {
            error = error_set(why, PROTO_ERROR_SERVER_RESOURCES, "out of memory");
        }
    }
    if (error) {
        pthread_mutex_destroy(&ledger->lock);
        free(ledger);
        return error;
    }
    *out = ledger;
    return 0;
}

void ledger_close(struct ledger *ledger)
{
    if (!ledger)
        return;
    ledger_lock(ledger);
    for (uint32_t i = 0; i < ledger->file->lines; i++)
        if (ledger->file->line[i].bytes && ledger->file->line[i].pid == ledger->pid)
            strike_line(ledger->file, &ledger->file->line[i]);
    ledger_unlock(ledger);
    munmap(ledger->file, sizeof(struct ledger_file));
    if (ledger->fd >= 0)
        close(ledger->fd);
    pthread_mutex_destroy(&ledger->lock);
    free(ledger);
}

/* Whether the memory is charged already, by any holder. */
static struct line *find_memory(struct ledger_file *file, unsigned device, uint64_t inode)
{
    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line->bytes && line->device == device && line->inode == inode)
            return line;
    }
    return NULL;
}

static int charge_locked(struct ledger *ledger, unsigned device, uint64_t total, uint64_t inode,
                         uint64_t bytes)
{
    struct ledger_file *file = ledger->file;
    struct line *mine = find_line(file, ledger->pid, device, inode);
    struct line *held = inode ? find_memory(file, device, inode) : NULL;

    if (!held) {
        uint64_t used = sum_charges(file, device);

        if (used > total || bytes > total - used) {
            strike_dead(ledger);
            used = sum_charges(file, device);
            mine = find_line(file, ledger->pid, device, inode);
        }
        if (used > total || bytes > total - used)
            return -ENOMEM;
    }
    if (held && (held->flags & LINE_ORPHAN))
        mine = held; /* an orphan's line already has the charge */
    if (!mine) {
        mine = free_line(file);
        if (!mine)
            return -ENOSPC;
        memset(mine, 0, sizeof(*mine));
        mine->inode = inode;
        mine->device = (uint16_t)device;
        mine->flags = held ? 0 : LINE_CHARGED;
    }
    mine->flags &= (uint16_t) ~(LINE_ORPHAN | LINE_OPEN);
    mine->pid = ledger->pid;
    mine->start_time = ledger->start_time;
    mine->bytes = inode ? bytes : mine->bytes + bytes;
    mine->holds++;
    return 0;
}

int ledger_charge(struct ledger *ledger, unsigned device, uint64_t total, uint64_t inode,
                  uint64_t bytes)
{
    int result;

    if (bytes == 0)
        return 0;
    ledger_lock(ledger);
    result = charge_locked(ledger, device, total, inode, bytes);
    ledger_unlock(ledger);
    return result;
}

void ledger_release(struct ledger *ledger, unsigned device, uint64_t inode, uint64_t bytes)
{
    struct line *line;

    if (bytes == 0)
        return;
    ledger_lock(ledger);
    line = find_line(ledger->file, ledger->pid, device, inode);
    if (line) {
        line->holds--;
        if (inode == 0)
            line->bytes -= bytes;
        if (inode == 0 && line->bytes == 0)
            memset(line, 0, sizeof(*line));
        else if (inode != 0 && line->holds == 0)
            strike_line(ledger->file, line);
    }
    ledger_unlock(ledger);
}

void ledger_exported(struct ledger *ledger, unsigned device, uint64_t inode)
{
    struct line *line;

    ledger_lock(ledger);
    line = find_line(ledger->file, ledger->pid, device, inode);
    if (line)
        line->flags |= LINE_EXPORTED;
    ledger_unlock(ledger);
}

/* ---- contexts ---- */

/* A context's line has this in place of an inode, with the process's pid. */
static const uint64_t context_mark = UINT64_C(1) << 63;

static bool others_have_context(const struct ledger *ledger, unsigned device)
{
    for (uint32_t i = 0; i < ledger->file->lines; i++) {
        const struct line *line = &ledger->file->line[i];

        if (line->bytes && line->device == device && (line->inode & context_mark) &&
            line->pid != ledger->pid)
            return true;
    }
    return false;
}

static uint64_t own_context(const struct ledger *ledger)
{
    return context_mark | (uint32_t)ledger->pid;
}

static int begin_locked(struct ledger *ledger, unsigned device, uint64_t total, uint64_t bytes,
                        bool exclusive)
{
    int result;

    strike_dead(ledger);
    if (exclusive && others_have_context(ledger, device))
        return -EBUSY;
    /* A line without bytes is a free one. */
    result = charge_locked(ledger, device, total, own_context(ledger), bytes > 0 ? bytes : 1);
    if (result == 0 && bytes == 0)
        find_line(ledger->file, ledger->pid, device, own_context(ledger))->flags = 0;
    return result;
}

int ledger_context_begin(struct ledger *ledger, unsigned device, uint64_t total, uint64_t bytes,
                         bool exclusive)
{
    int result;

    ledger_lock(ledger);
    result = begin_locked(ledger, device, total, bytes, exclusive);
    ledger_unlock(ledger);
    return result;
}

void ledger_context_end(struct ledger *ledger, unsigned device)
{
    struct line *line;

    ledger_lock(ledger);
    line = find_line(ledger->file, ledger->pid, device, own_context(ledger));
    if (line)
        memset(line, 0, sizeof(*line));
    ledger_unlock(ledger);
}

uint64_t ledger_used(struct ledger *ledger, unsigned device)
{
    uint64_t used;

    ledger_lock(ledger);
    strike_dead(ledger);
    used = sum_charges(ledger->file, device);
    ledger_unlock(ledger);
    return used;
}
