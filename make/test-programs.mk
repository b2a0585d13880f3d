# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The programs of tests/programs, except corpus and fuzz, which have fragments of their own. CHECK_DEPS has
# the programs that a test runs.

# ---- bench
# make bench: measures the rows of docs/numbers.md. The launch rows run on the null driver. make bench-page writes them there,
# and those that README shows into README.

BENCH_SRC := $(wildcard tests/programs/bench/*.c tests/programs/bench/rows/*.c)
NULL_DRIVER := $(BUILD)/tests/programs/bench/null/libcuda.so.1

$(NULL_DRIVER): $(call obj,tests/programs/bench/null/null.c) $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $^ -lzstd -llz4 -ldl

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

$(BUILD)/tests/integration/test_load: $(call obj,$(addprefix tests/programs/bench/,load.c span.c bench.c company.c))

# tests/integration/test_bench.sh runs some rows.
CHECK_DEPS += $(NULL_DRIVER) $(BUILD)/tests/programs/bench/bench

.PHONY: bench
bench: all $(NULL_DRIVER) $(BUILD)/tests/programs/bench/bench ## measure beside yardsticks; ROWS="name name" runs some, SEED=N repeats one
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

# ---- pictures
# make sharing-pictures: docs/pictures/*.svg, from traces of the real server. `work` is a client
# with modelled kernels, picture.py draws a trace.

PICTURE_PROGRAMS := $(BUILD)/tests/programs/pictures/work
$(call obj,tests/programs/pictures/work.c): tests/programs/pictures/kernels/work.ptx
$(BUILD)/tests/programs/pictures/work: $(call obj,tests/programs/pictures/work.c) $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
# tests/integration/test_trace.py traces it.
CHECK_DEPS += $(PICTURE_PROGRAMS)

.PHONY: sharing-pictures
sharing-pictures: all $(PICTURE_PROGRAMS) ## draw docs/pictures/ from traces of the real server
	BUILD=$(abspath $(BUILD)) $(PYTHON) tests/programs/pictures/sharing.py docs/pictures

# ---- chaos
# make chaos: changes shares, modes and the configuration at random under load. Words that the kernels
# write show that no launch is lost. Then the property tests play CHAOS_MIXES random mixes in the
# scheduler's virtual time, which takes one processor some 20 minutes for a million of them. Last, workers
# crash CHAOS_ROUNDS times at random moments, twice in a round; words that kernels write show that nothing
# finished is lost and nothing runs twice.

CHAOS := $(BUILD)/tests/programs/chaos/chaos
CHAOS_SECONDS ?= 120
CHAOS_CHANGES ?= 10000
CHAOS_MIXES ?= 1000000
CHAOS_ROUNDS ?= 1000
CHAOS_PROPERTIES := $(addprefix $(BUILD)/tests/unit/scheduler/,test_promise test_limit)
CHAOS_PARTS := $(filter-out %/main.o,$(call obj,$(BENCH_SRC)))

$(CHAOS): $(call obj,tests/programs/chaos/chaos.c) $(CHAOS_PARTS) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lm

# tests/integration/test_chaos.sh runs it for some seconds.
CHECK_DEPS += $(CHAOS)

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
chaos-recovery: all $(BUILD)/tests/integration/test_interrupt ## crash workers at random moments; CHAOS_ROUNDS, CHAOS_SEED
	BUILD=$(abspath $(BUILD)) TEST_SOFTGPU="$${TEST_SOFTGPU-SOFTGPU_STRICT=1 SOFTGPU_SEED=$(or $(CHAOS_SEED),1)}" \
		TEST_ROUNDS=$(CHAOS_ROUNDS) $(if $(CHAOS_SEED),TEST_SEED=$(CHAOS_SEED)) $(BUILD)/tests/integration/test_interrupt

# ---- models
.PHONY: models
models: $(BUILD)/flags ## prove the models of tests/model anew, and note that they hold (a minute)
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
