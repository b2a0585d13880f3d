# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The whole test suite once more under sanitizers, each in a build folder of its
# own (and per compiler, so that gcc's and clang's objects never meet).

SAN_SUFFIX := $(if $(findstring clang,$(CC)),-clang)
SAN_OPT := -O1 -g -fno-omit-frame-pointer
# An undefined operation ends the test: a report that only scrolls by proves nothing.
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
TSAN_FLAGS := -fsanitize=thread
SUPPRESSIONS := $(abspath tests/sanitizers)

# Sanitized programs run several times slower than the tests' time limit assumes.
SAN_LIMIT ?= 600
# ASan guesses where glibc keeps the thread-local storage of a library that was opened late, and takes
# two words before it for a header when they lie 16 bytes into a page. Where that is wrong (it depends
# on what was allocated before) the leak check reads wild addresses at the end and dies, so it must
# not guess.
ASAN_ENV = TEST_LIMIT=$(SAN_LIMIT) \
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0:$(ASAN_OPTIONS) \
    LSAN_OPTIONS=suppressions=$(SUPPRESSIONS)/lsan.supp:print_suppressions=0 \
    UBSAN_OPTIONS=print_stacktrace=1
TSAN_ENV = TEST_LIMIT=$(SAN_LIMIT) \
    TSAN_OPTIONS=suppressions=$(SUPPRESSIONS)/tsan.supp:exitcode=66:second_deadlock_stack=1:$(TSAN_OPTIONS)

# TSan of gcc 12 and clang 14 knows the usual address space layouts only: with more
# than 28 bits of randomness (newer kernels) it stops at once with "unexpected
# memory mapping", so randomness is switched off where the kernel lets us.
NO_ASLR = $(shell setarch $(shell uname -m) -R true 2>/dev/null && echo setarch $(shell uname -m) -R)

# Named together on one command line they run one after another: tests that
# measure time must not compete with another suite's.
asan: | $(filter check,$(GOALS))
tsan: | $(filter check asan,$(GOALS))
lint: | $(filter check asan tsan,$(GOALS))

.PHONY: asan tsan
asan: ## all tests under AddressSanitizer and UBSan; CC=clang too; MATCH=word runs some
	+$(ASAN_ENV) $(MAKE) BUILD=$(BUILD)/asan$(SAN_SUFFIX) SAN='$(ASAN_FLAGS)' OPT='$(SAN_OPT)' check
tsan: ## all tests under ThreadSanitizer but the scheduler's; CC=clang too; MATCH=word runs some
	@echo "tsan: tests/unit/scheduler is left out: there are no threads in it"
	+$(TSAN_ENV) $(MAKE) BUILD=$(BUILD)/tsan$(SAN_SUFFIX) SAN='$(TSAN_FLAGS)' OPT='$(SAN_OPT)' TEST_WRAPPER='$(NO_ASLR)' check
