# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make lint: formatting, two static analysers, both compilers. A check that is off is named with its
# reason, in .clang-tidy or beside the line that it does not check.

CLANG ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
CPPCHECK ?= cppcheck

LINT_C := $(sort $(shell find common server client examples tests -name '*.c' 2>/dev/null))
LINT_H := $(sort $(shell find common server client examples tests -name '*.h' 2>/dev/null))
LINT_SH := $(sort $(shell find make tests .ci examples -name '*.sh' 2>/dev/null) $(wildcard .ci/run))
LINT_OUT := $(BUILD)/lint

.PHONY: lint lint-run lint-format lint-fences lint-tidy lint-tidy-planted lint-cppcheck lint-shell lint-gcc lint-clang lint-aarch64 format
lint: deps-lint ## clang-format, clang-tidy, cppcheck, shellcheck, -Werror builds with gcc and clang, and for aarch64
	+$(MAKE) --no-print-directory -k lint-run
	@echo "lint: $(words $(LINT_C)) sources, $(words $(LINT_H)) headers, $(words $(LINT_SH)) scripts: clean"
lint-run: lint-format lint-fences lint-shell lint-gcc lint-clang lint-aarch64 lint-tidy lint-cppcheck

# Each analyser first has to find a planted fault. Only then does its silence mean that it found none.
PLANTED = make/planted.sh $(LINT_OUT)/planted/$@

lint-format:
	$(PLANTED) clang-format-violations $(FORMAT_RUN) @
	$(FORMAT_RUN) $(LINT_C) $(LINT_H)
FORMAT_RUN = $(CLANG_FORMAT) --dry-run -Werror --style=file:.clang-format
format: ## rewrite all C in the project's format
	$(CLANG_FORMAT) -i $(LINT_C) $(LINT_H)

# gcc refuses these under ThreadSanitizer, which `make check` does not run.
lint-fences:
	@! grep -nE 'atomic_(thread|signal)_fence *\(' $(LINT_C) $(LINT_H) || \
	    { echo "lint: ThreadSanitizer knows no fences: order the loads and the stores themselves" >&2; false; }

SHELL_RUN := shellcheck -x -S warning
lint-shell:
	$(PLANTED) SC2154 $(SHELL_RUN) @
	$(SHELL_RUN) $(LINT_SH)

# The sub-makes decide which objects are out of date. Nothing of clang's and of aarch64's is run, and their
# warnings do not depend on the optimiser, which takes more time than all else. Objects of lint-clang are never linked to gcc's.
# clang builds what is installed; lint-tidy, which is clang too, has its warnings for the tests as well.
lint-gcc:
	+$(MAKE) --no-print-directory CC=gcc WERROR=1 all tests
lint-clang:
	+$(MAKE) --no-print-directory CC=$(CLANG) BUILD=$(BUILD)/clang OPT=-O0 WERROR=1 all

# Nodes with Grace processors are aarch64, so every object has to compile for them. Nothing is linked, so
# no library for aarch64 is needed. Headers other than glibc's are those of this system, read last.
AARCH64_CC ?= aarch64-linux-gnu-gcc
AARCH64_OBJECTS = $(filter-out %_x86_64.o,$(LINT_C:%.c=$(BUILD)/obj/%.o)) $(BUILD)/obj/generated/protocol.o
AARCH64_INCLUDE = -idirafter /usr/include -idirafter /usr/include/$(shell gcc -dumpmachine)
lint-aarch64:
	+$(MAKE) --no-print-directory CC=$(AARCH64_CC) BUILD=$(BUILD)/aarch64 OPT=-O0 WERROR=1 TEST_OPT= \
	    CPPFLAGS='$(CPPFLAGS) $(AARCH64_INCLUDE)' lint-aarch64-objects
.PHONY: lint-aarch64-objects
lint-aarch64-objects: $(AARCH64_OBJECTS)

# One stamp for each file: a clean file is analysed again only after it, a header or the configuration
# has changed. Any header counts, because about half of the files depend on most headers anyway.
TIDY_STAMPS := $(LINT_C:%=$(LINT_OUT)/%.tidy)
TIDY_RUN = $(CLANG_TIDY) --quiet $(1) -- -std=c17 $(CPPFLAGS_ALL) $(WARNINGS) $(if $(filter tests/%,$(1)),$(TIDY_SHORTER))
# The analyser follows a quarter of the paths that it would follow by default (225,000 nodes of a function) in tests, whose
# long functions took it half of its time; they run under the sanitizers, too.
TIDY_SHORTER = -Xclang -analyzer-config -Xclang max-nodes=60000
lint-tidy: $(TIDY_STAMPS)
# This comes before all stamps, because a stamp says that the analyser has looked at the file.
lint-tidy-planted:
	$(PLANTED) core.DivideZero $(call TIDY_RUN,--config-file=.clang-tidy @)
	$(PLANTED) clang-diagnostic-unused-variable $(call TIDY_RUN,--config-file=.clang-tidy @)
$(LINT_OUT)/%.tidy: % .clang-tidy $(wildcard */.clang-tidy) $(LINT_H) | $(GENERATED_H) lint-tidy-planted
	@mkdir -p $(@D)
	$(call TIDY_RUN,$<) 2>$(LINT_OUT)/$*.err || { cat $(LINT_OUT)/$*.err; exit 1; }
	@touch $@

# One configuration: the one that is compiled on Linux. System headers are not read, because cppcheck knows
# libc from its own library files. posix.cfg is not among them: cppcheck's preprocessor expands its
# MAP_FAILED beside a ## in our tables. A -D must not contain a semicolon: cppcheck ends the macro there,
# and then silently skips every file.
CPPCHECK_RUN = $(CPPCHECK) --quiet --error-exitcode=1 --inline-suppr --std=c11 --library=gnu \
    --enable=warning,performance,portability --suppressions-list=.cppcheck-suppressions \
    --cppcheck-build-dir=$(LINT_OUT)/cppcheck -j $(shell nproc) \
    -D_GNU_SOURCE -D__linux__ -D__x86_64__ '-DGPUSHARE_VERSION="$(VERSION)"' \
    $(CPPCHECK_FLAGS) -I. -I$(BUILD)/generated
lint-cppcheck: $(GENERATED_H)
	@mkdir -p $(LINT_OUT)/cppcheck
	$(PLANTED) zerodiv $(CPPCHECK_RUN) @
	$(CPPCHECK_RUN) $(LINT_C)
