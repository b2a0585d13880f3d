# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The whole test suite under sanitizers. Each sanitizer, and each compiler, has a build folder of its own,
# so that objects of different kinds never meet.

SAN_SUFFIX := $(if $(findstring clang,$(CC)),-clang)
SAN_OPT := -O1 -g -fno-omit-frame-pointer
# An undefined operation ends the test. A mere report could scroll by unnoticed.
# SURVIVE_AUDIT: a server that keeps its state looks after each turn whether that is what it has.
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -DSURVIVE_AUDIT
TSAN_FLAGS := -fsanitize=thread
SUPPRESSIONS := $(abspath tests/sanitizers)

# Sanitized programs run several times slower than the tests' time limit assumes.
SAN_LIMIT ?= 600
# ASan guesses where glibc keeps the thread-local storage of a library that was opened late. If two words
# before it lie 16 bytes into a page, ASan takes them for a header. Earlier allocations decide whether that
# is right. If it is wrong, the leak check reads wild addresses at the end and dies, so it must not guess.
# allocator_may_return_null: some tests ask for more memory than there can be, to see the refusal.
ASAN_ENV = TEST_LIMIT=$(SAN_LIMIT) \
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0:allocator_may_return_null=1:$(ASAN_OPTIONS) \
    LSAN_OPTIONS=suppressions=$(SUPPRESSIONS)/lsan.supp:print_suppressions=0 \
    UBSAN_OPTIONS=print_stacktrace=1
TSAN_ENV = TEST_LIMIT=$(SAN_LIMIT) \
    TSAN_OPTIONS=suppressions=$(SUPPRESSIONS)/tsan.supp:exitcode=66:second_deadlock_stack=1:allocator_may_return_null=1:$(TSAN_OPTIONS)

# TSan of gcc 12 and clang 14 knows only the usual layouts of the address space. With more than 28 bits of
# randomness (newer kernels) it stops at once with "unexpected memory mapping". So randomness is switched
# off, if the kernel allows it.
NO_ASLR = $(shell setarch $(shell uname -m) -R true 2>/dev/null && echo setarch $(shell uname -m) -R)

# Suites that are named on one command line run one after another, because tests that measure time must
# not compete with those of another suite.
asan: | $(filter check,$(GOALS))
tsan: | $(filter check asan,$(GOALS))
lint: | $(filter check asan tsan,$(GOALS))

.PHONY: asan tsan
asan: ## all tests under AddressSanitizer and UBSan; CC=clang too; MATCH=word runs some
	+$(ASAN_ENV) $(MAKE) BUILD=$(BUILD)/asan$(SAN_SUFFIX) SAN='$(ASAN_FLAGS)' OPT='$(SAN_OPT)' check
tsan: ## all tests under ThreadSanitizer but the scheduler's; CC=clang too; MATCH=word runs some
	@echo "tsan: tests/unit/scheduler is left out: there are no threads in it"
	+$(TSAN_ENV) $(MAKE) BUILD=$(BUILD)/tsan$(SAN_SUFFIX) SAN='$(TSAN_FLAGS)' OPT='$(SAN_OPT)' TEST_WRAPPER='$(NO_ASLR)' check
