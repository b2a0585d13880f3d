/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/fd_store.h"
#include "tests/support/patience.h"

enum { LISTENING = 2, FIRST_FD = 3 }; /* sd_listen_fds(3) */
enum { START_SECONDS = 60, STOP_SECONDS = 60, WORDS_MAX = 64, FOLDER_MAX = 40 };

struct server {
    pid_t pid;
    int notify;             /* -1 with a store */
    struct fd_store *store; /* NULL: a server that nothing outlives */
    int listening[LISTENING];
    char **args, **env; /* with a store: the next server has them too */
    char folder[64];
    char socket[96];
    char admin[96];
    char log[96];
    char config[96]; /* an empty configuration: the machine's own must not count */
};

const char *server_build_path(const char *relative, char *buffer, size_t size)
{
    const char *build = getenv("BUILD");
    snprintf(buffer, size, "%s/%s", build ? build : "build", relative);
    return buffer;
}

static void fail(const struct server *server, const char *what)
{
    char *log = server_log(server);
    fprintf(stderr, "server: %s\n---- log of %s\n%s----\n", what, server->folder, log ? log : "");
    free(log);
    abort();
}

static int open_notify(struct server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", server->folder);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror("server: notify socket");
        abort();
    }
    return fd;
}

const char *server_driver(void)
{
    const char *driver = getenv("TEST_DRIVER");
    return driver ? driver : "softgpu";
}

void server_needs_softgpu(void)
{
    if (strcmp(server_driver(), "softgpu")) {
        printf("only on the software GPU\n");
        exit(77);
    }
}

static bool has_option(const char *const args[], const char *name)
{
    for (size_t i = 0; args && args[i]; i++)
        if (!strcmp(args[i], name))
            return true;
    return false;
}

static unsigned descriptors;

void server_limit_descriptors(unsigned most)
{
    descriptors = most;
}

/* The words of $TEST_SOFTGPU, up to so many. */
static size_t read_softgpu(const char **words, size_t most)
{
    static char text[1024];
    const char *given = getenv("TEST_SOFTGPU");
    size_t count = 0;

    snprintf(text, sizeof text, "%s", given ? given : "");
    for (char *rest, *word = strtok_r(text, " ", &rest); word && count < most;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

/* The descriptors that a server has from the service manager, in the order of their names. */
struct inheritance {
    int *fds;
    size_t count;
    char *names, *number;
};

static void inherit(const struct server *server, struct inheritance *inheritance)
{
    char *names = strdup("LISTEN_FDNAMES=client:admin");
    int *kept, from = FIRST_FD + LISTENING + (int)fd_store_count(server->store);
    size_t count = fd_store_copy(server->store, from, &kept, &names);
    int *fds = calloc(LISTENING + count, sizeof *fds);
    if (!fds || asprintf(&inheritance->number, "LISTEN_FDS=%zu", LISTENING + count) < 0)
        abort();
    for (int i = 0; i < LISTENING; i++)
        fds[i] = fcntl(server->listening[i], F_DUPFD_CLOEXEC, from);
    memcpy(fds + LISTENING, kept, count * sizeof *fds);
    free(kept);
    inheritance->fds = fds;
    inheritance->count = LISTENING + count;
    inheritance->names = names;
}

static void inherit_end(struct inheritance *inheritance)
{
    for (size_t i = 0; i < inheritance->count; i++)
        close(inheritance->fds[i]);
    free(inheritance->fds);
    free(inheritance->names);
    free(inheritance->number);
}

static void spawn(struct server *server, const char *const args[], const char *const env[])
{
    char program[512], notify[128], limited[64], uid[16];
    const char *words[WORDS_MAX];
    const char *settings[WORDS_MAX];
    struct inheritance inheritance = {0};
    size_t n = 0, m = 0;
    server_build_path("bin/gpushared", program, sizeof program);
    /* A process that lowers its hard limit can't raise it again without privileges. */
    snprintf(limited, sizeof limited, "ulimit -n %u && exec \"$0\" \"$@\"", descriptors);
    if (descriptors) {
        words[n++] = "/bin/sh";
        words[n++] = "-c";
        words[n++] = limited;
    }
    if (server->store) {
        inherit(server, &inheritance);
        settings[m++] = inheritance.names;
        settings[m++] = inheritance.number;
        settings[m++] = "FDSTORE=16000";
        words[n++] = "/bin/sh";
        words[n++] = "-c";
        words[n++] = "LISTEN_PID=$$ exec \"$0\" \"$@\"";
    }
    words[n++] = program;
    if (!server->store) {
        words[n++] = "--socket";
        words[n++] = server->socket;
        words[n++] = "--admin-socket";
        words[n++] = server->admin;
    }
    if (!has_option(args, "--driver")) {
        words[n++] = "--driver";
        words[n++] = server_driver();
    }
    /* The test's own user becomes an administrator, so that the test may change the server. */
    snprintf(uid, sizeof uid, "%u", getuid());
    if (getuid() && !has_option(args, "--admin-uid")) {
        words[n++] = "--admin-uid";
        words[n++] = uid;
    }
    if (!has_option(args, "--config")) {
        words[n++] = "--config";
        words[n++] = server->config;
    }
    for (size_t i = 0; args && args[i] && n < WORDS_MAX - 1; i++)
        words[n++] = args[i];
    words[n] = NULL;

    static const char *const passed[] = {"PATH",         "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                         "TSAN_OPTIONS", "LSAN_OPTIONS", "LD_LIBRARY_PATH"};
    static char copies[6][512];
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        const char *value = getenv(passed[i]);
        if (!value)
            continue;
        snprintf(copies[i], sizeof copies[i], "%s=%s", passed[i], value);
        settings[m++] = copies[i];
    }
    snprintf(notify, sizeof notify, "NOTIFY_SOCKET=%s/notify", server->folder);
    settings[m++] = notify;
    for (size_t i = 0; env && env[i] && m < WORDS_MAX - 1; i++)
        settings[m++] = env[i];
    /* Behind the test's own: of two of one name the first counts. */
    m += read_softgpu(&settings[m], WORDS_MAX - 1 - m);
    settings[m] = NULL;

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, server->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    for (size_t i = 0; i < inheritance.count; i++)
        posix_spawn_file_actions_adddup2(&actions, inheritance.fds[i], FIRST_FD + (int)i);
    int error = posix_spawn(&server->pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words,
                            (char *const *)(uintptr_t)settings);
    posix_spawn_file_actions_destroy(&actions);
    inherit_end(&inheritance);
    if (error) {
        fprintf(stderr, "server: %s: %s\n", program, strerror(error));
        abort();
    }
}

/* A socket's path has room for 107 bytes, which a deep folder exceeds. */
static bool make_folder(struct server *server, const char *parent)
{
    if (!parent || strlen(parent) > FOLDER_MAX)
        return false;
    snprintf(server->folder, sizeof server->folder, "%s/gpushare-server-XXXXXX", parent);
    return mkdtemp(server->folder) != NULL;
}

/* A copy of a list of words. NULL stays NULL. */
static char **copy_words(const char *const words[])
{
    size_t count = 0;
    while (words && words[count])
        count++;
    char **copy = words ? calloc(count + 1, sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++)
        copy[i] = strdup(words[i]);
    return copy;
}

static void free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static int listen_at(const char *path, int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 64) < 0) {
        perror(path);
        abort();
    }
    return fd;
}

static struct server *prepare(void)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server)
        abort();
    if (!make_folder(server, "/tmp") && !make_folder(server, getenv("TMPDIR")))
        abort();
    chmod(server->folder, 0755);
    snprintf(server->socket, sizeof server->socket, "%s/gpushare.sock", server->folder);
    snprintf(server->admin, sizeof server->admin, "%s/admin.sock", server->folder);
    snprintf(server->log, sizeof server->log, "%s/log", server->folder);
    snprintf(server->config, sizeof server->config, "%s/none.yaml", server->folder);
    FILE *config = fopen(server->config, "we");
    if (!config || fputs("{}\n", config) < 0 || fclose(config) != 0)
        abort();
    server->notify = -1;
    return server;
}

static void discard(struct server *server)
{
    char path[128];
    if (server->store) {
        for (int i = 0; i < LISTENING; i++)
            close(server->listening[i]);
        fd_store_close(server->store);
        free_words(server->args);
        free_words(server->env);
    } else {
        close(server->notify);
    }
    unlink(server->log);
    unlink(server->config);
    snprintf(path, sizeof path, "%s/notify", server->folder);
    unlink(path);
    unlink(server->socket);
    unlink(server->admin);
    rmdir(server->folder);
    free(server);
}

/* Returns 1 if the server is ready, 0 if it has ended, -1 if neither happens in time. */
static int await_ready(struct server *server, int *status)
{
    for (int i = 0; i < START_SECONDS * 10; i++) {
        struct pollfd poll_fd = {.fd = server->notify, .events = POLLIN};
        if (server->store) {
            if (fd_store_await_ready(server->store, 0.1))
                return 1;
            if (waitpid(server->pid, status, WNOHANG) == server->pid)
                return 0;
            continue;
        }
        if (poll(&poll_fd, 1, 100) > 0) {
            char text[1024];
            ssize_t length = recv(server->notify, text, sizeof text - 1, 0);
            if (length > 0) {
                text[length] = 0;
                if (strstr(text, "READY=1"))
                    return 1;
            }
        }
        if (waitpid(server->pid, status, WNOHANG) == server->pid)
            return 0;
    }
    return -1;
}

static void start(struct server *server, const char *const args[], const char *const env[])
{
    spawn(server, args, env);
    int status = 0;
    int ready = await_ready(server, &status);
    if (ready == 0)
        fail(server, "it ended instead of getting ready");
    if (ready < 0) {
        kill(server->pid, SIGKILL);
        fail(server, "it did not get ready in time");
    }
}

struct server *server_start(const char *const args[], const char *const env[])
{
    struct server *server = prepare();
    server->notify = open_notify(server);
    start(server, args, env);
    return server;
}

struct server *server_start_kept(const char *const args[], const char *const env[])
{
    struct server *server = prepare();
    char path[128];
    /* Orphaned workers become this process's children, as they become systemd's. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(path, sizeof path, "%s/notify", server->folder);
    server->store = fd_store_open(path);
    server->listening[0] = listen_at(server->socket, SOCK_SEQPACKET);
    server->listening[1] = listen_at(server->admin, SOCK_STREAM);
    server->args = copy_words(args);
    server->env = copy_words(env);
    start(server, args, env);
    return server;
}

/* Kills a server that does not end in time, and fails the test with this sentence. */
static void await_end(struct server *server, int *status, const char *failure)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, server->pid, 0), .events = POLLIN};
    if (end.fd < 0)
        fail(server, "somebody else waited for it");
    bool ended = poll(&end, 1, (int)(patience_seconds(STOP_SECONDS) * 1000)) == 1;
    close(end.fd);
    if (!ended) {
        kill(server->pid, SIGKILL);
        fail(server, failure);
    }
    if (waitpid(server->pid, status, 0) != server->pid)
        fail(server, "somebody else waited for it");
}

int server_replace(struct server *server, int signal)
{
    int status = 0;
    kill(server->pid, signal);
    kill(server->pid, SIGCONT); /* one that was stopped would not hear the signal */
    await_end(server, &status, "it did not end after the signal of a replacement");
    fd_store_settle(server->store);
    fd_store_begin(server->store);
    start(server, (const char *const *)server->args, (const char *const *)server->env);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Only the log shows a sanitizer's findings in the server and its workers. A worker's exit
 * status goes to the supervisor, and the worker may have ended long ago. */
static void check_sanitizers(const struct server *server)
{
    char *log = server_log(server);
    bool found = log && (strstr(log, "Sanitizer") || strstr(log, ": runtime error: "));
    free(log);
    if (found)
        fail(server, "a sanitizer found something");
}

int server_start_refused(const char *const args[], const char *const env[], char **log)
{
    struct server *server = prepare();
    server->notify = open_notify(server);
    spawn(server, args, env);
    int status = 0;
    int ready = await_ready(server, &status);
    if (ready != 0) {
        kill(server->pid, SIGKILL);
        fail(server, "it came up, though it should have refused");
    }
    check_sanitizers(server);
    *log = server_log(server);
    discard(server);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *server_socket(const struct server *server)
{
    return server->socket;
}

const char *server_admin_socket(const struct server *server)
{
    return server->admin;
}

pid_t server_pid(const struct server *server)
{
    return server->pid;
}

char *server_log(const struct server *server)
{
    FILE *file = fopen(server->log, "re");
    if (!file)
        return strdup("");
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    char buffer[4096];
    size_t got;
    while (out && (got = fread(buffer, 1, sizeof buffer, file)) > 0)
        fwrite(buffer, 1, got, out);
    fclose(file);
    if (out)
        fclose(out);
    return text;
}

bool server_log_wait(const struct server *server, const char *text)
{
    for (int i = (int)(patience_seconds(10) * 100); i; i--) {
        char *log = server_log(server);
        bool found = log && strstr(log, text);
        free(log);
        if (found)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* Whether a process has ended and its parent has not asked for its status. */
static bool is_zombie(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const char *behind = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (file)
        fclose(file);
    return behind && !strncmp(behind, ") Z", 3);
}

/* A process's own name begins with this one. */
static bool is_called(pid_t pid, const char *name)
{
    char path[64], line[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    bool called = file && fgets(line, sizeof line, file) && !strncmp(line, name, strlen(name));
    if (file)
        fclose(file);
    return called;
}

/* The kernel lists the children of a process by the thread that started them. */
static size_t add_children(const char *path, const char *name, pid_t *pids, size_t most)
{
    size_t count = 0;
    int pid;
    FILE *file = fopen(path, "re");
    while (file && count < most && fscanf(file, "%d", &pid) == 1)
        if (!name || is_called(pid, name))
            pids[count++] = pid;
    if (file)
        fclose(file);
    return count;
}

size_t server_children(pid_t parent, const char *name, pid_t *pids, size_t most)
{
    char path[352];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *folder = opendir(path);
    for (struct dirent *thread; folder && (thread = readdir(folder));) {
        if (thread->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)parent, thread->d_name);
        count += add_children(path, name, pids + count, most - count);
    }
    if (folder)
        closedir(folder);
    return count;
}

size_t server_workers(const struct server *server, pid_t *pids, size_t most)
{
    size_t count = server_children(server->pid, NULL, pids, most);
    /* Those that an earlier server left are this process's, beside its clients. */
    if (server->store)
        count += server_children(getpid(), "gpushare-worke", pids + count, most - count);
    for (size_t i = 0; i < count;) {
        /* Nobody but this process can reap its own, and a dead one serves nobody. */
        if ((server->store && waitpid(pids[i], NULL, WNOHANG) == pids[i]) || is_zombie(pids[i]))
            pids[i] = pids[--count];
        else
            i++;
    }
    return count;
}

size_t server_fd_count(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    size_t count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count > 2 ? count - 2 : 0;
}

uint64_t server_shared_bytes(pid_t pid)
{
    static const char made_by_it[] = "/memfd:gpushare-";
    char path[64], name[352], target[256];
    uint64_t bytes = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat file;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        ssize_t length = readlink(name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        if (!strncmp(target, made_by_it, sizeof made_by_it - 1) && stat(name, &file) == 0)
            bytes += (uint64_t)file.st_blocks * 512;
    }
    if (folder)
        closedir(folder);
    return bytes;
}

/* Whether a process has ended. Its number may still be there: an orphan's is, until the process
 * that inherited it asks for its status, which the first process of a container may never do. */
static bool gone(pid_t pid)
{
    (void)waitpid(pid, NULL, WNOHANG); /* an orphan of a kept server */
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH;
    bool ended = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
    close(fd);
    return ended;
}

void server_kill(struct server *server)
{
    pid_t workers[16];
    size_t count = server_workers(server, workers, 16);
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    for (size_t i = 0; server->store && i < count; i++)
        kill(workers[i], SIGKILL);
    for (size_t i = 0; i < count; i++) {
        for (int n = 0; !gone(workers[i]) && n < 1000; n++)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (!gone(workers[i]))
            fail(server, "a worker outlived it by ten seconds");
    }
    check_sanitizers(server);
    discard(server);
}

int server_stop(struct server *server)
{
    pid_t workers[16];
    size_t count = server_workers(server, workers, 16);
    kill(server->pid, SIGTERM);
    int status = 0;
    await_end(server, &status, "it did not end after SIGTERM");
    for (size_t i = 0; i < count; i++) {
        /* An orphan is ended, but not waited for. */
        for (int left = STOP_SECONDS * 100; server->store && !gone(workers[i]) && left > 0; left--)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (!gone(workers[i]))
            fail(server, "a worker outlived it");
    }
    if (server->store) {
        fd_store_settle(server->store);
        if (fd_store_count(server->store))
            fail(server, "a stop left descriptors with the service manager");
        unlink(server->socket);
        unlink(server->admin);
    } else if (access(server->socket, F_OK) == 0 || access(server->admin, F_OK) == 0)
        fail(server, "it left a socket behind");
    check_sanitizers(server);
    int result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (result) {
        char *log = server_log(server);
        fprintf(stderr, "server: exit status %d; its log:\n%s", result, log ? log : "");
        free(log);
    }
    discard(server);
    return result;
}

int server_teardown(void **state)
{
    return server_stop(*state);
}
