# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The kernel corpus: tests/corpus/*.cu compiled to PTX (checked in, tests/corpus/ptx) and as C++ for the
# CPU (the oracle), and the program that compares the results of the two.

CORPUS_CU := $(sort $(wildcard tests/corpus/*.cu))
CORPUS_CC := $(sort $(wildcard tests/corpus/*.cc))
CORPUS := $(BUILD)/tests/programs/corpus
CORPUS_OBJ := $(patsubst tests/corpus/%.cu,$(CORPUS)/%.cu.o,$(CORPUS_CU)) $(patsubst tests/corpus/%.cc,$(CORPUS)/%.cc.o,$(CORPUS_CC))

# These flags give the same bits as nvcc -fmad=false: no contraction, IEEE arithmetic, wrapping integers.
# The oracle is never instrumented, because its fibers have stacks that sanitizers don't know.
CORPUS_CXXFLAGS := -std=c++17 -O1 -fPIC -fvisibility=hidden -ffp-contract=off -fwrapv -fno-strict-aliasing \
    -fcf-protection=none -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-function -Wno-unused-variable \
    $(if $(filter 1,$(WERROR)),-Werror) -Itests/corpus

# "// arch: 80" in a source says that it needs more than compute capability 7.5.
corpus_arch = $(or $(shell sed -n 's|^// arch: \([0-9]*\)$$|\1|p' $(1)),75)

$(CORPUS)/%.cu.o: tests/corpus/%.cu
	@mkdir -p $(@D)
	$(CXX) -x c++ $(CORPUS_CXXFLAGS) -DCORPUS_MODULE='"$*"' -DCORPUS_ARCH=$(call corpus_arch,$<) -MMD -MP -c $< -o $@
$(CORPUS)/host_math.cc.o: CORPUS_CXXFLAGS += -frounding-math
$(CORPUS)/%.cc.o: tests/corpus/%.cc
	@mkdir -p $(@D)
	$(CXX) $(CORPUS_CXXFLAGS) -MMD -MP -c $< -o $@
$(CORPUS)/liboracle.so: $(CORPUS_OBJ)
	$(CXX) -shared -Wl,-Bsymbolic -o $@ $^ -lm
$(CORPUS)/corpus: $(BUILD)/obj/tests/programs/corpus/corpus.o $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)

-include $(wildcard $(CORPUS)/*.d)

CHECK_DEPS += $(CORPUS)/liboracle.so $(CORPUS)/corpus

.PHONY: corpus-ptx
corpus-ptx: ## compile the corpus's kernels to PTX again (needs nvcc)
	tests/programs/corpus/make-ptx --output tests/corpus/ptx $(CORPUS_CU)
