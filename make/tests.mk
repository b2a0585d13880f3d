# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# Every tests/{unit,integration,abuse}/**/test_*.c is one cmocka program. Scripts named test_*.sh or
# test_*.py run as they are, with BUILD in the environment.

UNIT_C := $(sort $(shell find tests/unit -name 'test_*.c' 2>/dev/null))
LIVE_C := $(sort $(shell find tests/integration tests/abuse -name 'test_*.c' 2>/dev/null))
TEST_SCRIPTS := $(sort $(shell find tests/unit tests/integration tests/abuse tests/model tests/corpus -name 'test_*.sh' -o -name 'test_*.py' 2>/dev/null))
# Models and unit files run no compiled code that a sanitizer could check. The recorded symbols are those
# of a library without a sanitizer.
ifneq ($(SAN),)
# The scheduler has no thread (tests/unit/docs/test_rooms.py checks that), so ThreadSanitizer has nothing to find.
UNIT_C := $(if $(findstring thread,$(SAN)),$(filter-out tests/unit/scheduler/%,$(UNIT_C)),$(UNIT_C))
TEST_SCRIPTS := $(filter-out tests/model/% %/test_systemd_units.sh %/test_packages.py %/test_cmake.sh %/test_packaging.py %/test_deps.sh tests/corpus/test_ptx.sh tests/integration/test_interface.py,$(TEST_SCRIPTS))
endif
UNIT_BIN := $(patsubst %.c,$(BUILD)/%,$(UNIT_C))
LIVE_BIN := $(patsubst %.c,$(BUILD)/%,$(LIVE_C))
TEST_LIBS = $(PROGRAM_LIBS) -lcmocka -lz
# To compile a test with optimisation takes four times as long, and what it calls is optimised anyway; the scheduler's
# tests compute much themselves. Warnings that come of optimising are seen where lint compiles all of it for aarch64.
TEST_OPT ?= $(if $(SAN),,-O0)
WAITING_C = $(filter-out tests/unit/scheduler/%,$(UNIT_C)) $(LIVE_C)

# A unit test links the archive of the component whose folder it stands in.
$(BUILD)/tests/unit/common/%: $(BUILD)/obj/tests/unit/common/%.o $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(TEST_LIBS)
$(BUILD)/tests/unit/supervisor/%: $(BUILD)/obj/tests/unit/supervisor/%.o $(A)/libsupervisor.a $(A)/libscheduler.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(TEST_LIBS)
$(BUILD)/tests/unit/worker/%: $(BUILD)/obj/tests/unit/worker/%.o $(A)/libworker.a $(A)/libscheduler.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -rdynamic -o $@ $^ $(TEST_LIBS)
# These open the software GPU.
$(addprefix $(BUILD)/tests/unit/worker/,test_lease test_duty): | $(BUILD)/lib/softgpu/libcuda.so.1
$(BUILD)/tests/unit/softgpu/%: $(BUILD)/obj/tests/unit/softgpu/%.o $(A)/libsoftgpu.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(TEST_LIBS)
$(BUILD)/tests/unit/scheduler/%: $(BUILD)/obj/tests/unit/scheduler/%.o $(BUILD)/obj/tests/programs/simulate/device.o $(A)/libscheduler.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(TEST_LIBS)
$(BUILD)/tests/unit/client/%: $(BUILD)/obj/tests/unit/client/%.o $(A)/libsupport.a $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(TEST_LIBS)
$(BUILD)/tests/unit/client/test_managed: $(call obj,client/cuda/driver/managed/managed_code.c)
$(BUILD)/tests/unit/client/test_print: $(call obj,client/cuda/driver/print/print_ring.c client/cuda/driver/print/print_format.c)
$(BUILD)/tests/unit/client/test_registry: $(call obj,client/cuda/runtime/registry.c client/cuda/runtime/base/runtime_driver.c client/cuda/runtime/base/runtime_image.c client/cuda/runtime/base/runtime_error.c)
# -MMD does not see the files that .incbin includes.
$(BUILD)/obj/tests/integration/test_client_api.o: tests/integration/kernels/client.ptx
$(call obj,tests/integration/test_lend.c tests/unit/softgpu/test_slowdown.c): tests/programs/bench/kernels/bench.ptx
$(call obj,tests/unit/softgpu/test_device_heap.c): tests/programs/dropin/heap.ptx
$(call obj,tests/support/kernels.c): tests/support/kernels.ptx
# Integration and abuse tests use a private server; see tests/support/.
$(BUILD)/tests/integration/% $(BUILD)/tests/abuse/%: $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
$(LIVE_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(TEST_LIBS)

# ---- running them
.PHONY: check check-unit tests
tests: $(UNIT_BIN) $(LIVE_BIN)
check: all tests ## build and run every test (without a GPU); MATCH=word runs some
	BUILD=$(abspath $(BUILD)) $(TEST_WRAPPER) tests/run --build $(BUILD) --match '$(MATCH)' $(UNIT_BIN) $(LIVE_BIN) $(TEST_SCRIPTS)
check-unit: $(UNIT_BIN) ## run the unit tests alone
	BUILD=$(abspath $(BUILD)) $(TEST_WRAPPER) tests/run --build $(BUILD) --match '$(MATCH)' $(UNIT_BIN)

# A real Prometheus, for one test, which is skipped without it. As root `make check` fetches it, as it installs packages.
.PHONY: prometheus prometheus-as-root
prometheus: ## fetch Debian's Prometheus into the build folder, for tests/integration/test_prometheus.py
	make/prometheus.sh $(abspath $(BUILD))/prometheus
prometheus-as-root:
	[ "$$(id -u)" != 0 ] || make/prometheus.sh $(abspath $(BUILD))/prometheus || \
	    echo "gpushare: no Prometheus: tests/integration/test_prometheus.py is skipped" >&2
check-programs: $(if $(SAN),,prometheus-as-root)

# tests/interface/ records what users have; tests/integration/test_interface.py compares the build with it.
.PHONY: interface
interface: all messages $(BUILD)/tests/programs/pictures/work ## record what users have: names, numbers, options, keys (tests/interface/)
	BUILD=$(abspath $(BUILD)) tests/integration/test_interface.py --record $(SUBJECTS)
