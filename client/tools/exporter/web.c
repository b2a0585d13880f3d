/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/web.h"

#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "client/tools/exporter/host_check.h"
#include "client/tools/exporter/page.h"
#include "client/tools/exporter/visitors.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/printable.h"

/* Connections that gave way are counted until the library has read their end. It accepts none at
 * all when this many are there. */
#define CONNECTIONS_MAX (2u * VISITORS_MAX)
/* A peer that sends nothing for so long, or takes nothing of its answer, is dropped. */
#define SILENCE_SECONDS 10u

/* Messages of the library in so many seconds. */
enum { LOG_LINES = 10, LOG_SECONDS = 60 };

#define PORT_TEXT    8
#define ADDRESS_TEXT WEB_HOST

/* ---- answers ---- */

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum exposition_form wanted_form(struct MHD_Connection *connection)
{
    const char *accept =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    return accept && strcasestr(accept, "application/openmetrics-text") ? EXPOSITION_OPENMETRICS
                                                                        : EXPOSITION_TEXT;
}

/* A server that does not answer is something to be told, and no error of this program: the status
 * is 200, and gpushare_up is 0. */
static enum MHD_Result send_metrics(struct web *web, struct MHD_Connection *connection)
{
    enum exposition_form form = wanted_form(connection);
    size_t length = 0;
    scrape_ask(web->scrape);
    char *text = scrape_text(web->scrape, form, &length);
    if (!text)
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory is left\n");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, exposition_media_type(form));
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* A browser is told to load nothing for the page and to guess nothing about it. */
static void add_guards(struct MHD_Response *response, const char *type)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
}

static enum MHD_Result send_page(struct MHD_Connection *connection)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(page_html), (void *)page_html, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_guards(response, "text/html; charset=utf-8");
    MHD_add_response_header(response, "Content-Security-Policy", page_policy);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* The document is copied, since the next question replaces it while this one is still sent. */
static enum MHD_Result send_status(struct web *web, struct MHD_Connection *connection)
{
    const char *text = view_ask(&web->view);
    if (!text)
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory is left\n");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    add_guards(response, "application/json");
    enum MHD_Result result = MHD_queue_response(
        connection, web->view.answered ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, response);
    MHD_destroy_response(response);
    return result;
}

/* A program that sends no Host is no browser. */
static bool is_meant(const struct web *web, struct MHD_Connection *connection)
{
    const char *host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    return !web->local || !host || host_check_is_local(host, web->host);
}

/* Called once with the headers, which is when an answer that reads no body is given. */
static enum MHD_Result serve(void *context, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *body,
                             size_t *body_bytes, void **own)
{
    (void)version;
    (void)body;
    (void)body_bytes;
    (void)own;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "this can be read only\n");
    if (!is_meant(context, connection))
        return send_text(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                         "this is served to its own machine alone, and the Host header names "
                         "another: ask for localhost, for 127.0.0.1, or for the address of "
                         "--listen\n");
    if (strcmp(url, "/metrics") == 0)
        return send_metrics(context, connection);
    if (strcmp(url, "/") == 0)
        return send_page(connection);
    if (strcmp(url, "/status.json") == 0)
        return send_status(context, connection);
    return send_text(connection, MHD_HTTP_NOT_FOUND,
                     "there are /, /metrics and /status.json, and nothing else\n");
}

/* ---- connections ---- */

static void note_connection(void *context, struct MHD_Connection *connection, void **visitor,
                            enum MHD_ConnectionNotificationCode what)
{
    struct web *web = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *visitor = info ? visitors_add(&web->visitors, info->connect_fd) : NULL;
    } else {
        visitors_remove(&web->visitors, *visitor);
    }
}

/* ---- life ---- */

/* Whether another message of the library may be logged now. It has one for each connection that
 * breaks off, of which whoever can connect makes thousands a second. */
static bool may_log(struct web *web)
{
    const uint64_t now = clock_now();
    if (!web->log_began_at || now - web->log_began_at >= LOG_SECONDS * UNITS_SECOND) {
        if (web->left_out)
            log_warning(MESSAGE_TEXT(exporter_http_more), web->left_out, LOG_LINES, LOG_SECONDS);
        web->log_began_at = now;
        web->logged = web->left_out = 0;
    }
    if (web->logged < LOG_LINES) {
        web->logged++;
        return true;
    }
    web->left_out++;
    return false;
}

static void log_library(void *context, const char *format, va_list arguments)
{
    char text[400];
    if (!may_log(context))
        return;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    printable_replace(text);
    log_warning(MESSAGE_TEXT(exporter_http), text);
}

/* Takes an address apart. The brackets of an IPv6 address keep its colons from the port's. */
static bool split_address(const char *address, char host[ADDRESS_TEXT], char port[PORT_TEXT])
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1] || strlen(colon + 1) >= PORT_TEXT)
        return false;
    size_t length = (size_t)(colon - address);
    bool brackets = address[0] == '[' && length > 2 && colon[-1] == ']';
    if (brackets) {
        address++;
        length -= 2;
    }
    if (length >= ADDRESS_TEXT || (!brackets && memchr(address, ':', length)))
        return false;
    snprintf(host, ADDRESS_TEXT, "%.*s", (int)length, address);
    snprintf(port, PORT_TEXT, "%s", colon + 1);
    return strspn(port, "0123456789") == strlen(port) && strtoul(port, NULL, 10) <= 65535;
}

static struct MHD_Daemon *start(struct web *web, const struct addrinfo *at)
{
    unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG;
    if (at->ai_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    return MHD_start_daemon(flags, 0, NULL, NULL, serve, web, MHD_OPTION_EXTERNAL_LOGGER,
                            log_library, web, MHD_OPTION_SOCK_ADDR, at->ai_addr,
                            MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
                            MHD_OPTION_NOTIFY_CONNECTION, note_connection, web,
                            MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_SECONDS, MHD_OPTION_END);
}

static void say_ready(const struct web *web, const char *address)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_BIND_PORT);
    char where[ADDRESS_TEXT + PORT_TEXT];
    snprintf(where, sizeof where, "%.*s:%u", (int)(strrchr(address, ':') - address), address,
             info ? info->port : 0);
    log_notice(MESSAGE_TEXT(log_exporter_ready), where);
}

uint32_t web_open(struct web *web, const char *address, struct scrape *scrape, struct error *why)
{
    char port[PORT_TEXT];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    *web = (struct web){.scrape = scrape};
    if (!split_address(address, web->host, port))
        return error_set(why, MESSAGE(exporter_address), address);
    int result = getaddrinfo(web->host, port, &hints, &found);
    if (result)
        return error_set(why, MESSAGE(exporter_address_unknown), address, gai_strerror(result));
    web->local = host_check_is_loopback(found->ai_addr);
    view_open(&web->view, scrape->socket);
    visitors_init(&web->visitors);
    web->daemon = start(web, found);
    freeaddrinfo(found);
    if (web->daemon) {
        say_ready(web, address);
        return 0;
    }
    view_close(&web->view);
    return error_set(why, MESSAGE(exporter_listen), address);
}

void web_close(struct web *web)
{
    MHD_stop_daemon(web->daemon);
    web->daemon = NULL;
    view_close(&web->view);
}
