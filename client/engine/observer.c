/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/observer.h"

#include "common/ipc/shared_word.h"

struct gpushare_connection_state observer_read(const struct observer *observer, bool ended)
{
    /* The end of a recovery is published behind its number. */
    uint32_t recovering = shared_word_read(&observer->status->recovering);
    return (struct gpushare_connection_state){
        .size = sizeof(struct gpushare_connection_state),
        .state = ended        ? GPUSHARE_STATE_LOST
                 : recovering ? GPUSHARE_STATE_RECOVERING
                              : GPUSHARE_STATE_SERVING,
        .recoveries = shared_word_read(&observer->status->recoveries),
    };
}

void observer_look(struct observer *observer, bool ended)
{
    if (!observer->observe || !observer->status)
        return;
    struct gpushare_connection_state now = observer_read(observer, ended);
    uint64_t word = (uint64_t)now.recoveries << 32 | now.state;
    uint64_t told = atomic_load_explicit(&observer->told, memory_order_relaxed);
    /* Nothing comes behind the end, whatever a slower thread has read. */
    while (word != told && (uint32_t)told != GPUSHARE_STATE_LOST)
        if (atomic_compare_exchange_weak(&observer->told, &told, word)) {
            observer->observe(observer->context, &now);
            return;
        }
}
