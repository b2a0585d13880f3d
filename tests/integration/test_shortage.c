/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Each call by which a recovery asks the system for something is failed in turn: in the supervisor,
 * and in the worker that takes over. The server stays, nobody hangs, and a client without work in
 * flight goes on with all that it has, or is told in words why not.
 *
 * long: each failed call takes a worker
 * draining: not, the calls that are failed are the system's
 * $TEST_STRIDE says that each so-manieth call is failed, from a random first one on; `make chaos`
 * has 1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/programs/shortage/shortage.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

enum { CLIENTS = 2, WORDS = 1024, CALLS_MAX = 4000, QUIET_US = 20000, LOG_TAIL = 6000 };

static const char bump_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .u32 total = 5;\n"
    ".visible .entry bump(.param .u64 word)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "ld.param.u64 %a, [word];\natom.global.add.u32 %v, [%a], 1;\n"
    "mov.u64 %a, total;\natom.global.add.u32 %v, [%a], 1;\nret;\n}\n";

struct client {
    gpushare_connection *gpu;
    gpushare_function *bump;
    gpushare_stream *stream;
    gpushare_address word, total;
    uint32_t launched;
    uint32_t *host;
};

static char library[512], path[256], wrapper[256];
static struct shortage *shortage;
static struct server *server;
static unsigned random_state, lost, refused, kept;

static void client_open(struct client *client)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_module *module;
    uint64_t bytes;
    void *host;
    gpushare_error error = GPUSHARE_ERROR_DEVICE_NOT_READY;
    for (int left = (int)patience_seconds(60) * 100;
         left > 0 && error == GPUSHARE_ERROR_DEVICE_NOT_READY; left--) {
        error = gpushare_connect(&options, &client->gpu);
        if (error == GPUSHARE_ERROR_DEVICE_NOT_READY)
            usleep(10000);
    }
    ok_check(error, "gpushare_connect", __FILE__, __LINE__);
    OK(gpushare_module_load(client->gpu, bump_ptx, 0, &module));
    OK(gpushare_module_function(module, "bump", &client->bump));
    OK(gpushare_module_variable(module, "total", &client->total, &bytes));
    OK(gpushare_memory_alloc(client->gpu, 4, &client->word));
    OK(gpushare_fill(client->gpu, client->word, 0, 4, 1));
    OK(gpushare_host_alloc(client->gpu, 4 * WORDS, &host));
    OK(gpushare_stream_create(client->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &client->stream));
    client->host = host;
    for (uint32_t i = 0; i < WORDS; i++)
        client->host[i] = i;
    client->launched = 0;
}

static gpushare_error work(struct client *client)
{
    const struct gpushare_dim one = {1, 1, 1};
    uint32_t word, total;
    void *parameters[] = {&client->word};
    gpushare_error error = gpushare_launch(client->bump, one, one, 0, client->stream, parameters);
    if (!error)
        error = gpushare_stream_synchronize(client->gpu, client->stream);
    if (!error)
        error = gpushare_copy_from_device(client->gpu, &word, client->word, 4);
    if (!error)
        error = gpushare_copy_from_device(client->gpu, &total, client->total, 4);
    if (error)
        return error;
    client->launched++;
    assert_int_equal(word, client->launched);
    assert_int_equal(total, client->launched + 5);
    assert_int_equal(client->host[WORDS - 1], WORDS - 1);
    return GPUSHARE_SUCCESS;
}

static void arm(uint32_t call)
{
    struct shortage *page = shortage;
    /* gcc's UBSan looks for NULL, and then gcc warns of the way on which it is. */
    if (!page)
        abort();
    atomic_store(&page->count, 0);
    atomic_store(&page->failed, 0);
    atomic_store(&page->fail_at, call);
    memset(page->name, 0, sizeof page->name);
    atomic_store(&page->armed, 1);
}

/* A call of a client, or all of it, may be ended by what was failed; then it is told why. */
static void judge(struct client *client, uint32_t call)
{
    gpushare_error error = work(client);
    if (!error) {
        kept++;
        return;
    }
    if (strlen(gpushare_error_text()) < 20)
        fail_msg("call %u (%s): %s, and no sentence: \"%s\"", call, shortage->name,
                 gpushare_error_name(error), gpushare_error_text());
    if (gpushare_connection_error(client->gpu, NULL))
        lost++;
    else
        refused++;
    gpushare_close(&client->gpu);
    client_open(client);
}

static bool is_alive(pid_t pid)
{
    char name[64], text[256] = "";
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "re");
    const char *behind = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    bool alive = behind && behind[2] != 'Z';
    if (file)
        fclose(file);
    return alive;
}

/* Returns whether the recovery made so many calls. */
static bool fail_call(struct client *clients, uint32_t call)
{
    pid_t worker = 0;
    for (int left = (int)patience_seconds(60) * 1000;
         left > 0 && server_workers(server, &worker, 1) != 1; left--)
        usleep(1000);
    arm(call);
    kill(worker, SIGKILL);
    for (int i = 0; i < CLIENTS; i++)
        judge(&clients[i], call);
    usleep(QUIET_US);
    atomic_store(&shortage->armed, 0);
    if (!is_alive(server_pid(server)))
        fail_msg("the server ended when call %u (%s) was failed", call, shortage->name);
    for (int i = 0; i < CLIENTS; i++)
        if (work(&clients[i])) {
            char *log = server_log(server);
            size_t length = strlen(log);
            fprintf(stderr, "%s\n", log + (length > LOG_TAIL ? length - LOG_TAIL : 0));
            free(log);
            fail_msg("when call %u (%s) was failed, client %d did not go on: %s", call,
                     shortage->name, i, gpushare_error_text());
        }
    return atomic_load(&shortage->failed) > 0;
}

/* least: calls that a recovery makes at least, half of what a run showed. A recovery that seems to
 * make fewer has not been watched. */
static void run(const char *const args[], const char *const env[], const char *who,
                uint32_t usual_stride, uint32_t least)
{
    struct client clients[CLIENTS] = {{0}};
    uint32_t stride = (uint32_t)seed_number("TEST_STRIDE", usual_stride), failed = 0;
    uint32_t call = 1 + (uint32_t)rand_r(&random_state) % stride;
    server = server_start(args, env);
    lost = refused = kept = 0;
    for (int i = 0; i < CLIENTS; i++)
        client_open(&clients[i]);
    (void)fail_call(clients, UINT32_MAX);
    size_t descriptors = server_fd_count(server_pid(server));
    while (call < CALLS_MAX && fail_call(clients, call)) {
        failed++;
        call += stride;
    }
    assert_in_range(failed * stride, least, CALLS_MAX);
    for (int left = (int)patience_seconds(20) * 100;
         left > 0 && server_fd_count(server_pid(server)) > descriptors; left--)
        usleep(10000);
    assert_in_range(server_fd_count(server_pid(server)), 0, descriptors);
    for (int i = 0; i < CLIENTS; i++)
        gpushare_close(&clients[i].gpu);
    print_message(
        "%s: %u of some %u calls were failed; clients went on %u times, had a call refused "
        "%u times, and were ended in words %u times\n",
        who, failed, call, kept, refused, lost);
    assert_int_equal(server_stop(server), 0);
}

static void a_supervisor_survives_each_failed_call(void **state)
{
    char preload[600], file[300];
    (void)state;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    snprintf(file, sizeof file, "SHORTAGE_FILE=%s", path);
    const char *const env[] = {preload, file, NULL};
    run(NULL, env, "supervisor", 7, 45);
}

/* A worker that fails at its start is followed by another one. */
static void a_worker_that_fails_a_call_costs_nobody_in_silence(void **state)
{
    char worker[512];
    (void)state;
    FILE *script = fopen(wrapper, "we");
    assert_non_null(script);
    fprintf(script, "#!/bin/sh\nexport LD_PRELOAD=%s SHORTAGE_FILE=%s\nexec %s \"$@\"\n", library,
            path, server_build_path("libexec/gpushare-worker", worker, sizeof worker));
    assert_int_equal(fclose(script), 0);
    assert_int_equal(chmod(wrapper, 0700), 0);
    const char *const args[] = {"--worker", wrapper, NULL};
    run(args, NULL, "worker", 101, 900);
    unlink(wrapper);
}

static int start(void **state)
{
    const char *folder = getenv("TMPDIR");
    (void)state;
    random_state = seed_draw();
    server_build_path("tests/programs/shortage/shortage.so", library, sizeof library);
    snprintf(path, sizeof path, "%s/shortage-%d", folder ? folder : "/tmp", (int)getpid());
    snprintf(wrapper, sizeof wrapper, "%s/worker-%d", folder ? folder : "/tmp", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shortage) < 0)
        return -1;
    void *page = mmap(NULL, sizeof *shortage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    shortage = page;
    return page == MAP_FAILED ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    munmap(shortage, sizeof *shortage);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_supervisor_survives_each_failed_call),
        cmocka_unit_test(a_worker_that_fails_a_call_costs_nobody_in_silence),
    };
    server_needs_softgpu();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* The library replaces malloc, as a sanitizer does, which has to be the first to. The same
     * calls fail in every build without one. */
    printf("a sanitizer has allocations of its own\n");
    return 77;
#endif
    return cmocka_run_group_tests(tests, start, stop);
}
