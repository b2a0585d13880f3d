/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/memory/charges.h"

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

enum { CHARGES_LINES = 32768 };

/* "SGLEDG01". A change of the layout changes the number. */
static const uint64_t charges_magic = 0x3130474445474c53;

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

struct charges_file {
    uint64_t magic;
    uint32_t lines; /* high-water mark */
    uint32_t reserved;
    struct line line[CHARGES_LINES];
};

struct charges {
    pthread_mutex_t lock; /* flock() does not exclude threads of one process from each other */
    int fd;               /* -1 without a file */
    struct charges_file *file;
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

static void charges_lock(struct charges *charges)
{
    pthread_mutex_lock(&charges->lock);
    if (charges->fd >= 0)
        while (flock(charges->fd, LOCK_EX) < 0 && errno == EINTR)
            ;
}

static void charges_unlock(struct charges *charges)
{
    if (charges->fd >= 0)
        flock(charges->fd, LOCK_UN);
    pthread_mutex_unlock(&charges->lock);
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
static void strike_closed(struct charges_file *file)
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

static struct line *find_line(struct charges_file *file, int32_t pid, unsigned device,
                              uint64_t inode)
{
    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line->bytes && line->pid == pid && line->device == device && line->inode == inode)
            return line;
    }
    return NULL;
}

static struct line *free_line(struct charges_file *file)
{
    for (uint32_t i = 0; i < file->lines; i++)
        if (file->line[i].bytes == 0)
            return &file->line[i];
    return file->lines < CHARGES_LINES ? &file->line[file->lines++] : NULL;
}

/* Another line of the same memory, which can take the charge over. */
static struct line *find_heir(struct charges_file *file, const struct line *leaver)
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
static void strike_line(struct charges_file *file, struct line *line)
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

static bool is_alive(const struct charges *charges, const struct line *line)
{
    uint64_t start_time;

    return line->pid == charges->pid ||
           (read_start_time(line->pid, &start_time) && start_time == line->start_time);
}

static void strike_dead(struct charges *charges)
{
    struct charges_file *file = charges->file;
    /* Lines of one process are mostly adjacent, so each process is looked up once. */
    struct line known = {0};
    bool alive = false;

    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line->bytes == 0 || line->pid == 0)
            continue;
        if (line->pid != known.pid || line->start_time != known.start_time) {
            known = *line;
            alive = is_alive(charges, line);
        }
        if (!alive)
            strike_line(file, line);
    }
    strike_closed(file);
    while (file->lines > 0 && file->line[file->lines - 1].bytes == 0)
        file->lines--;
}

static uint64_t sum_charges(const struct charges_file *file, unsigned device)
{
    uint64_t used = 0;

    for (uint32_t i = 0; i < file->lines; i++)
        if (file->line[i].device == device && (file->line[i].flags & LINE_CHARGED))
            used += file->line[i].bytes;
    return used;
}

static uint32_t map_file(struct charges *charges, const char *path, struct error *why)
{
    struct stat status;
    int result = 0;

    charges->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (charges->fd < 0)
        goto failed;
    charges_lock(charges);
    if (fstat(charges->fd, &status) < 0 ||
        (status.st_size == 0 && ftruncate(charges->fd, sizeof(struct charges_file)) < 0))
        goto unlock;
    if (status.st_size != 0 && status.st_size != (off_t)sizeof(struct charges_file)) {
        errno = EPROTO;
        goto unlock;
    }
    charges->file =
        mmap(NULL, sizeof(struct charges_file), PROT_READ | PROT_WRITE, MAP_SHARED, charges->fd, 0);
    if (charges->file == MAP_FAILED)
        goto unlock;
    if (status.st_size == 0)
        charges->file->magic = charges_magic;
    if (charges->file->magic != charges_magic || charges->file->lines > CHARGES_LINES) {
        munmap(charges->file, sizeof(struct charges_file));
        errno = EPROTO;
        goto unlock;
    }
    charges_unlock(charges);
    return 0;
unlock:
    result = -errno;
    charges_unlock(charges);
    close(charges->fd);
    errno = -result;
failed:
    result = -errno;
    return error_set(why, error_from_errno(result), "SOFTGPU_STATE='%s': %s", path,
                     result == -EPROTO ? "not a state file of this version" : strerror(-result));
}

uint32_t charges_open(struct charges **out, const char *path, struct error *why)
{
    struct charges *charges = calloc(1, sizeof(*charges));
    uint32_t error = 0;

    if (!charges) {
        return error_set(why, PROTO_ERROR_SERVER_RESOURCES, "out of memory");
    }
    charges->fd = -1;
    pthread_mutex_init(&charges->lock, NULL);
    charges->pid = getpid();
    if (!read_start_time(charges->pid, &charges->start_time)) {
        error = error_set(why, PROTO_ERROR_SERVER_RESOURCES, "/proc/self/stat cannot be read");
    } else if (path[0]) {
        error = map_file(charges, path, why);
    } else {
        charges->file = mmap(NULL, sizeof(struct charges_file), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (charges->file == MAP_FAILED) {
            error = error_set(why, PROTO_ERROR_SERVER_RESOURCES, "out of memory");
        }
    }
    if (error) {
        pthread_mutex_destroy(&charges->lock);
        free(charges);
        return error;
    }
    *out = charges;
    return 0;
}

void charges_close(struct charges *charges)
{
    if (!charges)
        return;
    charges_lock(charges);
    for (uint32_t i = 0; i < charges->file->lines; i++)
        if (charges->file->line[i].bytes && charges->file->line[i].pid == charges->pid)
            strike_line(charges->file, &charges->file->line[i]);
    charges_unlock(charges);
    munmap(charges->file, sizeof(struct charges_file));
    if (charges->fd >= 0)
        close(charges->fd);
    pthread_mutex_destroy(&charges->lock);
    free(charges);
}

/* Whether the memory is charged already, by any holder. */
static struct line *find_memory(struct charges_file *file, unsigned device, uint64_t inode)
{
    for (uint32_t i = 0; i < file->lines; i++) {
        struct line *line = &file->line[i];

        if (line->bytes && line->device == device && line->inode == inode)
            return line;
    }
    return NULL;
}

static int charge_locked(struct charges *charges, unsigned device, uint64_t total, uint64_t inode,
                         uint64_t bytes)
{
    struct charges_file *file = charges->file;
    struct line *mine = find_line(file, charges->pid, device, inode);
    struct line *held = inode ? find_memory(file, device, inode) : NULL;

    if (!held) {
        uint64_t used = sum_charges(file, device);

        if (used > total || bytes > total - used) {
            strike_dead(charges);
            used = sum_charges(file, device);
            mine = find_line(file, charges->pid, device, inode);
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
    mine->pid = charges->pid;
    mine->start_time = charges->start_time;
    mine->bytes = inode ? bytes : mine->bytes + bytes;
    mine->holds++;
    return 0;
}

int charges_add(struct charges *charges, unsigned device, uint64_t total, uint64_t inode,
                uint64_t bytes)
{
    int result;

    if (bytes == 0)
        return 0;
    charges_lock(charges);
    result = charge_locked(charges, device, total, inode, bytes);
    charges_unlock(charges);
    return result;
}

void charges_remove(struct charges *charges, unsigned device, uint64_t inode, uint64_t bytes)
{
    struct line *line;

    if (bytes == 0)
        return;
    charges_lock(charges);
    line = find_line(charges->file, charges->pid, device, inode);
    if (line) {
        line->holds--;
        if (inode == 0)
            line->bytes -= bytes;
        if (inode == 0 && line->bytes == 0)
            memset(line, 0, sizeof(*line));
        else if (inode != 0 && line->holds == 0)
            strike_line(charges->file, line);
    }
    charges_unlock(charges);
}

void charges_exported(struct charges *charges, unsigned device, uint64_t inode)
{
    struct line *line;

    charges_lock(charges);
    line = find_line(charges->file, charges->pid, device, inode);
    if (line)
        line->flags |= LINE_EXPORTED;
    charges_unlock(charges);
}

/* ---- contexts ---- */

/* A context's line has this in place of an inode, with the process's pid. */
static const uint64_t context_mark = UINT64_C(1) << 63;

static bool others_have_context(const struct charges *charges, unsigned device)
{
    for (uint32_t i = 0; i < charges->file->lines; i++) {
        const struct line *line = &charges->file->line[i];

        if (line->bytes && line->device == device && (line->inode & context_mark) &&
            line->pid != charges->pid)
            return true;
    }
    return false;
}

static uint64_t own_context(const struct charges *charges)
{
    return context_mark | (uint32_t)charges->pid;
}

static int begin_locked(struct charges *charges, unsigned device, uint64_t total, uint64_t bytes,
                        bool exclusive)
{
    int result;

    strike_dead(charges);
    if (exclusive && others_have_context(charges, device))
        return -EBUSY;
    /* A line without bytes is a free one. */
    result = charge_locked(charges, device, total, own_context(charges), bytes > 0 ? bytes : 1);
    if (result == 0 && bytes == 0)
        find_line(charges->file, charges->pid, device, own_context(charges))->flags = 0;
    return result;
}

int charges_context_begin(struct charges *charges, unsigned device, uint64_t total, uint64_t bytes,
                          bool exclusive)
{
    int result;

    charges_lock(charges);
    result = begin_locked(charges, device, total, bytes, exclusive);
    charges_unlock(charges);
    return result;
}

void charges_context_end(struct charges *charges, unsigned device)
{
    struct line *line;

    charges_lock(charges);
    line = find_line(charges->file, charges->pid, device, own_context(charges));
    if (line)
        memset(line, 0, sizeof(*line));
    charges_unlock(charges);
}

uint64_t charges_used(struct charges *charges, unsigned device)
{
    uint64_t used;

    charges_lock(charges);
    strike_dead(charges);
    used = sum_charges(charges->file, device);
    charges_unlock(charges);
    return used;
}
