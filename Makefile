# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# Sources are found by folder: a new .c file in a folder joins that folder's
# component, a new tests/<kind>/**/test_*.{c,sh,py} is a test. A source that needs a
# rule of its own has it in a make/*.mk fragment, named for what it builds.

BUILD ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
CXX ?= g++
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
WERROR ?= 1
OPT ?= -O2 -g
VERSION := 0.1.0

# As many jobs as there are processors, unless the command line says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

PKGS := libuv jansson libzstd liblz4 yaml-0.1

CPPFLAGS_ALL = -D_GNU_SOURCE -DGPUSHARE_VERSION='"$(VERSION)"' -I. -I$(BUILD)/generated $(PKG_CFLAGS) $(CPPFLAGS)
WARNINGS := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow
CFLAGS_ALL = -std=c17 -fPIC -fvisibility=hidden -fno-strict-aliasing -pthread $(WARNINGS) \
             $(if $(filter 1,$(WERROR)),-Werror) $(OPT) $(SAN) $(CFLAGS)
LDFLAGS_ALL = -pthread $(SAN) $(LDFLAGS)

.DEFAULT_GOAL := all
.SECONDARY:
# V=1 shows the commands.
ifneq ($(V),1)
.SILENT:
endif
.DELETE_ON_ERROR:

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

# ---- generated code -------------------------------------------------------
GENERATED_H := $(BUILD)/generated/protocol.h $(BUILD)/generated/activity_calls.inc
GENERATED_C := $(BUILD)/generated/protocol.c

$(BUILD)/generated/protocol.h $(BUILD)/generated/protocol.c &: schemas/protocol.xml schemas/generate.py
	@mkdir -p $(@D)
	$(PYTHON) schemas/generate.py --header $(BUILD)/generated/protocol.h --source $(BUILD)/generated/protocol.c schemas/protocol.xml

$(BUILD)/generated/activity_calls.inc: common/cuda/cuda_driver.h server/worker/calls/generate_activity.py
	@mkdir -p $(@D)
	$(PYTHON) server/worker/calls/generate_activity.py common/cuda/cuda_driver.h $@

# ---- components: folder -> archive ---------------------------------------
COMMON_SRC     := $(wildcard common/*.c common/*/*.c)
# What both libcuda.so.1 are linked with, over operations that each has of its own.
FRONT_SRC      := $(wildcard common/cuda/front/*.c common/cuda/link/*.c)
SUPERVISOR_SRC := $(filter-out server/supervisor/main.c,$(wildcard server/supervisor/*.c server/supervisor/*/*.c server/supervisor/*/*/*.c))
WORKER_SRC     := $(filter-out server/worker/main.c,$(wildcard server/worker/*.c server/worker/*/*.c server/worker/*/*/*.c))
SCHEDULER_SRC  := $(wildcard server/scheduler/*.c server/scheduler/*/*.c)
# The releases of CUDA whose runtime we have.
CUDART_RELEASES := 12 13
# NAME_MACHINE.c is compiled for that machine alone.
MACHINES       := x86_64 aarch64
MACHINE        := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
SOFTGPU_SRC    := $(filter-out $(foreach machine,$(filter-out $(MACHINE),$(MACHINES)),%_$(machine).c),$(wildcard server/softgpu/*.c server/softgpu/*/*.c))
CLIENT_SRC     := $(wildcard client/*.c client/session/*.c client/engine/*.c client/engine/*/*.c)
TOOL_MAINS     := client/tools/gpushare.c client/tools/gpusharectl.c client/tools/softgpu.c client/tools/exporter/gpushare_exporter.c
TOOLS_SRC      := $(filter-out $(TOOL_MAINS),$(wildcard client/tools/*.c client/tools/*/*.c))
SUPPORT_SRC    := $(wildcard tests/support/*.c)

A := $(BUILD)/obj
$(A)/libcommon.a:     $(call obj,$(COMMON_SRC)) $(BUILD)/obj/generated/protocol.o
$(A)/libsupervisor.a: $(call obj,$(SUPERVISOR_SRC))
$(A)/libworker.a:     $(call obj,$(WORKER_SRC))
$(A)/libscheduler.a:  $(call obj,$(SCHEDULER_SRC))
$(A)/libsoftgpu.a:    $(call obj,$(SOFTGPU_SRC) $(FRONT_SRC)) $(BUILD)/obj/generated/softgpu_absent.o
$(A)/libclient.a:     $(call obj,$(CLIENT_SRC))
$(A)/libtools.a:      $(call obj,$(TOOLS_SRC)) $(BUILD)/obj/generated/cuda_functions.o $(BUILD)/obj/generated/exporter_page.o
$(A)/libsupport.a:    $(call obj,$(SUPPORT_SRC))
# Appended, not replaced: files of different folders may have one name.
$(A)/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) qcs $@ $(filter %.o,$^)

$(BUILD)/obj/generated/%.o: $(BUILD)/generated/%.c $(BUILD)/flags $(GENERATED_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(GENERATED_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_$(subst /,_,$(patsubst %/,%,$(dir $<)))) $(if $(filter $(WAITING_C),$<),$(TEST_OPT)) -MMD -MP -c $< -o $@

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

include make/setup.mk
# The bundle takes along what the other fragments have put into CHECK_DEPS.
include $(sort $(filter-out make/setup.mk make/gpu-bundle.mk,$(wildcard make/*.mk))) make/gpu-bundle.mk

.PHONY: all help clean check-programs
all: $(ALL) ## build everything into build/
check: check-programs
check-programs: $(CHECK_DEPS)

help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*##' Makefile make/*.mk | sort | sed -E 's/^([a-z-]+):[^#]*## ?/  make \1\t/' | expand -t 22

clean: ## remove everything built
	rm -rf $(BUILD)
