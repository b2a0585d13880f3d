/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device_account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/device/device_request.h"

struct asking {
    struct device *device;
    struct proto_worker_account account;
    uint32_t number;
    change_done *done; /* NULL: nobody waits */
    void *context;
};

static void account_answered(void *context, const struct worker_answer *answer);

static int account_ask(const struct asking *wanted)
{
    const struct channel_packet request = {.opcode = PROTO_WORKER_ACCOUNT,
                                           .body = &wanted->account};
    struct asking *asking = malloc(sizeof *asking);
    if (!asking)
        return -ENOMEM;
    *asking = *wanted;
    int result = device_request(asking->device, &request, account_answered, asking);
    if (result < 0)
        free(asking);
    return result;
}

/* A limit binds whoever has it, so it is kept where a request is not. */
static void account_refused(const struct asking *asking, const char *text)
{
    const struct proto_worker_account *account = &asking->account;
    struct asking limits = *asking;
    limits.account.time_request = limits.account.threads_request = 0;
    log_warning(MESSAGE_TEXT(log_account_refused), asking->device->index, account->name, text);
    if ((account->time_request || account->threads_request) && account_ask(&limits) == 0)
        return;
    log_error(MESSAGE_TEXT(log_account_unlimited), asking->device->index, account->name);
}

static void account_answered(void *context, const struct worker_answer *answer)
{
    struct asking *asking = context;
    const bool refused = answer->outcome == WORKER_REFUSED;
    if (asking->done)
        asking->done(asking->context, asking->number, refused ? answer->error : 0,
                     refused ? answer->text : "");
    else if (refused)
        account_refused(asking, answer->text);
    free(asking);
}

int device_account_set(struct device *device, const struct proto_worker_account *account,
                       uint32_t number, change_done *done, void *context)
{
    const struct asking asking = {device, *account, number, done, context};
    int result = account_ask(&asking);
    return result == -EPIPE ? 1 : result;
}

int device_account_tell(struct device *device, const struct proto_worker_account *account)
{
    const struct asking asking = {.device = device, .account = *account};
    return account_ask(&asking);
}
