# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The programs of tests/programs, except corpus and fuzz, which have fragments of their own. CHECK_DEPS has
# the programs that a test runs.

# ---- bench
# make bench: measures the rows of docs/numbers.md. The launch rows run on the null driver. make bench-page writes them there,
# and those that README shows into README.

BENCH_SRC := $(wildcard tests/programs/bench/*.c tests/programs/bench/rows/*.c)
OBJCOPY ?= objcopy
NULL_DRIVER := $(BUILD)/tests/programs/bench/null/libcuda.so.1

$(NULL_DRIVER): $(call obj,tests/programs/bench/null/null.c) $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $^ -lzstd -llz4 -ldl

# The worker, but for what it notes for the next one.
UNJOURNALED := $(BUILD)/tests/programs/bench/unjournaled/gpushare-worker
UNJOURNALED_O := $(call obj,server/worker/main.c tests/programs/bench/unjournaled/unjournaled.c)
UNJOURNALED_WEAK := client_stream_begin client_stream_begin_undo usage_ledger_note usage_ledger_tick
UNJOURNALED_WEAK_O := $(call obj,server/worker/client/client_stream.c server/worker/run/usage_ledger.c)

$(UNJOURNALED): $(UNJOURNALED_O) $(UNJOURNALED_WEAK_O) $(A)/libworker.a $(A)/libscheduler.a $(A)/libcommon.a
	@mkdir -p $(@D)
	for object in $(UNJOURNALED_WEAK_O); do \
	    $(OBJCOPY) $(UNJOURNALED_WEAK:%=--weaken-symbol=%) $$object $(@D)/$${object##*/} || exit 1; \
	done
	$(CC) $(LDFLAGS_ALL) -o $@ $(UNJOURNALED_O) $(addprefix $(@D)/,$(notdir $(UNJOURNALED_WEAK_O))) $(A)/libworker.a $(A)/libscheduler.a $(A)/libcommon.a $(PROGRAM_LIBS)

$(call obj,tests/programs/bench/bench.c): tests/programs/bench/kernels/bench.ptx
$(BUILD)/tests/programs/bench/bench: $(call obj,$(BENCH_SRC)) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lm

$(BUILD)/tests/unit/bench/%: $(BUILD)/obj/tests/unit/bench/%.o $(call obj,tests/programs/bench/span.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka -lm

$(BUILD)/tests/unit/bench/test_cpu_use: $(call obj,tests/programs/bench/cpu_use.c)
$(BUILD)/tests/unit/bench/test_attempt: $(BUILD)/obj/tests/unit/bench/test_attempt.o $(call obj,$(addprefix tests/programs/bench/,attempt.c bench.c company.c)) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lcmocka -lm

$(BUILD)/tests/unit/bench/test_quiet: $(call obj,tests/programs/bench/quiet.c)
# The table of rows names every row.
$(addprefix $(BUILD)/tests/unit/bench/,test_row test_mix): $(BUILD)/tests/unit/bench/%: $(BUILD)/obj/tests/unit/bench/%.o $(filter-out %/main.o,$(call obj,$(BENCH_SRC))) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lcmocka -lm

$(BUILD)/tests/integration/test_load: $(call obj,$(addprefix tests/programs/bench/,load.c span.c bench.c company.c))

# tests/integration/test_bench.sh, test_bench_shares.sh and test_bench_recovery.sh run the rows in a short form.
CHECK_DEPS += $(NULL_DRIVER) $(UNJOURNALED) $(BUILD)/tests/programs/bench/bench

.PHONY: bench
bench: all $(NULL_DRIVER) $(UNJOURNALED) $(BUILD)/tests/programs/pace/pace $(BUILD)/tests/programs/bench/bench ## measure beside yardsticks; ROWS="name name" runs some, SEED=N repeats one
	@mkdir -p $(BUILD)/bench
	BUILD=$(abspath $(BUILD)) $(BUILD)/tests/programs/bench/bench $(if $(SEED),--seed $(SEED)) $(BUILD)/bench/results.json $(ROWS)

.PHONY: bench-page
bench-page: ## write the numbers of the last make bench into docs/numbers.md and README.md
	tests/programs/bench/page.py $(BUILD)/bench/results.json docs/numbers.md README.md

# ---- shim
# A driver over the software GPU's that makes chosen calls wait; tests open it.

SHIM_DRIVER := $(BUILD)/tests/programs/shim/libcuda.so.1
$(SHIM_DRIVER): $(call obj,tests/programs/shim/shim.c) $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $^ -lzstd -llz4 -ldl
CHECK_DEPS += $(SHIM_DRIVER)

# ---- cudart
# One program for each release of the CUDA runtime; tests/integration/test_cudart.py runs them.

CUDART_PROGRAMS := $(CUDART_RELEASES:%=$(BUILD)/tests/programs/cudart/program_%)
CUDART_OF_RELEASE = $(BUILD)/obj/tests/programs/cudart/program_$1.o $(BUILD)/obj/tests/programs/cudart/queries_$1.o $(BUILD)/obj/tests/programs/cudart/rest_$1.o
$(foreach r,$(CUDART_RELEASES),$(call CUDART_OF_RELEASE,$r)): tests/programs/cudart/kernels.ptx $(BUILD)/flags
$(call obj,tests/programs/cudart/parts.c): tests/programs/cudart/part_caller.ptx tests/programs/cudart/part_library.ptx
define cudart_release_object
$(BUILD)/obj/tests/programs/cudart/$1_$2.o: tests/programs/cudart/$1.c
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) -DRELEASE=$2 -MMD -MP -c $$< -o $$@
endef
$(foreach r,$(CUDART_RELEASES),$(foreach f,program queries rest,$(eval $(call cudart_release_object,$f,$r))))
$(CUDART_PROGRAMS): $(BUILD)/tests/programs/cudart/program_%: $(BUILD)/obj/tests/programs/cudart/program_%.o $(BUILD)/obj/tests/programs/cudart/queries_%.o $(BUILD)/obj/tests/programs/cudart/rest_%.o $(call obj,tests/programs/cudart/per_thread.c tests/programs/cudart/blocks.c tests/programs/cudart/libraries.c tests/programs/cudart/managed.c tests/programs/cudart/parts.c) $(BUILD)/lib/gpushare/libcudart.so.%
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -L$(BUILD)/lib/gpushare -l:libcudart.so.$* -ldl
CHECK_DEPS += $(CUDART_PROGRAMS)

# A program that finds its runtimes when it runs, and libraries with kernels that it loads and unloads.
LIFE := $(BUILD)/tests/programs/cudart/life
LIFE_PLUGINS := $(CUDART_RELEASES:%=$(BUILD)/tests/programs/cudart/library/libplugin_%.so)
$(call obj,tests/programs/cudart/life.c tests/programs/cudart/library/plugin.c): tests/programs/cudart/kernels.ptx
$(LIFE): $(call obj,$(wildcard tests/programs/cudart/life*.c))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -ldl -lpthread
$(LIFE_PLUGINS): $(BUILD)/tests/programs/cudart/library/libplugin_%.so: $(call obj,tests/programs/cudart/library/plugin.c) $(BUILD)/lib/gpushare/libcudart.so.%
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libplugin_$*.so -o $@ $< -L$(BUILD)/lib/gpushare -l:libcudart.so.$*
CHECK_DEPS += $(LIFE) $(LIFE_PLUGINS)

# ---- dropin
# A program that is linked with libcuda.so.1; tests/integration/test_dropin.py runs it.

DROPIN_PROGRAM := $(BUILD)/tests/programs/dropin/program
DROPIN_PROGRAM_O := $(call obj,$(wildcard tests/programs/dropin/*.c))
$(call obj,tests/programs/dropin/program.c): tests/programs/dropin/kernels.ptx
$(call obj,tests/programs/dropin/check_print.c): tests/programs/dropin/print.ptx
$(call obj,tests/programs/dropin/check_heap.c): tests/programs/dropin/heap.ptx
$(DROPIN_PROGRAM): $(DROPIN_PROGRAM_O) $(BUILD)/lib/gpushare/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(DROPIN_PROGRAM_O) -L$(BUILD)/lib/gpushare -l:libcuda.so.1 -lpthread
CHECK_DEPS += $(DROPIN_PROGRAM)

# A library of that program's, with a call of its own.
DROPIN_ASKER := $(BUILD)/tests/programs/dropin/library/libasker.so
$(DROPIN_ASKER): $(call obj,tests/programs/dropin/library/asker.c) $(BUILD)/lib/gpushare/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libasker.so -o $@ $< -L$(BUILD)/lib/gpushare -l:libcuda.so.1
CHECK_DEPS += $(DROPIN_ASKER)

# ---- tenant
# A program that is linked with libcuda.so.1 and with libcudart.so.13.

TENANT := $(BUILD)/tests/programs/tenant/tenant
TENANT_O := $(call obj,$(wildcard tests/programs/tenant/*.c))
$(call obj,tests/programs/tenant/tenant.c): tests/programs/tenant/kernels.ptx
$(TENANT): $(TENANT_O) $(BUILD)/lib/gpushare/libcuda.so.1 $(BUILD)/lib/gpushare/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(TENANT_O) -L$(BUILD)/lib/gpushare -l:libcuda.so.1 -l:libcudart.so.13 -lpthread
CHECK_DEPS += $(TENANT)

# ---- pace
# A CUDA program that measures its calls; the bench's dropin rows run it.

PACE := $(BUILD)/tests/programs/pace/pace
$(PACE): $(call obj,tests/programs/pace/pace.c) $(BUILD)/lib/gpushare/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $< -L$(BUILD)/lib/gpushare -l:libcudart.so.13 -ldl
CHECK_DEPS += $(PACE)

# ---- tables
# A program that prints tables of the code, for tests that compare them with pages and libraries.

TABLES := $(BUILD)/tests/programs/tables/tables
$(TABLES): $(call obj,tests/programs/tables/tables.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $<
CHECK_DEPS += $(TABLES)

# ---- loader
# Programs that look for libcuda.so.1 in each way there is, where a decoy lies; tests/integration/test_run.py runs them.

LOADER_DECOY := $(BUILD)/tests/programs/loader/decoy/libcuda.so.1
LOADER_PROGRAMS := $(BUILD)/tests/programs/loader/ask_rpath $(BUILD)/tests/programs/loader/ask_runpath
$(LOADER_DECOY): $(call obj,tests/programs/loader/decoy.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -o $@ $^
$(BUILD)/tests/programs/loader/ask_rpath: TAGS := --disable-new-dtags
$(BUILD)/tests/programs/loader/ask_runpath: TAGS := --enable-new-dtags
$(LOADER_PROGRAMS): $(call obj,tests/programs/loader/ask.c) $(LOADER_DECOY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -Wl,$(TAGS),-rpath,'$$ORIGIN/decoy' -o $@ $< -L$(dir $(LOADER_DECOY)) -l:libcuda.so.1 -ldl
CHECK_DEPS += $(LOADER_PROGRAMS)

# ---- pictures
# make sharing-pictures: docs/pictures/*.svg but top.svg, from traces of the real server, one of which has its worker
# killed. `work` is a client with modelled kernels, picture.py draws a trace.

SURVIVE_PROGRAMS := $(addprefix $(BUILD)/tests/programs/survive/,steady forks)
$(foreach p,steady forks,$(call obj,tests/programs/survive/$(p).c)): tests/programs/survive/kernels.ptx
$(SURVIVE_PROGRAMS): $(BUILD)/tests/programs/survive/%: $(call obj,tests/programs/survive/%.c) $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
# tests/integration/test_survive.py has its server killed.
CHECK_DEPS += $(SURVIVE_PROGRAMS)

PICTURE_PROGRAMS := $(BUILD)/tests/programs/pictures/work
$(call obj,tests/programs/pictures/work.c): tests/programs/pictures/kernels/work.ptx
$(BUILD)/tests/programs/pictures/work: $(call obj,tests/programs/pictures/work.c) $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
# tests/integration/test_trace.py traces it.
CHECK_DEPS += $(PICTURE_PROGRAMS)

.PHONY: sharing-pictures
sharing-pictures: all $(PICTURE_PROGRAMS) ## draw the pictures of docs/sharing.md and docs/recovery.md from traces of the real server
	BUILD=$(abspath $(BUILD)) $(PYTHON) tests/programs/pictures/sharing.py docs/pictures

# Its three users need root, and the right to mount.
.PHONY: top-picture
top-picture: all $(PICTURE_PROGRAMS) ## draw docs/pictures/top.svg from a screen of gpusharectl top (root: with three users)
	BUILD=$(abspath $(BUILD)) $(PYTHON) tests/programs/pictures/top.py docs/pictures/top.svg

.PHONY: page-picture
page-picture: all $(PICTURE_PROGRAMS) ## draw docs/monitoring/page.png, the exporter's page (needs Chromium)
	BUILD=$(abspath $(BUILD)) $(PYTHON) tests/programs/pictures/page.py docs/monitoring/page.png

# ---- shortage
# A library that fails one call of a server or a worker; tests/integration/test_shortage.c.

SHORTAGE := $(BUILD)/tests/programs/shortage/shortage.so
# Without a sanitizer, which would have to be preloaded before it.
$(SHORTAGE): private override SAN =
$(SHORTAGE): tests/programs/shortage/shortage.c tests/programs/shortage/shortage.h make/test-programs.mk $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fvisibility=default -shared -o $@ $< -ldl
CHECK_DEPS += $(SHORTAGE)

# ---- chaos
# make chaos: changes shares, modes and the configuration at random under load. Words that the kernels
# write show that no launch is lost. Then the property tests play CHAOS_MIXES random mixes in the
# scheduler's virtual time, which takes one processor some 35 minutes for a million of them. Last, kernels
# fault CHAOS_FAULTS times in each way, alone and in company, and workers, clients and
# supervisors are killed, stopped and crashed CHAOS_ROUNDS times, two at once in a tenth; then a client faults as fast as it can for
# CHAOS_STORM seconds. The clients beside them compare all that they have with the CPU's results: nothing
# finished is lost, and nothing runs twice.

CHAOS := $(BUILD)/tests/programs/chaos/chaos
CHAOS_SECONDS ?= 120
CHAOS_CHANGES ?= 10000
CHAOS_MIXES ?= 1000000
CHAOS_ROUNDS ?= 1000
CHAOS_FAULTS ?= 200
CHAOS_STORM ?= 60
CHAOS_PARTS ?= interrupt sticky kills storm shortage
CHAOS_PROPERTIES := $(addprefix $(BUILD)/tests/unit/scheduler/,test_promise test_limit)
CHAOS_OBJECTS := $(filter-out %/main.o,$(call obj,$(BENCH_SRC)))

$(CHAOS): $(call obj,tests/programs/chaos/chaos.c) $(CHAOS_OBJECTS) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lm

# Clients that verify their own data all the time, beside faults, kills and stops at random instants.
RECOVERY := $(BUILD)/tests/programs/recovery/recovery
$(call obj,tests/programs/recovery/culprit.c): $(wildcard tests/programs/recovery/kernels/*.ptx)
$(RECOVERY): $(call obj,$(wildcard tests/programs/recovery/*.c)) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lcmocka

# tests/integration/test_chaos.sh and test_chaos_recovery.sh run them for some seconds.
CHECK_DEPS += $(CHAOS) $(RECOVERY)

.PHONY: chaos chaos-mixes chaos-recovery
chaos: all $(CHAOS) ## change shares and modes at random under load, then chaos-mixes and chaos-recovery; CHAOS_SECONDS, CHAOS_CHANGES, CHAOS_SEED
	BUILD=$(abspath $(BUILD)) TEST_SOFTGPU="$${TEST_SOFTGPU-SOFTGPU_STRICT=1 SOFTGPU_SEED=$(or $(CHAOS_SEED),1)}" \
		$(CHAOS) $(CHAOS_SECONDS) $(CHAOS_CHANGES) $(CHAOS_SEED)
	$(MAKE) chaos-mixes chaos-recovery
# Seeds count up from the first. One that fails is printed, with the promise that was broken.
chaos-mixes: $(CHAOS_PROPERTIES) ## hold the promises of time on a million random mixes; CHAOS_MIXES, CHAOS_SEED
	@seed=$(or $(CHAOS_SEED),$$(date +%s)); for test in $^; do \
	    echo "$${test##*/}: $(CHAOS_MIXES) mixes from seed $$seed"; \
	    TEST_SEED=$$seed TEST_MIXES=$(CHAOS_MIXES) $$test || exit 1; \
	done
# Each part prints its seed, and how to run it again. CHAOS_PARTS names the parts that run, and rounds of several runs with
# different seeds add up.
chaos-recovery: all $(RECOVERY) $(SHORTAGE) $(BUILD)/tests/integration/test_interrupt $(BUILD)/tests/integration/test_shortage ## faults, crashes, kills and stops at random instants beside clients that verify all they have; CHAOS_PARTS, CHAOS_ROUNDS, CHAOS_FAULTS, CHAOS_STORM, CHAOS_SEED
	export BUILD=$(abspath $(BUILD)) TEST_SOFTGPU="$${TEST_SOFTGPU-SOFTGPU_STRICT=1 SOFTGPU_SEED=$(or $(CHAOS_SEED),1)}" \
	    $(if $(CHAOS_SEED),TEST_SEED=$(CHAOS_SEED)); \
	for part in $(CHAOS_PARTS); do case $$part in \
	    interrupt) TEST_ROUNDS=$(CHAOS_ROUNDS) $(BUILD)/tests/integration/test_interrupt;; \
	    sticky) $(RECOVERY) sticky $(CHAOS_FAULTS) $(CHAOS_SEED);; \
	    kills) $(RECOVERY) kills $(CHAOS_ROUNDS) $(CHAOS_SEED);; \
	    storm) $(RECOVERY) storm $(CHAOS_STORM) $(CHAOS_SEED);; \
	    shortage) TEST_STRIDE=1 $(BUILD)/tests/integration/test_shortage;; \
	    *) echo "chaos-recovery has no part '$$part'" >&2; false;; \
	esac || exit 1; done

# ---- models
.PHONY: models
models: $(BUILD)/flags ## prove the models of tests/model anew, and note that they hold (some minutes)
	@dir=$$(mktemp -d) && MODELS_ANEW=1 TMPDIR=$$dir BUILD=$(abspath $(BUILD)) tests/model/test_models.sh; \
	    status=$$?; rm -rf "$$dir"; exit $$status

# ---- mutants
# make mutants: seeds faults of limits, charges and scheduling, one at a time, into a copy of the sources.
# The test that a fault names must notice it. tests/programs/mutants/run says how the tables are written.
# `make check` does not run them: a change of the sources may remove the lines of a mutant, and such a
# mutant is mended when the mutants are run.

MUTANTS_ONLY := $(BUILD)/tests/programs/mutants/only.so
# Without a sanitizer, which would have to be preloaded before it.
$(MUTANTS_ONLY): private override SAN =
$(MUTANTS_ONLY): tests/programs/mutants/only.c make/test-programs.mk $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -shared -o $@ $< -lcmocka

.PHONY: mutants mutants-places
mutants: $(MUTANTS_ONLY) ## seed faults of limits, charges and scheduling: each must turn its named test red; MATCH=word
	@mkdir -p $(BUILD)/mutants
	tests/run --build $(BUILD) tests/programs/mutants/test_judge.py
	tests/programs/mutants/run --source . --work $(BUILD)/mutants --only $(MUTANTS_ONLY) --match '$(MATCH)' \
	    --make 'CC=$(CC)' --make WERROR=0 --make 'OPT=-O1 -g' $(sort $(wildcard tests/programs/mutants/*.mutants))
mutants-places: ## say which mutants no longer find their lines or tests; builds nothing
	tests/programs/mutants/run --source . --places $(sort $(wildcard tests/programs/mutants/*.mutants))

# ---- ignored
# make softgpu-ignored: has each variable of docs/softgpu.md ignored. The test that the page names must fail. Each takes as long as
# that test, some two minutes together, so `make check` does not run it.

IGNORED := $(BUILD)/tests/programs/ignored/ignored.so
# Without a sanitizer, which would have to be preloaded before it.
$(IGNORED): private override SAN =
$(IGNORED): tests/programs/ignored/ignored.c make/test-programs.mk $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fvisibility=default -shared -o $@ $<

.PHONY: softgpu-ignored
softgpu-ignored: $(IGNORED) $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/softgpu/*.c)) ## ignore each variable of the software GPU: its test must fail; MATCH=word
	BUILD=$(abspath $(BUILD)) tests/programs/ignored/run $(IGNORED) $(MATCH)

# ---- held
# A library that watches which thread of a worker makes which call of the driver; tests/integration/test_held.c.

HELD := $(BUILD)/tests/programs/held/held.so
# Without a sanitizer, which would have to be preloaded before it.
$(HELD): private override SAN =
$(HELD): tests/programs/held/held.c common/cuda/cuda_driver.h make/test-programs.mk $(BUILD)/flags | $(GENERATED_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -shared -o $@ $< -ldl
CHECK_DEPS += $(HELD)

# ---- simulate
# make simulate: runs a virtual day of 1,000 clients on 64 GPUs with the real policies, and writes a table
# and a picture into build/simulate/.

SIMULATE := $(BUILD)/tests/programs/simulate/simulate
$(SIMULATE): $(call obj,$(wildcard tests/programs/simulate/*.c)) $(A)/libscheduler.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lm
CHECK_DEPS += $(SIMULATE)

.PHONY: simulate
simulate: $(SIMULATE) ## a day of 1,000 clients on 64 GPUs in each mode: shares, waits, Jain's index
	@mkdir -p $(BUILD)/simulate
	$(SIMULATE) $(BUILD)/simulate
	$(PYTHON) tests/programs/simulate/chart.py $(BUILD)/simulate

# ---- wheels
# What a worker reads of the machine code in CUDA's libraries; tests/programs/wheels/kernels.py compares it.

IMAGES := $(BUILD)/tests/programs/wheels/images
$(IMAGES): $(call obj,tests/programs/wheels/images.c server/worker/image/cubin.c server/worker/image/cubin_file.c) $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lzstd -llz4
CHECK_DEPS += $(IMAGES)
