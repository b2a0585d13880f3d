/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The handles of the default streams, in each form of the calls: what waits for which stream, and
 * what does not. A stream that another one may wait for stands at a gate, and sets a word behind
 * it.
 */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "tests/programs/tenant/tenant.h"

enum { POLLS = 100, HELD_US = 2000 };

static struct tenant tenant;
static cuda_device_ptr word, copied, filled;
static cuda_event event, reached;
static sem_t gate; /* is posted to once, for the one that stands there */

/* ---- the forms ---- */

struct form {
    const char *name;
    int null_is_per_thread;
    int (*copy)(cuda_stream stream);   /* of the word */
    int (*launch)(cuda_stream stream); /* adds 2 to the copy */
    int (*fill)(cuda_stream stream);   /* with fives */
    int (*record)(cuda_stream stream);
    int (*wait)(cuda_stream stream); /* for the event behind the gate */
    int (*query)(cuda_stream stream);
    int (*synchronize)(cuda_stream stream);
    int (*read)(uint32_t *value); /* the word at once, in the default stream */
};

static uint32_t two = 2;
static void *parameters[] = {&copied, &two};

#define DRIVER_FORM(form, stream_suffix, data_suffix)                                              \
    static int form##_copy(cuda_stream stream)                                                     \
    {                                                                                              \
        return cuMemcpyDtoDAsync_v2##stream_suffix(copied, word, 4, stream);                       \
    }                                                                                              \
    static int form##_launch(cuda_stream stream)                                                   \
    {                                                                                              \
        return cuLaunchKernel##stream_suffix(tenant.add, 1, 1, 1, 1, 1, 1, 0, stream, parameters,  \
                                             NULL);                                                \
    }                                                                                              \
    static int form##_fill(cuda_stream stream)                                                     \
    {                                                                                              \
        return cuMemsetD8Async##stream_suffix(filled, 5, 4, stream);                               \
    }                                                                                              \
    static int form##_record(cuda_stream stream)                                                   \
    {                                                                                              \
        return cuEventRecord##stream_suffix(event, stream);                                        \
    }                                                                                              \
    static int form##_wait(cuda_stream stream)                                                     \
    {                                                                                              \
        return cuStreamWaitEvent##stream_suffix(stream, reached, 0);                               \
    }                                                                                              \
    static int form##_query(cuda_stream stream)                                                    \
    {                                                                                              \
        return cuStreamQuery##stream_suffix(stream);                                               \
    }                                                                                              \
    static int form##_synchronize(cuda_stream stream)                                              \
    {                                                                                              \
        return cuStreamSynchronize##stream_suffix(stream);                                         \
    }                                                                                              \
    static int form##_read(uint32_t *value)                                                        \
    {                                                                                              \
        return cuMemcpyDtoH_v2##data_suffix(value, word, 4);                                       \
    }

#define RUNTIME_FORM(form, stream_suffix, data_suffix)                                             \
    static int form##_copy(cuda_stream stream)                                                     \
    {                                                                                              \
        return cudaMemcpyAsync##stream_suffix((void *)copied, (void *)word, 4,                     \
                                              CUDART_DEVICE_TO_DEVICE, stream);                    \
    }                                                                                              \
    static int form##_launch(cuda_stream stream)                                                   \
    {                                                                                              \
        return cudaLaunchKernel##stream_suffix(&tenant_add, (cudart_dim3){1, 1, 1},                \
                                               (cudart_dim3){1, 1, 1}, parameters, 0, stream);     \
    }                                                                                              \
    static int form##_fill(cuda_stream stream)                                                     \
    {                                                                                              \
        return cudaMemsetAsync##stream_suffix((void *)filled, 5, 4, stream);                       \
    }                                                                                              \
    static int form##_record(cuda_stream stream)                                                   \
    {                                                                                              \
        return cudaEventRecord##stream_suffix(event, stream);                                      \
    }                                                                                              \
    static int form##_wait(cuda_stream stream)                                                     \
    {                                                                                              \
        return cudaStreamWaitEvent##stream_suffix(stream, reached, 0);                             \
    }                                                                                              \
    static int form##_query(cuda_stream stream)                                                    \
    {                                                                                              \
        return cudaStreamQuery##stream_suffix(stream);                                             \
    }                                                                                              \
    static int form##_synchronize(cuda_stream stream)                                              \
    {                                                                                              \
        return cudaStreamSynchronize##stream_suffix(stream);                                       \
    }                                                                                              \
    static int form##_read(uint32_t *value)                                                        \
    {                                                                                              \
        return cudaMemcpy##data_suffix(value, (void *)word, 4, CUDART_DEVICE_TO_HOST);             \
    }

DRIVER_FORM(driver, , )
DRIVER_FORM(driver_ptsz, _ptsz, _ptds)
RUNTIME_FORM(runtime, , )
RUNTIME_FORM(runtime_ptsz, _ptsz, _ptds)

#define FORM(form, null_is_per_thread)                                                             \
    {                                                                                              \
#form, null_is_per_thread, form##_copy, form##_launch, form##_fill, form##_record,         \
            form##_wait, form##_query, form##_synchronize, form##_read                             \
    }
static const struct form forms[] = {FORM(driver, 0), FORM(driver_ptsz, 1), FORM(runtime, 0),
                                    FORM(runtime_ptsz, 1)};

/* ---- the gate ---- */

static void wait_at_gate(void *unused)
{
    (void)unused;
    while (sem_wait(&gate) < 0)
        ;
}

/* The gate is closed. */
static void stand_at_gate(cuda_stream stream)
{
    OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    OK(cuMemsetD32Async(word, 1, 1, stream));
    OK(cuEventRecord(reached, stream));
}

static void *open_gate_soon(void *unused)
{
    usleep(HELD_US);
    sem_post(&gate);
    return unused;
}

/* A thread whose own default stream stands at the gate. */
static sem_t stands, may_end;

static void *stand_in_other_thread(void *unused)
{
    OK(cuCtxSetCurrent(tenant.context));
    stand_at_gate(CUDA_STREAM_PER_THREAD);
    sem_post(&stands);
    while (sem_wait(&may_end) != 0)
        ;
    return unused;
}

/* ---- the rules ---- */

enum before { BLOCKING, NON_BLOCKING, LEGACY, PER_THREAD, OTHER_THREAD, BEFORES };

static const char *const names[BEFORES] = {"a blocking stream", "a non-blocking stream",
                                           "the legacy stream", "the thread's stream",
                                           "another thread's stream"};

/* The legacy stream waits for every stream but non-blocking ones, and they for it. */
static int waits(int is_per_thread, enum before before)
{
    if (before == LEGACY)
        return 1;
    return is_per_thread ? before == PER_THREAD : before != NON_BLOCKING;
}

static uint32_t word_at(cuda_device_ptr at)
{
    uint32_t value;
    OK(cuMemcpyDtoH_v2(&value, at, 4));
    return value;
}

static void demand_unfinished(const struct form *form, cuda_stream handle)
{
    for (int i = 0; i < POLLS; i++) {
        EXPECT(CUDA_ERR_NOT_READY, form->query(handle));
        EXPECT(CUDA_ERR_NOT_READY, cuEventQuery(event));
    }
}

static void put_in(const struct form *form, cuda_stream handle)
{
    OK(form->copy(handle));
    OK(form->launch(handle));
    OK(form->fill(handle));
    OK(form->record(handle));
}

static void demand_done(uint32_t seen)
{
    OK(cuEventQuery(event));
    CHECK(word_at(copied) == seen + 2);
    CHECK(word_at(filled) == 0x05050505);
}

/* Work that is put in without a wait. */
static void check_order(const struct form *form, cuda_stream handle, int must_wait)
{
    put_in(form, handle);
    if (!must_wait) {
        /* It ends before the gate is open. */
        OK(form->synchronize(handle));
        OK(cuEventQuery(event));
        /* A wait for the event makes it wait. */
        OK(form->wait(handle));
        put_in(form, handle);
    }
    demand_unfinished(form, handle);
    sem_post(&gate);
    OK(form->synchronize(handle));
    demand_done(1);
}

/* A copy that returns what it has read. */
static void check_read(const struct form *form, int must_wait)
{
    uint32_t value = 77;
    pthread_t opener;
    if (must_wait)
        CHECK(pthread_create(&opener, NULL, open_gate_soon, NULL) == 0);
    OK(form->read(&value));
    CHECK(value == (uint32_t)must_wait);
    if (must_wait)
        CHECK(pthread_join(opener, NULL) == 0);
    else
        sem_post(&gate);
}

static void check(const struct form *form, uintptr_t handle, int is_per_thread, enum before before,
                  cuda_stream stream, int reads)
{
    pthread_t thread;
    OK(cuMemsetD32_v2(word, 0, 1));
    OK(cuCtxSynchronize());
    if (before != OTHER_THREAD)
        stand_at_gate(stream);
    else
        CHECK(pthread_create(&thread, NULL, stand_in_other_thread, NULL) == 0 &&
              sem_wait(&stands) == 0);
    fprintf(stderr, "%s %zu behind %s%s\n", form->name, (size_t)handle, names[before],
            reads ? ", at once" : "");
    if (reads)
        check_read(form, waits(is_per_thread, before));
    else
        check_order(form, (cuda_stream)handle, waits(is_per_thread, before));
    OK(cuCtxSynchronize());
    if (before == OTHER_THREAD) {
        sem_post(&may_end);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* A kernel is loaded and a thread's stream made when they are used first, for which a driver may
 * wait until the device is idle. */
static void check_form(const struct form *form, const cuda_stream *streams)
{
    put_in(form, CUDA_STREAM_PER_THREAD);
    OK(form->synchronize(CUDA_STREAM_PER_THREAD));
    for (enum before before = BLOCKING; before < BEFORES; before++) {
        for (uintptr_t handle = 0; handle <= 2; handle++) {
            const int is_per_thread = handle == 2 || (handle == 0 && form->null_is_per_thread);
            check(form, handle, is_per_thread, before, streams[before], 0);
        }
        check(form, 0, form->null_is_per_thread, before, streams[before], 1);
    }
}

void order_by_handles(void)
{
    cuda_stream streams[BEFORES] = {
        [LEGACY] = CUDA_STREAM_LEGACY, [PER_THREAD] = CUDA_STREAM_PER_THREAD};
    tenant_begin(&tenant);
    OK(cuMemAlloc_v2(&word, 4));
    OK(cuMemAlloc_v2(&copied, 4));
    OK(cuMemAlloc_v2(&filled, 4));
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&reached, 0));
    OK(cuStreamCreate(&streams[BLOCKING], 0));
    OK(cuStreamCreate(&streams[NON_BLOCKING], CUDA_STREAM_NON_BLOCKING));
    CHECK(sem_init(&stands, 0, 0) == 0 && sem_init(&may_end, 0, 0) == 0 &&
          sem_init(&gate, 0, 0) == 0);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_form(&forms[i], streams);
    puts("right");
}
