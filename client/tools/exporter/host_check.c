/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/host_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_loopback4(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

static bool is_loopback6(const struct in6_addr *address)
{
    struct in_addr mapped;
    memcpy(&mapped, address->s6_addr + 12, sizeof mapped);
    return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && is_loopback4(mapped));
}

bool host_check_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return is_loopback4(((const struct sockaddr_in *)(const void *)address)->sin_addr);
    return address->sa_family == AF_INET6 &&
           is_loopback6(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Takes brackets and port away. Returns false if that is no host. */
static bool read_host(const char *header, char *host, size_t size)
{
    size_t length = strcspn(header, ":");
    const char *rest = header + length;
    if (header[0] == '[') {
        header++;
        length = strcspn(header, "]");
        rest = header + length;
        if (*rest != ']')
            return false;
        rest++;
    }
    if (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1)))
        return false;
    return length && snprintf(host, size, "%.*s", (int)length, header) < (int)size;
}

bool host_check_is_local(const char *header, const char *own)
{
    char host[256];
    struct in_addr four;
    struct in6_addr six;
    if (strlen(header) >= sizeof host || !read_host(header, host, sizeof host))
        return false;
    if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, own) == 0)
        return true;
    return (inet_pton(AF_INET, host, &four) == 1 && is_loopback4(four)) ||
           (inet_pton(AF_INET6, host, &six) == 1 && is_loopback6(&six));
}
