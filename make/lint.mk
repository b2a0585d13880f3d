# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make lint: formatting, two static analysers, both compilers. Every check that is
# off is named with its reason in .clang-tidy or beside the line it spares.

CLANG ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
CPPCHECK ?= cppcheck

LINT_C := $(sort $(shell find common server client examples tests -name '*.c' 2>/dev/null))
LINT_H := $(sort $(shell find common server client examples tests -name '*.h' 2>/dev/null))
LINT_SH := $(sort $(shell find make tests .ci examples -name '*.sh' 2>/dev/null) $(wildcard .ci/run))
LINT_OUT := $(BUILD)/lint

.PHONY: lint lint-run lint-format lint-tidy lint-tidy-planted lint-cppcheck lint-shell lint-gcc lint-clang lint-aarch64 format
lint: deps-lint ## clang-format, clang-tidy, cppcheck, shellcheck, -Werror builds with gcc and clang, and for aarch64
	+$(MAKE) --no-print-directory -k lint-run
	@echo "lint: $(words $(LINT_C)) sources, $(words $(LINT_H)) headers, $(words $(LINT_SH)) scripts: clean"
lint-run: lint-format lint-shell lint-gcc lint-clang lint-aarch64 lint-tidy lint-cppcheck

# Each analyser has to name a fault that is planted for it before its silence counts.
PLANTED = make/planted.sh $(LINT_OUT)/planted/$@

lint-format:
	$(PLANTED) clang-format-violations $(FORMAT_RUN) @
	$(FORMAT_RUN) $(LINT_C) $(LINT_H)
FORMAT_RUN = $(CLANG_FORMAT) --dry-run -Werror --style=file:.clang-format
format: ## rewrite all C in the project's format
	$(CLANG_FORMAT) -i $(LINT_C) $(LINT_H)

SHELL_RUN := shellcheck -x -S warning
lint-shell:
	$(PLANTED) SC2154 $(SHELL_RUN) @
	$(SHELL_RUN) $(LINT_SH)

# The sub-makes decide what is stale; objects of lint-clang are never linked to ours.
lint-gcc:
	+$(MAKE) --no-print-directory CC=gcc WERROR=1 all tests
lint-clang:
	+$(MAKE) --no-print-directory CC=$(CLANG) BUILD=$(BUILD)/clang OPT=-O1 WERROR=1 all tests

# Nodes with Grace processors are aarch64: every object compiles for them. Nothing is linked, so no
# library for aarch64 is needed; headers that are not glibc's are this system's own, read last.
AARCH64_CC ?= aarch64-linux-gnu-gcc
AARCH64_OBJECTS = $(filter-out %_x86_64.o,$(LINT_C:%.c=$(BUILD)/obj/%.o)) $(BUILD)/obj/generated/protocol.o
AARCH64_INCLUDE = -idirafter /usr/include -idirafter /usr/include/$(shell gcc -dumpmachine)
lint-aarch64:
	+$(MAKE) --no-print-directory CC=$(AARCH64_CC) BUILD=$(BUILD)/aarch64 WERROR=1 \
	    CPPFLAGS='$(CPPFLAGS) $(AARCH64_INCLUDE)' lint-aarch64-objects
.PHONY: lint-aarch64-objects
lint-aarch64-objects: $(AARCH64_OBJECTS)

# One stamp a file: a clean file is not analysed again until it, a header or the
# configuration changes. Half of the headers' users change with any header, so all do.
TIDY_STAMPS := $(LINT_C:%=$(LINT_OUT)/%.tidy)
TIDY_RUN = $(CLANG_TIDY) --quiet $(1) -- -std=c17 $(CPPFLAGS_ALL)
lint-tidy: $(TIDY_STAMPS)
# First of all, for a stamp says that a file was looked at.
lint-tidy-planted:
	$(PLANTED) core.DivideZero $(call TIDY_RUN,--config-file=.clang-tidy @)
$(LINT_OUT)/%.tidy: % .clang-tidy $(wildcard */.clang-tidy) $(LINT_H) | $(GENERATED_H) lint-tidy-planted
	@mkdir -p $(@D)
	$(call TIDY_RUN,$<) 2>$(LINT_OUT)/$*.err || { cat $(LINT_OUT)/$*.err; exit 1; }
	@touch $@

# One configuration (ours), as compiled on Linux; system headers are not read, for
# cppcheck knows libc by its own library files (not by posix.cfg, whose MAP_FAILED
# its preprocessor expands beside a ## in our tables). A -D may hold no semicolon:
# cppcheck ends the macro there and then passes over every file in silence.
CPPCHECK_RUN = $(CPPCHECK) --quiet --error-exitcode=1 --inline-suppr --std=c11 --library=gnu \
    --enable=warning,performance,portability --suppressions-list=.cppcheck-suppressions \
    --cppcheck-build-dir=$(LINT_OUT)/cppcheck -j $(shell nproc) \
    -D_GNU_SOURCE -D__linux__ -D__x86_64__ '-DGPUSHARE_VERSION="$(VERSION)"' \
    $(CPPCHECK_FLAGS) -I. -I$(BUILD)/generated
lint-cppcheck: $(GENERATED_H)
	@mkdir -p $(LINT_OUT)/cppcheck
	$(PLANTED) zerodiv $(CPPCHECK_RUN) @
	$(CPPCHECK_RUN) $(LINT_C)
