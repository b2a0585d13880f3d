/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* devices_max: how many devices a machine may have, and a process may see or name. */
#ifndef GPUSHARE_COMMON_DEVICES_MAX_H
#define GPUSHARE_COMMON_DEVICES_MAX_H

/* Eight GPUs of seven MIG instances each are 56 devices. */
#define DEVICES_MAX 64

#endif
