/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/launcher.h"

#include <stdlib.h>

#include "common/clock.h"
#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"

static void *launch_on(void *argument)
{
    static const struct gpushare_dim one = {1, 1, 1};
    struct launcher *launcher = argument;
    uint64_t last = clock_now();
    void *parameters[] = {&launcher->milliseconds};
    while (!atomic_load(&launcher->stop)) {
        for (unsigned n = 0; n < launcher->in_flight; n++)
            for (unsigned i = 0; i < launcher->stream_count; i++)
                OK(gpushare_launch(launcher->function, one, one, 0, launcher->streams[i],
                                   parameters));
        OK(gpushare_synchronize(launcher->gpu));
        uint64_t now = clock_now();
        if (now - last > atomic_load(&launcher->longest))
            atomic_store(&launcher->longest, now - last);
        last = now;
        atomic_fetch_add(&launcher->done, launcher->in_flight * launcher->stream_count);
    }
    return NULL;
}

void launcher_prepare(struct launcher *launcher, gpushare_connection *gpu, unsigned streams,
                      unsigned in_flight, uint32_t milliseconds)
{
    *launcher = (struct launcher){.gpu = gpu,
                                  .stream_count = streams ? streams : 1,
                                  .in_flight = in_flight,
                                  .milliseconds = milliseconds};
    launcher->function = arrival_load(gpu, kernels_ptx, "milliseconds");
    for (unsigned i = 0; i < streams; i++)
        OK(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &launcher->streams[i]));
}

void launcher_start(struct launcher *launcher)
{
    atomic_store(&launcher->stop, false);
    if (pthread_create(&launcher->thread, NULL, launch_on, launcher))
        abort();
}

void launcher_stop(struct launcher *launcher)
{
    atomic_store(&launcher->stop, true);
    pthread_join(launcher->thread, NULL);
}

void launcher_close(struct launcher *launcher)
{
    gpushare_close(&launcher->gpu);
}
