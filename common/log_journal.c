/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/log_journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/messages.h"

enum log_form log_journal_form(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    char rest;
    struct stat status;
    bool journal = stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &rest) == 2 &&
                   !fstat(STDERR_FILENO, &status) && status.st_dev == device &&
                   status.st_ino == inode;
    return journal ? LOG_FORM_JOURNAL : LOG_FORM_TIMED;
}

/* ---- lines with fields ---- */

static struct sockaddr_un journal;
static const char *identifier;
static int journal_fd = -1;

/* Drawn once (`journalctl --new-id128`), and the same in every version. */
static const struct {
    const char *event, *id;
} ids[] = {
    {"ready", "c0e2210a03be4987a5f2dced05c57a50"},
    {"client_ended", "703b10d1284c41768673a1432320cb4c"},
    {"guilty", "4363012586264ffe87d76f5ab5ead5b2"},
    {"suspects", "80e1512c93354692811bc0ce3d725b0d"},
    {"worker_lost", "59c254c83f9c4ef78080e8d9a01df1c5"},
    {"device_trouble", "e458e4eab3f04f3ca000271df3ad2935"},
    {"taken_over", "7fb20cdfa8be49bcad25649d3a7d82c7"},
};

/* NULL: the line is no message of the table. A row that is another's words alone is none either:
 * its format is that of every line whose words were made elsewhere. */
static const char *event_of(const char *format)
{
    const struct message *row;
    if (!format || strcmp(format, "%s") == 0)
        return NULL;
    for (size_t i = 0; (row = messages_at(i)); i++)
        if (row->format == format || strcmp(row->format, format) == 0)
            return strncmp(row->name, "log_", 4) == 0 ? row->name + 4 : row->name;
    return NULL;
}

struct fields {
    char text[2048]; /* a line has 1024 bytes at most */
    size_t bytes;
};

__attribute__((format(printf, 2, 3))) static void add(struct fields *fields, const char *format,
                                                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(fields->text + fields->bytes, sizeof fields->text - fields->bytes,
                           format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < sizeof fields->text - fields->bytes)
        fields->bytes += (size_t)length;
}

static void add_event(struct fields *fields, const char *event)
{
    if (!event)
        return;
    add(fields, "EVENT=%s\n", event);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (strcmp(ids[i].event, event) == 0)
            add(fields, "MESSAGE_ID=%s\n", ids[i].id);
}

static void add_subject(struct fields *fields, const struct log_subject *subject)
{
    if (subject->client)
        add(fields, "CLIENT=%u\nCLIENT_UID=%u\n", subject->client, subject->uid);
    if (subject->client && subject->pid > 0)
        add(fields, "CLIENT_PID=%d\n", subject->pid);
    if (subject->device >= 0)
        add(fields, "DEVICE=%d\n", subject->device);
}

/* Values have no newline: the text has no control character. */
static bool send_line(enum log_level level, const struct log_subject *subject, const char *format,
                      const char *text)
{
    struct fields fields = {.bytes = 0};
    add(&fields, "PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE=%s\n", (int)level, identifier, text);
    add_event(&fields, event_of(format));
    if (subject)
        add_subject(&fields, subject);
    return sendto(journal_fd, fields.text, fields.bytes, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&journal, sizeof journal) == (ssize_t)fields.bytes;
}

int log_journal_open(const char *path, const char *program)
{
    journal = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof journal.sun_path)
        return -ENAMETOOLONG;
    strcpy(journal.sun_path, path);
    journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (journal_fd < 0)
        return -errno;
    identifier = program;
    log_send_by(send_line);
    return 0;
}

void log_journal_close(void)
{
    log_send_by(NULL);
    if (journal_fd >= 0)
        close(journal_fd);
    journal_fd = -1;
}
