/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* peer_uid: what the kernel reports of the user at the other end of a socket. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_PEER_UID_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_PEER_UID_H

/* The kernel shows every uid that is not mapped into our user namespace as this one. */
#define PEER_UID_UNMAPPED 65534u

#endif
