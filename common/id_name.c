/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/id_name.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "common/messages.h"

/* An entry's text. A group's has the names of all its members; those of large sites have
 * hundreds of thousands. */
enum { BUFFER_BYTES = 1024, BUFFER_BYTES_MAX = 64 << 20 };

/* An entry. name: within the buffer that the lookup was given. */
struct found {
    const char *name;
    uint32_t id;
};

/* One try, with this buffer. name: NULL to look the id up. Returns 0 or an errno; found->name stays
 * NULL where there is no entry. */
static int try_once(enum id_name_kind kind, const char *name, uint32_t id, char *buffer,
                    size_t bytes, struct found *found)
{
    struct passwd user, *is_user = NULL;
    struct group group, *is_group = NULL;
    int error;
    if (kind == ID_NAME_USER)
        error = name ? getpwnam_r(name, &user, buffer, bytes, &is_user)
                     : getpwuid_r((uid_t)id, &user, buffer, bytes, &is_user);
    else
        error = name ? getgrnam_r(name, &group, buffer, bytes, &is_group)
                     : getgrgid_r((gid_t)id, &group, buffer, bytes, &is_group);
    if (is_user)
        *found = (struct found){is_user->pw_name, is_user->pw_uid};
    if (is_group)
        *found = (struct found){is_group->gr_name, is_group->gr_gid};
    return error;
}

/* Returns as try_once() does. *buffer is the caller's to free, whatever comes back. */
static int look_up(enum id_name_kind kind, const char *name, uint32_t id, char **buffer,
                   struct found *found)
{
    int error = ERANGE;
    *buffer = NULL;
    *found = (struct found){NULL, 0};
    for (size_t bytes = BUFFER_BYTES; error == ERANGE && bytes <= BUFFER_BYTES_MAX; bytes *= 4) {
        free(*buffer);
        if (!(*buffer = malloc(bytes)))
            return ENOMEM;
        do
            error = try_once(kind, name, id, *buffer, bytes, found);
        while (error == EINTR);
    }
    return error;
}

bool id_name_is_possible(const char *text)
{
    return text[strspn(text, "0123456789-")] != '\0';
}

uint32_t id_name_find(enum id_name_kind kind, const char *name, uint32_t *id, struct error *why)
{
    char *buffer;
    struct found found;
    int error = look_up(kind, name, 0, &buffer, &found);
    free(buffer);
    /* Some directories say in this way that they have no such name. */
    if (error && error != ENOENT && error != ESRCH)
        return kind == ID_NAME_USER
                   ? error_set(why, MESSAGE(id_name_user_lookup), name, strerror(error))
                   : error_set(why, MESSAGE(id_name_group_lookup), name, strerror(error));
    /* UINT32_MAX is what the kernel calls "no uid". */
    if (!found.name || found.id == UINT32_MAX)
        return kind == ID_NAME_USER ? error_set(why, MESSAGE(id_name_no_user), name)
                                    : error_set(why, MESSAGE(id_name_no_group), name);
    *id = found.id;
    return 0;
}

char *id_name_of(enum id_name_kind kind, uint32_t id)
{
    char *buffer;
    struct found found;
    int error = look_up(kind, NULL, id, &buffer, &found);
    char *name = !error && found.name ? strdup(found.name) : NULL;
    free(buffer);
    return name;
}
