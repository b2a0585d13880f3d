/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/scrape.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/tools/admin_client.h"
#include "client/tools/table.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"

/* A scraper can ask as often as it likes. The server is asked once in this time. */
#define FRESH_NS UNITS_SECOND
/* Prometheus waits for 10 s, unless it is told otherwise. The server waits for its workers for a
 * second (ADMIN_USAGE_MS). */
#define LIMIT_SECONDS 5

void scrape_open(struct scrape *scrape, const char *socket, uint32_t clients)
{
    *scrape =
        (struct scrape){.socket = socket, .clients = clients, .asking = {.names = json_object()}};
}

void scrape_close(struct scrape *scrape)
{
    json_decref(scrape->answer);
    json_decref(scrape->asking.names);
    scrape->answer = scrape->asking.names = NULL;
}

/* NULL: the server did not answer, and the log has been told why if `first`. */
static json_t *ask_server(struct scrape *scrape, bool first)
{
    struct admin_client_wait wait = {.seconds = LIMIT_SECONDS - ADMIN_CLIENT_SECONDS, .enough = -1};
    json_t *request = metrics_request(scrape->clients), *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(scrape->socket, request, &answer, &wait) : ADMIN_FAILED;
    json_decref(request);
    if (outcome == ADMIN_OK)
        return answer;
    const char *text = json_string_value(json_object_get(answer, "text"));
    char shown[800];
    snprintf(shown, sizeof shown, "%s", text ? text : MESSAGE_TEXT(process_no_memory));
    table_clean(shown);
    if (first)
        log_warning(MESSAGE_TEXT(log_exporter_lost), shown);
    json_decref(answer);
    return NULL;
}

bool scrape_ask(struct scrape *scrape)
{
    uint64_t begun = clock_now();
    if (scrape->asked_at && begun - scrape->asked_at < FRESH_NS)
        return scrape->answer != NULL;
    bool never = !scrape->asked_at, answered = scrape->answer != NULL;
    json_t *answer = ask_server(scrape, never || answered);
    scrape->asked_at = clock_now();
    json_decref(scrape->answer);
    scrape->answer = answer;
    scrape->asking.failures += !answer;
    if (answer)
        scrape->asking.seconds = (double)(scrape->asked_at - begun) / 1e9;
    if (answer && !answered && !never)
        log_notice(MESSAGE_TEXT(log_exporter_found), scrape->socket);
    return answer != NULL;
}

char *scrape_text(struct scrape *scrape, enum exposition_form form, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out)
        return NULL;
    metrics_write(out, form, scrape->answer, &scrape->asking);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
