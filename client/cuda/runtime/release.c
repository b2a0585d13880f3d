/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/release.h"

int runtime_release;
size_t runtime_release_pointer_bytes;
