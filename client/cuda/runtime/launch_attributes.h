/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * launch_attributes: what the attributes of a launch mean on a driver that takes none
 * (cuLaunchKernelEx). Hints are taken and have no effect. An attribute that changes what a kernel
 * or its neighbours see is carried out or refused. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_LAUNCH_ATTRIBUTES_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_LAUNCH_ATTRIBUTES_H

#include "client/cuda/runtime/base/runtime_abi.h"

/* Says whether the launch is a cooperative one. A context is current. Returns 0,
 * CUDART_INVALID_VALUE for a value or an attribute that no launch has, or CUDART_NOT_SUPPORTED. */
cudart_error launch_attributes_read(const struct cudart_launch_config *config, bool *cooperative);

#endif
