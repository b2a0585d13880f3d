/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * recovery: the parts of make chaos-recovery. Each prints what it did, and a histogram of the
 * phases that it hit. It ends the program with status 1 where something does not hold (crew.h).
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_RECOVERY_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_RECOVERY_H

/*
 * Each sticky error, by one of eight clients, in so many rounds: alone, and with all eight in
 * flight. The guilty client is named within two faults, and nobody else loses its connection.
 */
void recovery_sticky(unsigned rounds, unsigned seed, const char *again);

/*
 * Kills, stops and crashes workers, clients and supervisors at random instants, and has
 * supervisors hand over to the next, so many times; at least 70 %
 * with work in flight, two at once in a tenth. Nothing remains of them.
 */
void recovery_kills(unsigned rounds, unsigned seed, const char *again);

/*
 * For so many seconds, a client that faults as fast as it can beside four honest ones, first with
 * users that wait and then with none; and then one that faults only beside another.
 */
void recovery_storm(unsigned seconds, unsigned seed, const char *again);

#endif
