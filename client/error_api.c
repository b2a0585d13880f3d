/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Errors and versions. */
#include "client/gpushare.h"
#include "client/session/failure.h"
#include "common/error.h"

const char *gpushare_error_text(void)
{
    return failure_sentence();
}

const char *gpushare_error_name(gpushare_error error)
{
    return error_name((uint32_t)error);
}

const char *gpushare_error_string(gpushare_error error)
{
    return error_sentence((uint32_t)error);
}

uint32_t gpushare_version(void)
{
    return GPUSHARE_VERSION_NUMBER;
}

const char *gpushare_version_text(void)
{
    return GPUSHARE_VERSION;
}
