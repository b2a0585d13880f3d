/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/device_properties.h"

#include <string.h>

#include "client/cuda/runtime/base/runtime_driver.h"

struct member {
    size_t offset, size;
    int count, attribute;
};

#define NO_ROW(type, name, count, attribute)
#define ROW(type, name, count, attribute)                                                          \
    {offsetof(struct LAYOUT, name), sizeof(type), count, attribute},
#define LAYOUT device_properties_12
static const struct member members_12[] = {DEVICE_PROPERTIES(ROW, ROW, NO_ROW)};
#undef LAYOUT
#define LAYOUT device_properties_13
static const struct member members_13[] = {DEVICE_PROPERTIES(ROW, NO_ROW, ROW)};
#undef LAYOUT

static void fill_attribute(const struct member *member, int index, int ordinal, char *properties)
{
    char *place = properties + member->offset + member->size * (size_t)index;
    int value = 0;

    if (DRIVER(cuDeviceGetAttribute, &value, (cuda_device_attribute)(member->attribute + index),
               ordinal) != CUDART_OK)
        value = 0;
    if (member->size == sizeof(size_t)) {
        const size_t wide = (size_t)value;

        memcpy(place, &wide, sizeof(wide));
    } else {
        memcpy(place, &value, sizeof(value));
    }
}

static void fill_attributes(const struct member *members, size_t count, int ordinal,
                            void *properties)
{
    for (size_t i = 0; i < count; i++)
        for (int j = 0; members[i].attribute && j < members[i].count; j++)
            fill_attribute(&members[i], j, ordinal, properties);
}

/* The members that are no attributes. They stand first, in one place in both layouts. */
static cudart_error fill_head(struct device_properties_13 *properties, int ordinal)
{
    int count = 0;
    cuda_uuid uuid;
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetCount, &count);
    if (error == CUDART_OK && (ordinal < 0 || ordinal >= count))
        error = CUDART_INVALID_DEVICE;
    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetName, properties->name, sizeof(properties->name), ordinal);
    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetUuid, &uuid, ordinal);
    if (error != CUDART_OK)
        return error;
    memcpy(properties->uuid, uuid.bytes, sizeof(properties->uuid));
    return DRIVER(cuDeviceTotalMem, properties->total_global_memory, ordinal);
}

cudart_error device_properties_13(struct device_properties_13 *properties, int ordinal)
{
    cudart_error error;

    if (!properties)
        return CUDART_INVALID_VALUE;
    *properties = (struct device_properties_13){0};
    error = fill_head(properties, ordinal);
    if (error == CUDART_OK)
        fill_attributes(members_13, sizeof(members_13) / sizeof(members_13[0]), ordinal,
                        properties);
    return error;
}

cudart_error device_properties_12(struct device_properties_12 *properties, int ordinal)
{
    struct device_properties_13 head = {0};
    cudart_error error;

    if (!properties)
        return CUDART_INVALID_VALUE;
    *properties = (struct device_properties_12){0};
    error = fill_head(&head, ordinal);
    if (error != CUDART_OK)
        return error;
    memcpy(properties, &head, offsetof(struct device_properties_12, shared_per_block));
    fill_attributes(members_12, sizeof(members_12) / sizeof(members_12[0]), ordinal, properties);
    return CUDART_OK;
}
