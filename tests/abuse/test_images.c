/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Module images made to hurt: text on which a careless reader writes beyond its
 * memory, takes quadratic time or unbounded memory, or that are not what they are called. Beside
 * them an honest neighbour computes, and another client's requests must go on being answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <elf.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cuda/fatbin.h"
#include "tests/support/neighbour.h"
#include "tests/support/patience.h"
#include "tests/support/raw.h"

#define HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"

static struct server *server;
static struct neighbour *neighbour;
static size_t fds_before;
static pid_t worker_before;

static int start(void **state)
{
    (void)state;
    server = server_start(NULL, NULL);
    neighbour = neighbour_start(server);
    fds_before = server_fd_count(server_pid(server));
    return server_workers(server, &worker_before, 1) == 1 ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    size_t count = 0;
    pid_t worker = 0;
    for (int left = (int)(patience_seconds(60) * 100);
         (count = server_fd_count(server_pid(server))) > fds_before + 4 && left; left--)
        usleep(10000);
    assert_true(count <= fds_before + 4);
    assert_int_equal(server_workers(server, &worker, 1), 1);
    assert_int_equal(worker, worker_before);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
    return 0;
}

/* ---- a text that grows ---- */

struct text {
    char *bytes;
    size_t count, room;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    if (text->room - text->count < 4096) {
        text->room = text->room ? text->room * 2 : 1 << 20;
        text->bytes = realloc(text->bytes, text->room);
        assert_non_null(text->bytes);
    }
    va_start(arguments, format);
    text->count += (size_t)vsnprintf(text->bytes + text->count, 4096, format, arguments);
    va_end(arguments);
}

static uint32_t load(struct raw *raw, const void *bytes, size_t count)
{
    struct proto_module_load ask = {.count = count};
    int fd = raw_memfd(bytes, count);
    uint32_t error = raw_ask(raw, PROTO_MODULE_LOAD, &ask, NULL, 0, fd);
    close(fd);
    return error;
}

/* The CPU time of those of a process's threads that may hold up a request: the neighbour's kernels
 * and launches (softgpu, submitter) go on all the time, and hold up nobody. */
static double worked(pid_t pid)
{
    char path[96], name[32];
    double seconds = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        unsigned long long ns = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/comm", (int)pid, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        bool counts = file && fgets(name, sizeof name, file) && strcmp(name, "softgpu\n") != 0 &&
                      strcmp(name, "submitter\n") != 0;
        if (file)
            fclose(file);
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int)pid, entry->d_name);
        file = counts ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%llu", &ns) == 1)
            seconds += (double)ns / 1e9;
        if (file)
            fclose(file);
    }
    closedir(folder);
    return seconds;
}

/* On a machine with other work the clock on the wall runs on while the server does not. */
static double server_worked(void)
{
    return worked(server_pid(server)) + worked(worker_before);
}

static bool answered(const struct raw *raw)
{
    struct pollfd at = {.fd = raw->fd, .events = POLLIN};
    return poll(&at, 1, 0) > 0;
}

/*
 * Loads it from one connection while another asks the worker for memory again and again, until the
 * first has its answer; returns the most that the server worked while the other waited, in seconds.
 * Whether the image is taken or refused is its own affair.
 */
static double longest_wait_beside(const struct text *text, unsigned *asked)
{
    struct raw culprit, other;
    raw_attach(&culprit, server, 64 << 20);
    raw_attach(&other, server, 64 << 20);
    struct proto_module_load ask = {.count = text->count};
    int fd = raw_memfd(text->bytes, text->count);
    assert_int_equal(channel_send(culprit.fd, &(struct channel_packet){.opcode = PROTO_MODULE_LOAD,
                                                                       .serial = 99,
                                                                       .body = &ask,
                                                                       .fds = &fd,
                                                                       .fd_count = 1}),
                     0);
    close(fd);
    double longest = 0;
    for (*asked = 0; !answered(&culprit) || *asked < 20; ++*asked) {
        double began = server_worked();
        uint64_t address = raw_alloc(&other, 2 << 20);
        double took = server_worked() - began;
        assert_int_not_equal(address, 0);
        longest = took > longest ? took : longest;
        struct proto_memory_free gone = {.address = address};
        assert_int_equal(raw_ask(&other, PROTO_MEMORY_FREE, &gone, NULL, 0, -1), 0);
        usleep(5000);
    }
    raw_close(&other);
    raw_close(&culprit);
    return longest;
}

static void check_wait(struct text *text, const char *what)
{
    unsigned asked;
    double longest = longest_wait_beside(text, &asked);
    print_message("%s: %zu KiB, the other asked %u times and waited for %.3f s of work at most\n",
                  what, text->count >> 10, asked, longest);
    free(text->bytes);
    if (longest > 1.0)
        fail_msg("another client waited for memory while the server worked for %.1f s", longest);
}

/* ---- the attacks ---- */

/* A variable that is declared extern before it is defined, alone and among others of one
 * statement: where its statement ends was not known, and the text was put together wrongly. */
static void a_redeclared_variable_does_not_overrun_the_new_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        ".extern .global .u32 a;\n.visible .global .u32 a;\n",
        ".visible .global .u32 a;\n.extern .global .u32 a;\n",
        ".extern .global .u32 a;\n.global .u32 b, a, c;\n",
        ".extern .global .u32 a;\n.global .u32 x;\n.global .u32 b, a, c;\n",
        ".extern .global .u32 a, a, a;\n.global .u32 b, a, c;\n.extern .global .u32 b;\n",
    };
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct text text = {0};
        say(&text, HEADER "%s", texts[i]);
        for (int k = 0; k < 400; k++)
            say(&text, "// the longer the text behind it, the further a wrong copy would reach\n");
        say(&text,
            ".visible .entry k()\n{\n.reg .u32 %%r<2>;\nld.global.u32 %%r1, [a];\nret;\n}\n");
        uint32_t error = load(&raw, text.bytes, text.count);
        assert_int_not_equal(error, PROTO_ERROR_CONNECTION_LOST);
        assert_int_not_equal(error, PROTO_ERROR_WORKER_LOST);
        free(text.bytes);
    }
    raw_close(&raw);
}

static void more_variables_in_a_statement_than_any_compiler_writes(void **state)
{
    (void)state;
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    struct text text = {0};
    say(&text, HEADER ".global .u32 v0");
    for (int i = 1; i < 300; i++)
        say(&text, ", v%d", i);
    say(&text,
        ";\n.visible .entry k()\n{\n.reg .u32 %%r<2>;\nld.global.u32 %%r1, [v299];\nret;\n}\n");
    assert_int_equal(load(&raw, text.bytes, text.count), 0);
    free(text.bytes);
    raw_close(&raw);
}

enum { MANY = 200000 };

static void very_many_variables_cost_others_no_time(void **state)
{
    (void)state;
    struct text text = {0};
    say(&text, HEADER);
    for (int i = 0; i < MANY; i++)
        say(&text, ".global .u32 v%d;\n", i);
    check_wait(&text, "variables");
}

/* Whether one stays decides about the one before it, and so on to the first. */
static void a_long_chain_of_addresses_costs_others_no_time(void **state)
{
    (void)state;
    struct text text = {0};
    say(&text, HEADER ".const .u64 c = 1;\n.global .u64 v0 = c;\n");
    for (int i = 1; i < MANY; i++)
        say(&text, ".global .u64 v%d = v%d;\n", i, i - 1);
    check_wait(&text, "chain");
}

static void one_statement_with_very_many_variables_costs_others_no_time(void **state)
{
    (void)state;
    struct text text = {0};
    say(&text, HEADER ".global .align 1024 .u32 v0");
    for (int i = 1; i < MANY; i++)
        say(&text, ", v%d", i);
    say(&text, ";\n");
    check_wait(&text, "statement");
}

static void debugging_sections_that_name_nothing_cost_others_no_time(void **state)
{
    (void)state;
    struct text text = {0};
    say(&text, HEADER);
    for (int i = 0; i < MANY / 4; i++)
        say(&text, ".global .u32 v%d;\n", i);
    say(&text, ".section .debug_info\n{\n");
    for (int i = 0; i < MANY / 4; i++)
        say(&text, ".b64 w%d\n", i);
    say(&text, "}\n");
    check_wait(&text, "section");
}

/* Nothing is wrong with it but its length: it compiles for seconds. */
static void a_text_that_compiles_for_long_does_not_hold_up_others(void **state)
{
    (void)state;
    struct text text = {0};
    say(&text, HEADER ".visible .entry k()\n{\n");
    for (int i = 0; i < 2000000; i++)
        say(&text, "ret;");
    say(&text, "\n}\n");
    check_wait(&text, "length");
}

/* Two clients have a text each at the two threads that read, and a third one loads its own. Where
 * it comes last, both texts are read before it: 1.3 s of work with the longest names, several times
 * that in a build that checks each access; the fault that it looks for needs minutes. */
static void check_load_beside(struct text *text, const char *what)
{
    static const char small[] = HEADER ".visible .entry k()\n{\nret;\n}\n";
    struct raw culprits[2], other;
    raw_attach(&other, server, 64 << 20);
    for (int i = 0; i < 2; i++) {
        struct proto_module_load ask = {.count = text->count};
        raw_attach(&culprits[i], server, 64 << 20);
        int fd = raw_memfd(text->bytes, text->count);
        assert_int_equal(
            channel_send(culprits[i].fd, &(struct channel_packet){.opcode = PROTO_MODULE_LOAD,
                                                                  .serial = 99,
                                                                  .body = &ask,
                                                                  .fds = &fd,
                                                                  .fd_count = 1}),
            0);
        close(fd);
    }
    double began = server_worked();
    assert_int_equal(load(&other, small, sizeof small - 1), 0);
    double took = server_worked() - began;
    print_message("%s: %zu KiB twice, the other's load waited for %.3f s of work\n", what,
                  text->count >> 10, took);
    for (int i = 0; i < 2; i++)
        raw_close(&culprits[i]);
    raw_close(&other);
    free(text->bytes);
    if (took > patience_seconds(5))
        fail_msg("another client's load waited while the server worked for %.1f s", took);
}

/* A reader that looks for a free name of its own in a search for each number needs minutes. */
static void words_like_the_servers_own_cost_others_no_time(void **state)
{
    (void)state;
    struct text text = {0};
    say(&text, HEADER "/*");
    for (int i = MANY; i-- > 0;)
        say(&text, "gpushare%d_\n", i);
    say(&text, "*/\n.visible .entry k()\n{\nret;\n}\n");
    check_load_beside(&text, "words");
}

/* A reader that goes through a name anew for each block around it needs minutes. */
static void long_names_in_nested_blocks_cost_others_no_time(void **state)
{
    (void)state;
    static char name[65536];
    struct text text = {0};
    memset(name, 'b', sizeof name - 16);
    say(&text, HEADER ".visible .entry k()\n");
    for (int i = 0; i < 250; i++)
        say(&text, "{");
    say(&text, ".reg .u32 %%x;\n");
    for (int use = 0; use < 64; use++) {
        say(&text, "mov.u32 %%x, %%");
        for (size_t at = 0; at < sizeof name - 16; at += 2048)
            say(&text, "%.2048s", name + at);
        say(&text, "11111111;\n");
    }
    for (int i = 0; i < 250; i++)
        say(&text, "}");
    check_load_beside(&text, "names");
}

/* Each is small enough; together they would be gigabytes that no limit counts. */
static void constants_beyond_what_a_module_may_have_are_refused(void **state)
{
    (void)state;
    struct raw raw;
    struct text text = {0};
    raw_attach(&raw, server, 64 << 20);
    say(&text, HEADER);
    for (int i = 0; i < 20000; i++)
        say(&text, ".const .align 8 .b8 c%d[65536];\n", i);
    assert_int_not_equal(load(&raw, text.bytes, text.count), 0);
    free(text.bytes);
    raw_close(&raw);
}

/* ---- what is called a cubin ---- */

struct fatbin_file {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    uint16_t kind, entry_version;
    uint32_t entry_bytes;
    uint64_t payload_bytes;
    uint64_t pad0;
    uint32_t pad1, arch;
    uint64_t pad2[4];
    uint8_t payload[1024];
};

static struct fatbin_file fatbin_of(uint16_t kind, const void *payload, size_t bytes)
{
    struct fatbin_file file = {.magic = FATBIN_MAGIC,
                               .version = 1,
                               .header_bytes = 16,
                               .bytes = 64 + sizeof file.payload,
                               .kind = kind,
                               .entry_version = 0x101,
                               .entry_bytes = 64,
                               .payload_bytes = sizeof file.payload,
                               .arch = kind == FATBIN_PTX ? 75 : 90};
    assert_true(bytes <= sizeof file.payload);
    memcpy(file.payload, payload, bytes);
    return file;
}

static void expect_no_cubin(const void *bytes, size_t count)
{
    struct fatbin_file file = fatbin_of(FATBIN_CUBIN, bytes, count);
    struct raw raw;
    raw_attach(&raw, server, UINT64_C(16) << 20);
    uint32_t error = load(&raw, &file, sizeof file);
    assert_int_equal(error, PROTO_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(((const struct proto_failed *)raw.reply.body)->text, "no ELF file"));
    raw_close(&raw);
}

/* A driver is given no more than an address. It takes a text or a fatbin there as well, whose
 * variables nobody has counted, and a wrapper, which has an address that it follows. */
static void what_is_called_a_cubin_and_is_none_is_refused(void **state)
{
    (void)state;
    static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                               ".visible .global .align 8 .b8 big[1073741824];\n"
                               ".visible .entry k()\n{\nret;\n}\n";
    const struct {
        uint32_t magic, version;
        uint64_t data, unused;
    } wrapper = {FATBIN_WRAPPER_MAGIC, 1, 1, 0};
    struct fatbin_file inner = fatbin_of(FATBIN_PTX, text, sizeof text);
    inner.bytes -= sizeof inner.payload - 512;
    inner.payload_bytes = 512;
    expect_no_cubin(text, sizeof text);
    expect_no_cubin(&inner, offsetof(struct fatbin_file, payload) + 512);
    expect_no_cubin(&wrapper, sizeof wrapper);
    expect_no_cubin("\177ELF", 5);
}

/* Nor is it told where the image ends: it reads where the headers say. */
static void a_cubin_that_says_to_be_longer_than_it_is_is_refused(void **state)
{
    (void)state;
    struct cubin {
        Elf64_Ehdr elf;
        Elf64_Shdr sections[4];
        char names[40];
    } cubin = {.elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                   EV_CURRENT, 51, 7},
                       .e_type = ET_EXEC,
                       .e_machine = 190, /* CUDA */
                       .e_version = EV_CURRENT,
                       .e_shoff = sizeof(Elf64_Ehdr),
                       .e_flags = 90 | 90 << 16,
                       .e_ehsize = sizeof(Elf64_Ehdr),
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 4,
                       .e_shstrndx = 1},
               /* The names that the software GPU's linker gives, so that it reads the rest. */
               .names = "\0.shstrtab\0.softgpu.ptx\0.softgpu.info"};
    const uint64_t end = sizeof cubin;
    cubin.sections[1] = (Elf64_Shdr){.sh_name = 1,
                                     .sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct cubin, names),
                                     .sh_size = sizeof cubin.names};
    cubin.sections[2] = (Elf64_Shdr){
        .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = end, .sh_size = UINT64_C(1) << 40};
    cubin.sections[3] = (Elf64_Shdr){.sh_name = 24,
                                     .sh_type = SHT_PROGBITS,
                                     .sh_offset = end + (UINT64_C(1) << 40),
                                     .sh_size = 16};
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    assert_int_equal(load(&raw, &cubin, sizeof cubin), PROTO_ERROR_INVALID_IMAGE);
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redeclared_variable_does_not_overrun_the_new_text),
        cmocka_unit_test(more_variables_in_a_statement_than_any_compiler_writes),
        cmocka_unit_test(very_many_variables_cost_others_no_time),
        cmocka_unit_test(a_long_chain_of_addresses_costs_others_no_time),
        cmocka_unit_test(one_statement_with_very_many_variables_costs_others_no_time),
        cmocka_unit_test(debugging_sections_that_name_nothing_cost_others_no_time),
        cmocka_unit_test(what_is_called_a_cubin_and_is_none_is_refused),
        cmocka_unit_test(a_cubin_that_says_to_be_longer_than_it_is_is_refused),
        cmocka_unit_test(constants_beyond_what_a_module_may_have_are_refused),
        cmocka_unit_test(words_like_the_servers_own_cost_others_no_time),
        cmocka_unit_test(long_names_in_nested_blocks_cost_others_no_time),
        cmocka_unit_test(a_text_that_compiles_for_long_does_not_hold_up_others),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
