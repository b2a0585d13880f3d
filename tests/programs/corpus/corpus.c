/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * corpus: runs every corpus kernel on a driver and on the host, and compares the results.
 *
 *   corpus --oracle LIBORACLE --ptx FOLDER --driver LIBCUDA [--match WORD] [--quiet] [--seconds N]
 *   corpus --oracle LIBORACLE --self        the oracle against itself, with threads in other orders
 *   corpus --oracle LIBORACLE --list        module and name of every kernel
 *
 * It prints a verdict for each kernel, then "N passed, N failed, N skipped". Each module has a
 * process of its own, so that a crash or a sticky error costs one kernel. After --seconds no
 * further module begins: its kernels count as not run, and the exit status is 3 if none failed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "tests/corpus/oracle.h"

/* BOUNDED_KERNEL_SECONDS applies with --seconds: one kernel that hangs must not use the time up. */
enum { KERNEL_SECONDS = 60, BOUNDED_KERNEL_SECONDS = 5, ORDERS = 3 };

enum verdict { PENDING, RUNNING, PASSED, FAILED, SKIPPED };

/* The child writes it, the parent reads it. */
struct outcome {
    enum verdict verdict;
    char text[600];
};

struct oracle {
    const struct corpus_kernel *(*kernels)(size_t *);
    size_t (*bytes)(const struct corpus_buffer *);
    void (*fill)(const struct corpus_buffer *, void *);
    int (*run)(const struct corpus_kernel *, void *const *, uint32_t, char *, size_t);
    int (*compare)(const struct corpus_buffer *, const void *, const void *, char *, size_t);
};

struct options {
    const char *oracle, *driver, *ptx, *match;
    bool self, list, quiet;
    unsigned seconds; /* 0: no time limit */
};

static struct oracle oracle;

/* ---- one kernel's buffers and parameters, in one of the two worlds ---- */
struct arguments {
    uint64_t address[CORPUS_MAX_BUFFERS]; /* at which the kernel sees each buffer */
    void *value[CORPUS_MAX_PARAMS];
    void *pointers[CORPUS_MAX_PARAMS];
};

static void arguments_destroy(struct arguments *a)
{
    for (int i = 0; i < CORPUS_MAX_PARAMS; i++)
        free(a->value[i]);
}

static int arguments_create(struct arguments *a, const struct corpus_kernel *k)
{
    for (int i = 0; i < k->params; i++) {
        const struct corpus_param *p = &k->param[i];
        a->value[i] = malloc(p->bytes);
        if (!a->value[i])
            return -ENOMEM;
        a->pointers[i] = a->value[i];
        if (p->buffer >= 0) {
            memcpy(a->value[i], &a->address[p->buffer], sizeof(uint64_t));
            continue;
        }
        memcpy(a->value[i], p->value, p->bytes);
        for (int at = 0; at < p->pointers; at++)
            memcpy((char *)a->value[i] + p->pointer[at].offset, &a->address[p->pointer[at].buffer],
                   sizeof(uint64_t));
    }
    return 0;
}

/* ---- the host's side ---- */
struct host_run {
    void *data[CORPUS_MAX_BUFFERS];
};

static void host_destroy(const struct corpus_kernel *k, struct host_run *run)
{
    for (int i = 0; i < k->buffers; i++)
        free(run->data[i]);
}

/* Leaves the buffers' final content in run, which the caller destroys in any case. */
static int host_run(const struct corpus_kernel *k, uint32_t order, struct host_run *run, char *why,
                    size_t why_size)
{
    struct arguments a = {0};
    int rc = 0;
    memset(run, 0, sizeof *run);
    for (int i = 0; i < k->buffers; i++) {
        const struct corpus_buffer *b = &k->buffer[i];
        size_t bytes = oracle.bytes(b);
        /* Aligned to 256 bytes, as device memory is. */
        run->data[i] = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
        if (!run->data[i]) {
            snprintf(why, why_size, "out of memory");
            return -ENOMEM;
        }
        void *place = b->symbol ? b->symbol_host : run->data[i];
        oracle.fill(b, place);
        a.address[i] = (uint64_t)(uintptr_t)place;
    }
    if (arguments_create(&a, k) < 0) {
        snprintf(why, why_size, "out of memory");
        rc = -ENOMEM;
    }
    for (uint32_t n = 0; n < k->launches && !rc; n++)
        rc = oracle.run(k, a.pointers, order, why, why_size);
    for (int i = 0; i < k->buffers && !rc; i++)
        if (k->buffer[i].symbol && run->data[i])
            memcpy(run->data[i], k->buffer[i].symbol_host, oracle.bytes(&k->buffer[i]));
    arguments_destroy(&a);
    return rc;
}

/* ---- the device's side ---- */
struct device {
    struct cuda_driver driver;
    cuda_device ordinal;
    cuda_module module;
    int capability; /* 90 for 9.0 */
};

static cuda_result said(struct device *d, cuda_result result, const char *call, char *why,
                        size_t why_size)
{
    const char *name = NULL;
    if (result != CUDA_OK) {
        d->driver.cuGetErrorName(result, &name);
        snprintf(why, why_size, "%s: %s (%d)", call, name ? name : "?", (int)result);
    }
    return result;
}
#define CALL(d, fn, ...) said(d, (d)->driver.fn(__VA_ARGS__), #fn, why, why_size)

static int device_open(struct device *d, const char *path, char *why, size_t why_size)
{
    cuda_device device = 0;
    cuda_context context;
    int major, minor;
    struct error refused;
    if (cuda_driver_open(&d->driver, path, &refused)) {
        snprintf(why, why_size, "%s", refused.text);
        return -ENOENT;
    }
    if (CALL(d, cuInit, 0) || CALL(d, cuDeviceGet, &device, 0) ||
        CALL(d, cuDeviceGetAttribute, &major, CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, device) ||
        CALL(d, cuDeviceGetAttribute, &minor, CUDA_ATTR_COMPUTE_CAPABILITY_MINOR, device) ||
        CALL(d, cuDevicePrimaryCtxRetain, &context, device) || CALL(d, cuCtxSetCurrent, context))
        return -EIO;
    d->capability = major * 10 + minor;
    d->ordinal = device;
    return 0;
}

/* Memory that is not freed by then counts as leaked. */
static void device_close(struct device *d)
{
    if (!d->capability)
        return;
    if (d->module)
        d->driver.cuModuleUnload(d->module);
    d->driver.cuDevicePrimaryCtxRelease(d->ordinal);
    cuda_driver_close(&d->driver);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0 && (text = malloc((size_t)size + 1)))
        text[fread(text, 1, (size_t)size, file)] = '\0';
    fclose(file);
    return text;
}

static int device_load(struct device *d, const char *folder, const char *name, char *why,
                       size_t why_size)
{
    char path[PATH_MAX], log[400] = "";
    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    char *text = read_file(path);
    if (!text) {
        snprintf(why, why_size, "cannot read %s.ptx in %.400s", name, folder);
        return -ENOENT;
    }
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    cuda_result result = CALL(d, cuModuleLoadDataEx, &d->module, text, 2, options, values);
    free(text);
    if (result) {
        size_t used = strlen(why);
        snprintf(why + used, why_size - used, ": %s.ptx: %s", name, log);
        return -EINVAL;
    }
    return 0;
}

/* Allocates or finds buffer i and writes its first content. */
static int device_place(struct device *d, const struct corpus_buffer *b, const void *content,
                        uint64_t *address, char *why, size_t why_size)
{
    size_t bytes = oracle.bytes(b), found = 0;
    if (b->symbol) {
        if (CALL(d, cuModuleGetGlobal, address, &found, d->module, b->symbol))
            return -EIO;
        if (found != bytes) {
            snprintf(why, why_size, "%s has %zu bytes instead of %zu", b->symbol, found, bytes);
            return -EIO;
        }
    } else if (CALL(d, cuMemAlloc, address, bytes)) {
        return -EIO;
    }
    return CALL(d, cuMemcpyHtoD, *address, content, bytes) ? -EIO : 0;
}

static int device_launch(struct device *d, const struct corpus_kernel *k, struct arguments *a,
                         char *why, size_t why_size)
{
    cuda_function function;
    if (CALL(d, cuModuleGetFunction, &function, d->module, k->name))
        return -EIO;
    if (k->dynamic_shared > 48 << 10 &&
        CALL(d, cuFuncSetAttribute, function, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             (int)k->dynamic_shared))
        return -EIO;
    for (uint32_t n = 0; n < k->launches; n++)
        if (CALL(d, cuLaunchKernel, function, k->grid[0], k->grid[1], k->grid[2], k->block[0],
                 k->block[1], k->block[2], k->dynamic_shared, NULL, a->pointers, NULL))
            return -EIO;
    return CALL(d, cuCtxSynchronize) ? -EIO : 0;
}

/* Runs the kernel and compares every buffer with the host's result. */
static int device_check(struct device *d, const struct corpus_kernel *k,
                        const struct host_run *expected, char *why, size_t why_size)
{
    struct arguments a = {0};
    int rc = 0;
    for (int i = 0; i < k->buffers && !rc; i++) {
        void *content = calloc(1, oracle.bytes(&k->buffer[i]) + 16);
        if (!content) {
            snprintf(why, why_size, "out of memory");
            return -ENOMEM;
        }
        oracle.fill(&k->buffer[i], content);
        rc = device_place(d, &k->buffer[i], content, &a.address[i], why, why_size);
        free(content);
    }
    if (!rc)
        rc = arguments_create(&a, k);
    if (!rc)
        rc = device_launch(d, k, &a, why, why_size);
    for (int i = 0; i < k->buffers && !rc; i++) {
        size_t bytes = oracle.bytes(&k->buffer[i]);
        char text[400];
        void *got = calloc(1, bytes + 16);
        if (!got || CALL(d, cuMemcpyDtoH, got, a.address[i], bytes)) {
            rc = -EIO;
        } else if (oracle.compare(&k->buffer[i], got, expected->data[i], text, sizeof text) != 0) {
            snprintf(why, why_size, "buffer %d: %s", i, text);
            rc = -EBADMSG;
        }
        free(got);
    }
    for (int i = 0; i < k->buffers; i++)
        if (!k->buffer[i].symbol && a.address[i])
            d->driver.cuMemFree(a.address[i]);
    arguments_destroy(&a);
    return rc;
}

/* ---- a kernel's verdict ---- */
static int compare_orders(const struct corpus_kernel *k, const struct host_run *expected, char *why,
                          size_t why_size)
{
    int rc = 0;
    for (uint32_t order = 1; order <= ORDERS && !rc; order++) {
        struct host_run other;
        rc = host_run(k, order, &other, why, why_size);
        for (int i = 0; i < k->buffers && !rc; i++) {
            char text[400];
            if (oracle.compare(&k->buffer[i], other.data[i], expected->data[i], text,
                               sizeof text) != 0) {
                snprintf(why, why_size, "order %u, buffer %d: %s", order, i, text);
                rc = -EBADMSG;
            }
        }
        host_destroy(k, &other);
    }
    return rc;
}

static void judge(const struct options *o, struct device *d, const struct corpus_kernel *k,
                  struct outcome *outcome)
{
    struct host_run expected;
    outcome->verdict = RUNNING;
    if (!o->self && (int)k->arch > d->capability) {
        snprintf(outcome->text, sizeof outcome->text, "needs compute capability %u.%u",
                 k->arch / 10, k->arch % 10);
        outcome->verdict = SKIPPED;
        return;
    }
    alarm(o->seconds ? BOUNDED_KERNEL_SECONDS : KERNEL_SECONDS);
    int rc = host_run(k, 0, &expected, outcome->text, sizeof outcome->text);
    if (!rc)
        rc = o->self ? compare_orders(k, &expected, outcome->text, sizeof outcome->text)
                     : device_check(d, k, &expected, outcome->text, sizeof outcome->text);
    host_destroy(k, &expected);
    alarm(0);
    outcome->verdict = rc ? FAILED : PASSED;
}

/* Judges the kernels of one module, in the child. Returns at the first failed one, after which a
 * device may be unusable. */
static void judge_module(const struct options *o, const struct corpus_kernel *k,
                         struct outcome *outcome, const size_t *todo, size_t count)
{
    struct device d = {0};
    char why[600];
    if (!o->self && (device_open(&d, o->driver, why, sizeof why) < 0 ||
                     device_load(&d, o->ptx, k[todo[0]].module, why, sizeof why) < 0)) {
        for (size_t i = 0; i < count; i++) {
            outcome[todo[i]].verdict = FAILED;
            memcpy(outcome[todo[i]].text, why, sizeof why);
        }
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        judge(o, &d, &k[todo[i]], &outcome[todo[i]]);
        if (outcome[todo[i]].verdict == FAILED)
            break;
    }
    device_close(&d);
}

static int run_module(const struct options *o, const struct corpus_kernel *k,
                      struct outcome *outcome, size_t *todo, size_t count)
{
    while (count) {
        int status;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            judge_module(o, k, outcome, todo, count);
            fflush(NULL);
            exit(0); /* not _exit, since sanitizers report at exit */
        }
        if (child < 0 || waitpid(child, &status, 0) != child) {
            perror("corpus");
            return -1;
        }
        for (size_t i = 0; i < count; i++) {
            struct outcome *r = &outcome[todo[i]];
            if (r->verdict != RUNNING)
                continue;
            r->verdict = FAILED;
            if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
                snprintf(r->text, sizeof r->text, "still running after %d s",
                         o->seconds ? BOUNDED_KERNEL_SECONDS : KERNEL_SECONDS);
            else
                snprintf(r->text, sizeof r->text, "the process died (%s)",
                         WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
        }
        /* After the last verdict, for instance in a sanitizer's report. */
        struct outcome *last = &outcome[todo[count - 1]];
        if (status && last->verdict == PASSED) {
            snprintf(last->text, sizeof last->text, "its module's process ended with status 0x%x",
                     (unsigned)status);
            last->verdict = FAILED;
        }
        size_t left = 0;
        for (size_t i = 0; i < count; i++)
            if (outcome[todo[i]].verdict == PENDING)
                todo[left++] = todo[i];
        if (left == count) {
            fprintf(stderr, "corpus: a child ended (status 0x%x) before its first kernel\n",
                    status);
            return -1;
        }
        count = left;
    }
    return 0;
}

static int run_all(const struct options *o)
{
    size_t count, passed = 0, failed = 0, skipped = 0, late = 0;
    time_t last = time(NULL) + (time_t)o->seconds;
    const struct corpus_kernel *k = oracle.kernels(&count);
    struct outcome *outcome = mmap(NULL, (count + 1) * sizeof *outcome, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t *todo = calloc(count + 1, sizeof *todo);
    if (outcome == MAP_FAILED || !todo)
        return 1;
    for (size_t first = 0, end; first < count; first = end) {
        size_t chosen = 0;
        for (end = first; end < count && strcmp(k[end].module, k[first].module) == 0; end++)
            if (strstr(k[end].module, o->match) || strstr(k[end].name, o->match))
                todo[chosen++] = end;
        if (o->seconds && time(NULL) >= last) {
            late += chosen;
            continue;
        }
        if (run_module(o, k, outcome, todo, chosen) < 0)
            return 1;
        for (size_t i = first; i < end; i++) {
            enum verdict v = outcome[i].verdict;
            if (v == PENDING)
                continue;
            passed += v == PASSED, failed += v == FAILED, skipped += v == SKIPPED;
            if (v != PASSED || !o->quiet)
                printf("%-6s %s/%s%s%s\n",
                       v == PASSED   ? "ok"
                       : v == FAILED ? "FAILED"
                                     : "skip",
                       k[i].module, k[i].name, v == PASSED ? "" : ": ",
                       v == PASSED ? "" : outcome[i].text);
        }
    }
    printf("%zu passed, %zu failed, %zu skipped", passed, failed, skipped);
    if (late)
        printf(", %zu not run within %u s", late, o->seconds);
    printf("\n");
    free(todo);
    munmap(outcome, (count + 1) * sizeof *outcome);
    return failed || !passed ? 1 : late ? 3 : 0;
}

static int list_all(void)
{
    size_t count;
    const struct corpus_kernel *k = oracle.kernels(&count);
    for (size_t i = 0; i < count; i++)
        printf("%s %s\n", k[i].module, k[i].name);
    return 0;
}

static int load_oracle(const char *path)
{
    char absolute[PATH_MAX];
    void *library = realpath(path, absolute) ? dlopen(absolute, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        const char *reason = dlerror();
        fprintf(stderr, "corpus: cannot load %s: %s\n", path, reason ? reason : strerror(errno));
        return -1;
    }
    *(void **)&oracle.kernels = dlsym(library, "corpus_kernels");
    *(void **)&oracle.bytes = dlsym(library, "corpus_buffer_bytes");
    *(void **)&oracle.fill = dlsym(library, "corpus_fill");
    *(void **)&oracle.run = dlsym(library, "corpus_run");
    *(void **)&oracle.compare = dlsym(library, "corpus_compare");
    if (oracle.kernels && oracle.bytes && oracle.fill && oracle.run && oracle.compare)
        return 0;
    fprintf(stderr, "corpus: %s is not the corpus oracle\n", path);
    return -1;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"oracle", required_argument, NULL, 'o'},
        {"driver", required_argument, NULL, 'd'},
        {"ptx", required_argument, NULL, 'p'},
        {"match", required_argument, NULL, 'm'},
        {"self", no_argument, NULL, 's'},
        {"quiet", no_argument, NULL, 'q'},
        {"list", no_argument, NULL, 'l'},
        {"seconds", required_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.match = ""};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'o':
            o.oracle = optarg;
            break;
        case 'd':
            o.driver = optarg;
            break;
        case 'p':
            o.ptx = optarg;
            break;
        case 'm':
            o.match = optarg;
            break;
        case 's':
            o.self = true;
            break;
        case 'l':
            o.list = true;
            break;
        case 'q':
            o.quiet = true;
            break;
        case 't':
            o.seconds = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            return 2;
        }
    }
    if (!o.oracle || (!o.self && !o.list && (!o.driver || !o.ptx))) {
        fprintf(
            stderr,
            "usage: corpus --oracle LIBORACLE (--self | --list | --ptx FOLDER --driver LIBCUDA) "
            "[--match WORD] [--quiet] [--seconds N]\n");
        return 2;
    }
    if (load_oracle(o.oracle) < 0)
        return 1;
    return o.list ? list_all() : run_all(&o);
}
