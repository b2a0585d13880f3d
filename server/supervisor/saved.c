/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits/allowance.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/regular_file.h"
#include "server/supervisor/config/schedule.h"

#define FILE_NAME "saved.json"
#define NEW_NAME  "saved.json.new"

/* Thousands of totals take a tenth of this. */
#define FILE_BYTES_MAX (4 << 20)
#define SCHEMA_VERSION 1

static const char *const sections[SAVED_KINDS] = {[SAVED_GPU] = "gpus",
                                                  [SAVED_USER] = "users",
                                                  [SAVED_GROUP] = "groups",
                                                  [SAVED_CGROUP] = "cgroups",
                                                  [SAVED_DRAINED] = "drained"};

struct write {
    uv_work_t work;
    struct queue_link link; /* in saved->writes */
    struct saved *saved;
    char *text;
    json_t *document; /* the text's own copy */
    int result;
    saved_done *done;
    void *context;
};

/* ---- reading ---- */

/* A user who may write the file decides about every user's limits. */
static uint32_t check_owner(const struct saved *saved, int fd, struct error *why)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return error_set(why, MESSAGE(saved_unreadable), saved->file, strerror(errno));
    if (!S_ISREG(file.st_mode) || file.st_size > FILE_BYTES_MAX)
        return error_set(why, MESSAGE(saved_no_file), saved->file, FILE_BYTES_MAX >> 20);
    if ((file.st_uid != geteuid() && file.st_uid != 0) || (file.st_mode & (S_IWGRP | S_IWOTH)))
        return error_set(why, MESSAGE(saved_foreign), saved->file, (unsigned)file.st_uid,
                         (unsigned)file.st_mode & 0777U);
    return 0;
}

/* Earlier versions wrote no control groups, and nothing that is drained. */
static bool is_document(json_t *document)
{
    for (enum saved_kind i = SAVED_CGROUP; i <= SAVED_DRAINED; i++)
        if (!json_object_get(document, sections[i]))
            json_object_set_new(document, sections[i], json_object());
    if (json_integer_value(json_object_get(document, "schema_version")) != SCHEMA_VERSION)
        return false;
    for (enum saved_kind i = 0; i < SAVED_KINDS; i++)
        if (!json_is_object(json_object_get(document, sections[i])))
            return false;
    return true;
}

static uint32_t read_document(struct saved *saved, int fd, struct error *why)
{
    json_error_t mistake;
    json_t *document = json_loadfd(fd, JSON_REJECT_DUPLICATES, &mistake);
    if (!document)
        return error_set(why, MESSAGE(saved_not_json), saved->file, mistake.line, mistake.text);
    if (!is_document(document)) {
        json_decref(document);
        return error_set(why, MESSAGE(saved_form), saved->file, SCHEMA_VERSION);
    }
    json_decref(saved->document);
    saved->document = document;
    saved->written = json_deep_copy(document);
    return 0;
}

static uint32_t read_file(struct saved *saved, struct error *why)
{
    int fd = open(saved->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_set(why, MESSAGE(saved_unreadable), saved->file, strerror(errno));
    uint32_t error = check_owner(saved, fd, why);
    if (!error)
        error = read_document(saved, fd, why);
    close(fd);
    return error;
}

static json_t *document_new(void)
{
    return json_pack("{s:i, s:{}, s:{}, s:{}, s:{}, s:{}}", "schema_version", SCHEMA_VERSION,
                     sections[SAVED_GPU], sections[SAVED_USER], sections[SAVED_GROUP],
                     sections[SAVED_CGROUP], sections[SAVED_DRAINED]);
}

uint32_t saved_open(struct saved *saved, uv_loop_t *loop, const char *folder, struct error *why)
{
    *saved = (struct saved){.loop = loop, .document = document_new()};
    if (!saved->document)
        error_set(&saved->trouble, MESSAGE(server_no_memory));
    else if (folder && *folder) {
        snprintf(saved->folder, sizeof saved->folder, "%s", folder);
        snprintf(saved->file, sizeof saved->file, "%s/" FILE_NAME, folder);
        read_file(saved, &saved->trouble);
    }
    if (saved->trouble.number)
        *why = saved->trouble;
    return saved->trouble.number;
}

void saved_close(struct saved *saved)
{
    json_decref(saved->document);
    json_decref(saved->written);
    *saved = (struct saved){0};
}

uint32_t saved_check(const struct saved *saved, struct error *why)
{
    if (saved->trouble.number) {
        *why = saved->trouble;
        return why->number;
    }
    return saved->folder[0] ? 0 : error_set(why, MESSAGE(saved_no_folder));
}

/* ---- the document ---- */

json_t *saved_all(const struct saved *saved, enum saved_kind kind)
{
    return json_object_get(saved->document, sections[kind]);
}

json_t *saved_written(const struct saved *saved, enum saved_kind kind, const char *name)
{
    return json_object_get(json_object_get(saved->written, sections[kind]), name);
}

int saved_put(struct saved *saved, enum saved_kind kind, const char *name, const json_t *values)
{
    json_t *all = json_object_get(saved->document, sections[kind]);
    json_t *copy = json_deep_copy(values), *now = json_object_get(all, name);
    int result = -1;
    if (copy && json_is_object(now))
        result = json_object_update_recursive(now, copy);
    else if (copy)
        result = json_object_set(all, name, copy);
    json_decref(copy);
    return result < 0 ? -ENOMEM : 0;
}

bool saved_take(struct saved *saved, enum saved_kind kind, const char *name, const char *value,
                const char *member)
{
    json_t *all = json_object_get(saved->document, sections[kind]);
    json_t *values = json_object_get(all, name), *one = json_object_get(values, value);
    if (!one || (member && json_object_del(one, member) < 0))
        return false;
    if (!member || json_object_size(one) == 0)
        json_object_del(values, value);
    if (json_object_size(values) == 0)
        json_object_del(all, name);
    return true;
}

bool saved_take_schedule(struct saved *saved, const char *uuid, unsigned parts)
{
    const char *part;
    bool any = false;
    for (size_t i = 0; (part = schedule_part_name(parts, i)); i++)
        any |= saved_take(saved, SAVED_GPU, uuid, part, NULL);
    return any;
}

enum saved_kind saved_kind_of(const struct account_owner *owner)
{
    static const enum saved_kind kinds[] = {
        [TOTAL_USER] = SAVED_USER, [TOTAL_GROUP] = SAVED_GROUP, [TOTAL_CGROUP] = SAVED_CGROUP};
    return kinds[owner->kind];
}

const char *saved_name_of(const struct account_owner *owner, char name[SAVED_NAME])
{
    if (owner->kind == TOTAL_CGROUP)
        snprintf(name, SAVED_NAME, "%s", owner->cgroup);
    else
        snprintf(name, SAVED_NAME, "%u", owner->id);
    return name;
}

bool saved_take_totals(struct saved *saved, const struct account_owner *owner, unsigned parts)
{
    const enum saved_kind kind = saved_kind_of(owner);
    char name[SAVED_NAME];
    bool any = false;
    saved_name_of(owner, name);
    for (enum resource i = 0; i < RESOURCES; i++)
        if (parts & RESOURCE_BIT(i))
            any |= saved_take(saved, kind, name, allowance_resource(i)->name, NULL);
    return any;
}

bool saved_clear(struct saved *saved)
{
    bool any = false;
    for (enum saved_kind i = 0; i < SAVED_DRAINED; i++) {
        json_t *all = json_object_get(saved->document, sections[i]);
        any |= json_object_size(all) > 0;
        json_object_clear(all);
    }
    return any;
}

/* ---- writing ---- */

/* Takes away what is there, which may be a fifo or belong to others, and never opens it. */
static int write_new(int folder, const char *text)
{
    if (unlinkat(folder, NEW_NAME, 0) < 0 && errno != ENOENT)
        return -errno;
    int fd = openat(folder, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    if (fd < 0)
        return -errno;
    int result = regular_file_write(fd, text, strlen(text));
    if (result == 0 && fsync(fd) < 0)
        result = -errno;
    close(fd);
    return result;
}

/* After a crash either the old file is there or the new one, and never a part. */
static int write_file(const char *path, const char *text)
{
    if (mkdir(path, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH) < 0 && errno != EEXIST)
        return -errno;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int result = write_new(folder, text);
    if (result == 0 && renameat(folder, NEW_NAME, folder, FILE_NAME) < 0)
        result = -errno;
    if (result < 0)
        unlinkat(folder, NEW_NAME, 0);
    else if (fsync(folder) < 0)
        result = -errno;
    close(folder);
    return result;
}

static void write_run(uv_work_t *work)
{
    struct write *write = work->data;
    write->result = write_file(write->saved->folder, write->text);
}

static void write_begin(struct write *write);

static void write_ended(uv_work_t *work, int status)
{
    struct write *write = work->data, *next;
    struct saved *saved = write->saved;
    (void)status; /* never cancelled */
    queue_take(&saved->writes);
    saved->failed = -write->result;
    if (write->result < 0) {
        log_error(MESSAGE_TEXT(log_saved_not_written), saved->file, strerror(-write->result));
    } else {
        json_decref(saved->written);
        saved->written = json_incref(write->document);
    }
    if ((next = QUEUE_FIRST(&saved->writes, struct write, link)))
        write_begin(next);
    if (write->done)
        write->done(write->context, write->result);
    json_decref(write->document);
    free(write->text);
    free(write);
}

static void write_begin(struct write *write)
{
    write->work.data = write;
    /* It fails only without a function to run. */
    uv_queue_work(write->saved->loop, &write->work, write_run, write_ended);
}

int saved_write(struct saved *saved, saved_done *done, void *context)
{
    struct write *write = calloc(1, sizeof *write);
    char *text = json_dumps(saved->document, JSON_INDENT(2) | JSON_SORT_KEYS);
    json_t *copy = json_deep_copy(saved->document);
    if (!write || !text || !copy) {
        free(write);
        free(text);
        json_decref(copy);
        return -ENOMEM;
    }
    *write = (struct write){
        .saved = saved, .text = text, .document = copy, .done = done, .context = context};
    bool first = queue_is_empty(&saved->writes);
    queue_append(&saved->writes, &write->link);
    if (first)
        write_begin(write);
    return 0;
}
