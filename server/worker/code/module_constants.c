/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/module_constants.h"

#include "server/worker/client/twins.h"
#include "server/worker/device/clearing.h"
#include "server/worker/image/constants.h"
#include "server/worker/image/rewrite.h"

struct settling {
    struct client *client;
    struct quiet_calls *calls;
    bool again;
    struct twin run; /* twins that touch, of constants that touch; bytes 0: none yet */
};

static cuda_result settle_run(const struct settling *settling)
{
    struct client *client = settling->client;
    const struct twin *run = &settling->run;
    if (!run->bytes)
        return CUDA_OK;
    uint64_t to = settling->again ? run->constant : run->address;
    uint64_t from = settling->again ? run->address : run->constant;
    cuda_result result =
        clearing_copy(&client->gpu->clearing, settling->calls, to, from, run->bytes);
    if (result != CUDA_OK)
        return result;
    client_lock(client);
    int added = twins_add(client, run);
    pthread_mutex_unlock(&client->lock);
    return added < 0 ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

static cuda_result settle_one(struct settling *settling, const struct constant *constant,
                              cuda_device_ptr there)
{
    struct twin *run = &settling->run;
    if (run->bytes && constant->address == run->address + run->bytes &&
        there == run->constant + run->bytes) {
        run->bytes += constant->bytes;
        return CUDA_OK;
    }
    cuda_result result = settle_run(settling);
    run->address = constant->address;
    run->bytes = constant->bytes;
    run->constant = there;
    return result;
}

cuda_result module_constants_settle(struct client *client, const struct client_module *module,
                                    cuda_module handle, const struct rewrite *rewrite,
                                    struct quiet_calls *calls, bool again)
{
    struct settling settling = {
        .client = client, .calls = calls, .again = again, .run.module = module};
    struct constants constants = rewrite_constants(rewrite);
    struct constant constant;
    cuda_result result = CUDA_OK;
    while (result == CUDA_OK && constants_next(&constants, &constant)) {
        cuda_device_ptr there = 0;
        size_t bytes = 0;
        result = client->gpu->cuda->cuModuleGetGlobal(&there, &bytes, handle, constant.name);
        if (result == CUDA_ERR_NOT_FOUND)
            result = CUDA_OK;
        else if (result == CUDA_OK && bytes != constant.bytes)
            result = CUDA_ERR_INVALID_IMAGE;
        else if (result == CUDA_OK)
            result = settle_one(&settling, &constant, there);
    }
    return result == CUDA_OK ? settle_run(&settling) : result;
}
