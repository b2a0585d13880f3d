/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The state of modules when another worker has taken over: constants keep what their client wrote,
 * and a module with more than the server can give back is refused until it is loaded again.
 *
 * The oracle is what a kernel reads: it adds what it sees of constants and variables to a word in
 * device memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"
#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* see writes factor, the four words of table, and number behind one another. bump adds 1 to number.
 * The constants' places differ from those in the text: tail is one that no name finds. */
static const char constants_ptx[] =
    HEAD ".visible .const .align 4 .u32 factor = 3;\n"
         ".visible .const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
         ".visible .const .align 1 .b8 odd[3] = {1, 2, 3};\n"
         ".visible .global .align 4 .u32 number = 5;\n"
         ".visible .entry see(.param .u64 to)\n{\n.reg .u64 %a, %n;\n.reg .u32 %v;\n"
         ".const .align 4 .u32 tail = 77;\n"
         "ld.param.u64 %a, [to];\n"
         "ld.const.u32 %v, [factor];\nst.global.u32 [%a], %v;\n"
         "ld.const.u32 %v, [table];\nst.global.u32 [%a+4], %v;\n"
         "ld.const.u32 %v, [table+4];\nst.global.u32 [%a+8], %v;\n"
         "ld.const.u32 %v, [table+8];\nst.global.u32 [%a+12], %v;\n"
         "ld.const.u32 %v, [table+12];\nst.global.u32 [%a+16], %v;\n"
         "ld.const.u8 %v, [odd+1];\nst.global.u32 [%a+20], %v;\n"
         "ld.const.u32 %v, [tail];\nst.global.u32 [%a+24], %v;\n"
         "mov.u64 %n, number;\nld.global.u32 %v, [%n];\nst.global.u32 [%a+28], %v;\nret;\n}\n"
         ".visible .entry bump()\n{\n.reg .u64 %n;\n.reg .u32 %v;\n"
         "mov.u64 %n, number;\natom.global.add.u32 %v, [%n], 1;\nret;\n}\n";

enum { SEEN = 8 };

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;

struct client {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *see, *bump;
    gpushare_address seen, factor, table, odd, number;
};

static struct client client_open(void)
{
    struct client client = {.gpu = arrival_connect(server, 0)};
    uint64_t bytes;
    OK(gpushare_module_load(client.gpu, constants_ptx, 0, &client.module));
    OK(gpushare_module_function(client.module, "see", &client.see));
    OK(gpushare_module_function(client.module, "bump", &client.bump));
    OK(gpushare_module_variable(client.module, "factor", &client.factor, &bytes));
    assert_int_equal(bytes, 4);
    OK(gpushare_module_variable(client.module, "table", &client.table, &bytes));
    assert_int_equal(bytes, 16);
    OK(gpushare_module_variable(client.module, "odd", &client.odd, &bytes));
    assert_int_equal(bytes, 3);
    OK(gpushare_module_variable(client.module, "number", &client.number, &bytes));
    OK(gpushare_memory_alloc(client.gpu, 4 * SEEN, &client.seen));
    return client;
}

/* A kernel and copies see these values. */
static void sees(const struct client *client, const uint32_t *expected)
{
    uint32_t seen[SEEN] = {0}, read[SEEN] = {[6] = 77};
    uint8_t odd[3];
    void *parameters[] = {(void *)&client->seen};
    OK(gpushare_launch(client->see, one, one, 0, NULL, parameters));
    OK(gpushare_copy_from_device(client->gpu, seen, client->seen, sizeof seen));
    assert_memory_equal(seen, expected, sizeof seen);
    OK(gpushare_copy_from_device(client->gpu, &read[0], client->factor, 4));
    OK(gpushare_copy_from_device(client->gpu, &read[1], client->table, 16));
    OK(gpushare_copy_from_device(client->gpu, odd, client->odd, 3));
    OK(gpushare_copy_from_device(client->gpu, &read[7], client->number, 4));
    read[5] = odd[1];
    assert_memory_equal(read, expected, sizeof read);
}

static pid_t worker_of(void)
{
    pid_t worker = 0;
    for (int left = (int)(patience_seconds(20) * 500); left > 0; left--) {
        if (server_workers(server, &worker, 1) == 1)
            return worker;
        usleep(2000);
    }
    fail_msg("there is no worker");
    return 0;
}

static void await_other_worker(pid_t before)
{
    pid_t now = before;
    for (int left = (int)(patience_seconds(20) * 500); left > 0; left--) {
        if (server_workers(server, &now, 1) == 1 && now != before)
            return;
        usleep(2000);
    }
    fail_msg("no other worker was started");
}

/* The next one has all that the clients had when a request of each was answered. */
static void replace_worker(const struct client *client)
{
    struct gpushare_memory_info info = {.size = sizeof info};
    gpushare_event *event;
    pid_t worker = worker_of();
    kill(worker, SIGKILL);
    await_other_worker(worker);
    OK(gpushare_event_create(client->gpu, GPUSHARE_EVENT_TIMING, &event));
    OK(gpushare_event_destroy(event));
    OK(gpushare_memory_info(client->gpu, &info));
}

static void constants_keep_what_was_written(void **state)
{
    (void)state;
    static const uint32_t initial[SEEN] = {3, 10, 20, 30, 40, 2, 77, 5};
    static const uint32_t changed[SEEN] = {7, 10, 21, 31, 40, 9, 77, 6};
    const uint32_t middle[2] = {21, 31};
    const uint8_t odd = 9;
    struct client client = client_open();
    sees(&client, initial);
    replace_worker(&client);
    sees(&client, initial);
    OK(gpushare_fill(client.gpu, client.factor, 7, 4, 1));
    OK(gpushare_copy_to_device(client.gpu, client.table + 4, middle, sizeof middle));
    OK(gpushare_copy_to_device(client.gpu, client.odd + 1, &odd, 1));
    OK(gpushare_launch(client.bump, one, one, 0, NULL, NULL));
    sees(&client, changed);
    for (int i = 0; i < 2; i++) {
        replace_worker(&client);
        sees(&client, changed);
    }
    gpushare_close(&client.gpu);
}

/* Each launch sees the copy that was issued before it, and not the one that follows. */
static void constants_change_in_the_order_of_a_stream(void **state)
{
    (void)state;
    enum { ROUNDS = 50 };
    struct client client = client_open();
    gpushare_stream *stream;
    gpushare_address all;
    void *host;
    OK(gpushare_stream_create(client.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_host_alloc(client.gpu, 4 * ROUNDS, &host));
    OK(gpushare_memory_alloc(client.gpu, 4 * SEEN * ROUNDS, &all));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t *value = (uint32_t *)host + i;
        gpushare_address to = all + 4 * SEEN * i, from = (gpushare_address)(uintptr_t)value;
        void *parameters[] = {&to};
        *value = 1000 + i;
        if (i % 2)
            OK(gpushare_copy_async(client.gpu, client.factor, from, 4, stream));
        else
            OK(gpushare_fill_async(client.gpu, client.factor, *value, 4, 1, stream));
        OK(gpushare_launch(client.see, one, one, 0, stream, parameters));
    }
    OK(gpushare_stream_synchronize(client.gpu, stream));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t seen;
        OK(gpushare_copy_from_device(client.gpu, &seen, all + 4 * SEEN * i, 4));
        assert_int_equal(seen, 1000 + i);
    }
    gpushare_close(&client.gpu);
}

/* Waits until no more than so much of the device is used: what a client of an earlier test had goes
 * with its work. */
static void await_used(gpushare_connection *gpu, uint64_t bytes)
{
    struct gpushare_memory_info info = {.size = sizeof info};
    OK(gpushare_memory_info(gpu, &info));
    for (int left = (int)(patience_seconds(10) * 200); left > 0 && info.used > bytes; left--) {
        usleep(5000);
        OK(gpushare_memory_info(gpu, &info));
    }
    assert_int_equal(info.used, bytes);
}

/* Twins are memory of the client's, and are given back with the module. */
static void constants_are_charged(void **state)
{
    (void)state;
    static const char large[] =
        HEAD ".visible .const .align 4 .b8 large[60000];\n"
             ".visible .entry first(.param .u64 to)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
             "ld.param.u64 %a, [to];\nld.const.u32 %v, [large];\nst.global.u32 [%a], %v;\n"
             "ret;\n}\n";
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_module *modules[64];
    struct gpushare_memory_info info = {.size = sizeof info};
    await_used(gpu, 0);
    for (int i = 0; i < 64; i++)
        OK(gpushare_module_load(gpu, large, 0, &modules[i]));
    OK(gpushare_memory_info(gpu, &info));
    assert_true(info.used >= 64 * 60000);
    for (int i = 0; i < 64; i++)
        OK(gpushare_module_unload(modules[i]));
    await_used(gpu, 0);
    gpushare_close(&gpu);
}

/* ---- modules whose state is lost ---- */

/* Each kernel "mark" adds 1 to the word that it is given. */
#define MARK(before)                                                                               \
    ".visible .entry mark(.param .u64 to)\n{\n.reg .u64 %a, %f;\n.reg .u32 %v;\n"                  \
    "ld.param.u64 %a, [to];\n" before "atom.global.add.u32 %v, [%a], 1;\nret;\n}\n"

static const char plain_ptx[] = HEAD MARK("");
/* A constant holds the address of far, which therefore stays where the driver puts it. */
static const char resident_ptx[] = HEAD ".visible .global .align 4 .u32 far = 1;\n"
                                        ".visible .const .align 8 .u64 holder = far;\n" MARK("");
static const char address_ptx[] = HEAD ".func helper()\n{\nret;\n}\n" MARK("mov.u64 %f, helper;\n");
static const char generic_ptx[] =
    HEAD ".visible .const .align 4 .u32 c = 1;\n" MARK("mov.u64 %f, c;\ncvta.const.u64 %f, %f;\n");
static const char heap_ptx[] =
    HEAD ".extern .func (.param .b64 result) malloc (.param .b64 bytes);\n" MARK("");

struct marked {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *mark, *plain;
    gpushare_address word;
};

static struct marked marked_open(const char *ptx)
{
    struct marked marked = {.gpu = arrival_connect(server, 0)};
    OK(gpushare_module_load(marked.gpu, ptx, 0, &marked.module));
    OK(gpushare_module_function(marked.module, "mark", &marked.mark));
    marked.plain = arrival_load(marked.gpu, plain_ptx, "mark");
    OK(gpushare_memory_alloc(marked.gpu, 4, &marked.word));
    OK(gpushare_fill(marked.gpu, marked.word, 0, 4, 1));
    return marked;
}

static gpushare_error launch(const struct marked *marked, gpushare_function *mark)
{
    void *parameters[] = {(void *)&marked->word};
    return gpushare_launch(mark, one, one, 0, NULL, parameters);
}

static uint32_t marks(const struct marked *marked)
{
    uint32_t value;
    OK(gpushare_copy_from_device(marked->gpu, &value, marked->word, 4));
    return value;
}

#define LOST(call)                                                                                 \
    do {                                                                                           \
        assert_int_equal((call), GPUSHARE_ERROR_STATE_LOST);                                       \
        assert_non_null(strstr(gpushare_error_text(), "load it again"));                           \
    } while (0)

static void replace_marked(const struct marked *marked)
{
    const struct client client = {.gpu = marked->gpu};
    replace_worker(&client);
}

/* others: whether memory may hold an address that any kernel could follow. */
static void is_refused_until_loaded_again(const char *ptx, const char *why, bool others)
{
    struct marked marked = marked_open(ptx);
    gpushare_function *function;
    uint32_t expected = 2;
    OK(launch(&marked, marked.mark));
    OK(launch(&marked, marked.plain));
    assert_int_equal(marks(&marked), expected);
    for (int i = 0; i < 2; i++) {
        replace_marked(&marked);
        LOST(launch(&marked, marked.mark));
        assert_non_null(strstr(gpushare_error_text(), why));
        LOST(gpushare_module_function(marked.module, "other", &function));
        LOST(gpushare_function_set_shared(marked.mark, 1024));
        if (others) {
            LOST(launch(&marked, marked.plain));
            assert_non_null(strstr(gpushare_error_text(), "another module"));
        } else {
            OK(launch(&marked, marked.plain));
            expected++;
        }
        assert_int_equal(marks(&marked), expected);
    }
    OK(gpushare_module_unload(marked.module));
    OK(launch(&marked, marked.plain));
    OK(gpushare_module_load(marked.gpu, ptx, 0, &marked.module));
    OK(gpushare_module_function(marked.module, "mark", &marked.mark));
    OK(launch(&marked, marked.mark));
    OK(launch(&marked, marked.plain));
    assert_int_equal(marks(&marked), expected + 3);
    gpushare_close(&marked.gpu);
}

static void a_module_with_variables_of_the_driver_is_refused(void **state)
{
    (void)state;
    is_refused_until_loaded_again(resident_ptx, "driver's memory", true);
}

static void a_module_with_function_addresses_is_refused(void **state)
{
    (void)state;
    is_refused_until_loaded_again(address_ptx, "addresses of functions", false);
}

static void a_module_with_generic_constants_is_refused(void **state)
{
    (void)state;
    is_refused_until_loaded_again(generic_ptx, "addresses of constants", true);
}

static void a_module_that_allocates_is_refused(void **state)
{
    (void)state;
    is_refused_until_loaded_again(heap_ptx, "allocates memory", true);
}

/* A kernel stores the address of a variable in the driver's memory, and one of another module
 * writes to the address that it finds. */
static const char storing_ptx[] =
    HEAD ".visible .global .align 4 .u32 far = 1;\n.visible .const .align 8 .u64 holder = far;\n"
         ".visible .entry store(.param .u64 to)\n{\n.reg .u64 %a, %f;\nld.param.u64 %a, [to];\n"
         "mov.u64 %f, far;\nst.global.u64 [%a], %f;\nret;\n}\n";
static const char following_ptx[] =
    HEAD ".visible .entry follow(.param .u64 to)\n{\n.reg .u64 %a, %f;\nld.param.u64 %a, [to];\n"
         "ld.global.u64 %f, [%a];\nst.global.u32 [%f], 9;\nret;\n}\n";

static void no_kernel_follows_an_address_of_a_lost_module(void **state)
{
    (void)state;
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_module *storing;
    gpushare_function *store, *follow = arrival_load(gpu, following_ptx, "follow");
    gpushare_address word, far, wanted = 0;
    uint64_t bytes;
    uint32_t value = 0;
    void *parameters[] = {&word};
    OK(gpushare_module_load(gpu, storing_ptx, 0, &storing));
    OK(gpushare_module_function(storing, "store", &store));
    OK(gpushare_module_variable(storing, "far", &far, &bytes));
    OK(gpushare_memory_alloc(gpu, 8, &word));
    OK(gpushare_launch(store, one, one, 0, NULL, parameters));
    OK(gpushare_launch(follow, one, one, 0, NULL, parameters));
    OK(gpushare_copy_from_device(gpu, &value, far, 4));
    assert_int_equal(value, 9);
    replace_marked(&(struct marked){.gpu = gpu});
    LOST(gpushare_launch(follow, one, one, 0, NULL, parameters));
    /* A module that is loaded now finds the address in memory as well. */
    gpushare_function *later = arrival_load(gpu, following_ptx, "follow");
    LOST(gpushare_launch(later, one, one, 0, NULL, parameters));
    OK(gpushare_copy_from_device(gpu, &wanted, word, 8));
    assert_int_equal(wanted, far);
    OK(gpushare_module_unload(storing));
    OK(gpushare_module_load(gpu, storing_ptx, 0, &storing));
    OK(gpushare_module_function(storing, "store", &store));
    OK(gpushare_module_variable(storing, "far", &far, &bytes));
    OK(gpushare_launch(store, one, one, 0, NULL, parameters));
    OK(gpushare_launch(follow, one, one, 0, NULL, parameters));
    OK(gpushare_launch(later, one, one, 0, NULL, parameters));
    OK(gpushare_copy_from_device(gpu, &value, far, 4));
    assert_int_equal(value, 9);
    gpushare_close(&gpu);
}

/* One that is loaded later may call what an earlier one has left in memory. */
static void no_module_calls_a_function_of_a_lost_one(void **state)
{
    (void)state;
    struct marked marked = marked_open(address_ptx);
    OK(launch(&marked, marked.mark));
    assert_int_equal(marks(&marked), 1);
    replace_marked(&marked);
    gpushare_function *later = arrival_load(marked.gpu, address_ptx, "mark");
    LOST(launch(&marked, later));
    assert_non_null(strstr(gpushare_error_text(), "another module"));
    OK(launch(&marked, marked.plain));
    OK(gpushare_module_unload(marked.module));
    OK(launch(&marked, later));
    assert_int_equal(marks(&marked), 3);
    gpushare_close(&marked.gpu);
}

static void variables_of_a_lost_module_are_refused(void **state)
{
    (void)state;
    struct marked marked = marked_open(resident_ptx);
    gpushare_address far, other;
    uint64_t bytes;
    uint32_t value = 8;
    OK(gpushare_module_variable(marked.module, "far", &far, &bytes));
    OK(gpushare_copy_to_device(marked.gpu, far, &value, 4));
    replace_marked(&marked);
    LOST(gpushare_copy_to_device(marked.gpu, far, &value, 4));
    LOST(gpushare_copy_from_device(marked.gpu, &value, far, 4));
    LOST(gpushare_copy(marked.gpu, marked.word, far, 4));
    LOST(gpushare_fill(marked.gpu, far, 1, 4, 1));
    LOST(gpushare_module_variable(marked.module, "far", &other, &bytes));
    OK(gpushare_module_unload(marked.module));
    OK(gpushare_module_load(marked.gpu, resident_ptx, 0, &marked.module));
    OK(gpushare_module_variable(marked.module, "far", &far, &bytes));
    OK(gpushare_copy_from_device(marked.gpu, &value, far, 4));
    assert_int_equal(value, 1);
    gpushare_close(&marked.gpu);
}

/* The supervisor stands still, so the launch and the copy are in their rings before anybody knows
 * that the module is lost. */
static void what_was_queued_for_a_lost_module_interrupts_its_stream(void **state)
{
    (void)state;
    struct marked marked = marked_open(resident_ptx);
    gpushare_stream *stream;
    gpushare_address far;
    uint64_t bytes;
    void *parameters[] = {&marked.word};
    struct gpushare_recovery lost = {.size = sizeof lost};
    OK(gpushare_module_variable(marked.module, "far", &far, &bytes));
    OK(gpushare_stream_create(marked.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_synchronize(marked.gpu));
    kill(server_pid(server), SIGSTOP);
    kill(worker_of(), SIGKILL);
    OK(launch(&marked, marked.plain));
    OK(launch(&marked, marked.mark));
    OK(launch(&marked, marked.plain));
    OK(gpushare_launch(marked.plain, one, one, 0, stream, parameters));
    OK(gpushare_fill_async(marked.gpu, far, 3, 4, 1, stream));
    kill(server_pid(server), SIGCONT);
    assert_int_equal(gpushare_stream_synchronize(marked.gpu, NULL), GPUSHARE_ERROR_INTERRUPTED);
    assert_int_equal(gpushare_stream_synchronize(marked.gpu, stream), GPUSHARE_ERROR_INTERRUPTED);
    OK(gpushare_stream_recover(marked.gpu, NULL, &lost));
    assert_int_equal(lost.dropped, 3);
    OK(gpushare_stream_recover(marked.gpu, stream, &lost));
    assert_int_equal(lost.dropped, 2);
    assert_int_equal(marks(&marked), 0);
    LOST(launch(&marked, marked.mark));
    OK(gpushare_module_unload(marked.module));
    OK(launch(&marked, marked.plain));
    assert_int_equal(marks(&marked), 1);
    gpushare_close(&marked.gpu);
}

/* ---- cubins ---- */

/* The software GPU's cubin: its linker's image. The driver reads it by its places, and not by the
 * names of its sections, so that the same image can have the tables of a real one. */
struct cubin {
    uint8_t bytes[16384];
    size_t size;
};

static void link_ptx(const char *ptx, struct cubin *cubin)
{
    struct cuda_driver cuda;
    struct error why;
    cuda_context context;
    cuda_link link;
    void *image;
    char file[512];
    assert_non_null(
        realpath(server_build_path("lib/softgpu/libcuda.so.1", file, sizeof file), file));
    assert_int_equal(cuda_driver_open(&cuda, file, &why), 0);
    assert_int_equal(cuda.cuInit(0), CUDA_OK);
    assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_OK);
    assert_int_equal(cuda.cuCtxSetCurrent(context), CUDA_OK);
    assert_int_equal(cuda.cuLinkCreate(0, NULL, NULL, &link), CUDA_OK);
    assert_int_equal(cuda.cuLinkAddData(link, CUDA_JIT_INPUT_PTX, (void *)(uintptr_t)ptx,
                                        strlen(ptx) + 1, "module", 0, NULL, NULL),
                     CUDA_OK);
    assert_int_equal(cuda.cuLinkComplete(link, &image, &cubin->size), CUDA_OK);
    assert_true(cubin->size < sizeof cubin->bytes / 2);
    memcpy(cubin->bytes, image, cubin->size);
    cuda.cuLinkDestroy(link);
    cuda.cuDevicePrimaryCtxRelease(0);
}

/* Puts names and symbols behind the image: a section of code, one with the kernel's parameters,
 * and the kernel's symbol. */
static void name_sections(struct cubin *cubin)
{
    static const char names[] = "\0.symtab\0.text.mark\0.nv.info\0mark";
    const Elf64_Sym symbols[2] = {[1] = {.st_name = 29,
                                         .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                         .st_other = 0x10, /* a kernel */
                                         .st_shndx = 2}};
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    memcpy(&header, cubin->bytes, sizeof header);
    assert_int_equal(header.e_shnum, 4);
    memcpy(sections, cubin->bytes + header.e_shoff, sizeof sections);
    header.e_shstrndx = 0;
    sections[0].sh_offset = cubin->size;
    sections[0].sh_size = sizeof names;
    sections[1] = (Elf64_Shdr){.sh_name = 1,
                               .sh_type = SHT_SYMTAB,
                               .sh_offset = cubin->size + sizeof names,
                               .sh_size = sizeof symbols};
    sections[2].sh_name = 9;
    sections[3].sh_name = 20;
    memcpy(cubin->bytes, &header, sizeof header);
    memcpy(cubin->bytes + header.e_shoff, sections, sizeof sections);
    memcpy(cubin->bytes + cubin->size, names, sizeof names);
    memcpy(cubin->bytes + cubin->size + sizeof names, symbols, sizeof symbols);
    cubin->size += sizeof names + sizeof symbols;
}

static void a_cubin_of_kernels_alone_goes_on(void **state)
{
    (void)state;
    struct marked marked = marked_open(plain_ptx);
    struct cubin cubin;
    link_ptx(plain_ptx, &cubin);
    name_sections(&cubin);
    OK(gpushare_module_unload(marked.module));
    OK(gpushare_module_load(marked.gpu, cubin.bytes, cubin.size, &marked.module));
    OK(gpushare_module_function(marked.module, "mark", &marked.mark));
    OK(launch(&marked, marked.mark));
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(marks(&marked), i);
        replace_marked(&marked);
        OK(launch(&marked, marked.mark));
    }
    OK(launch(&marked, marked.plain));
    assert_int_equal(marks(&marked), 5);
    gpushare_close(&marked.gpu);
}

/* The tables as the software GPU writes them have sections that nobody knows. */
static void a_cubin_of_unknown_tables_is_refused(void **state)
{
    (void)state;
    struct marked marked = marked_open(plain_ptx);
    struct cubin cubin;
    link_ptx(plain_ptx, &cubin);
    OK(gpushare_module_unload(marked.module));
    OK(gpushare_module_load(marked.gpu, cubin.bytes, cubin.size, &marked.module));
    OK(gpushare_module_function(marked.module, "mark", &marked.mark));
    OK(launch(&marked, marked.mark));
    assert_int_equal(marks(&marked), 1);
    replace_marked(&marked);
    LOST(launch(&marked, marked.mark));
    assert_non_null(strstr(gpushare_error_text(), "is no PTX"));
    gpushare_close(&marked.gpu);
}

static int start(void **state)
{
    *state = server = server_start(NULL, NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_keep_what_was_written),
        cmocka_unit_test(constants_change_in_the_order_of_a_stream),
        cmocka_unit_test(constants_are_charged),
        cmocka_unit_test(a_module_with_variables_of_the_driver_is_refused),
        cmocka_unit_test(a_module_with_function_addresses_is_refused),
        cmocka_unit_test(a_module_with_generic_constants_is_refused),
        cmocka_unit_test(a_module_that_allocates_is_refused),
        cmocka_unit_test(no_kernel_follows_an_address_of_a_lost_module),
        cmocka_unit_test(no_module_calls_a_function_of_a_lost_one),
        cmocka_unit_test(variables_of_a_lost_module_are_refused),
        cmocka_unit_test(what_was_queued_for_a_lost_module_interrupts_its_stream),
        cmocka_unit_test(a_cubin_of_kernels_alone_goes_on),
        cmocka_unit_test(a_cubin_of_unknown_tables_is_refused),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
