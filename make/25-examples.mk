# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The examples link the library as a user's program would. Their kernels' PTX is
# checked in; `make examples-ptx` makes it again where nvcc is.

EXAMPLE_C   := $(wildcard examples/*.c)
EXAMPLES    := $(patsubst %.c,$(BUILD)/%,$(EXAMPLE_C))
EXAMPLE_SUPPORT := $(call obj,$(wildcard examples/support/*.c))

$(EXAMPLES): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(EXAMPLE_SUPPORT) $(BUILD)/lib/libgpushare-client.so.0
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(filter %.o,$^) -L$(BUILD)/lib -l:libgpushare-client.so.0 -lm \
	    $(if $(filter mandelbrot,$*),-lpng16)

# What .incbin takes in is invisible to -MMD.
$(foreach e,$(EXAMPLE_C),$(eval $(BUILD)/obj/$(e:.c=.o): $(patsubst examples/%.c,examples/kernels/%.ptx,$(e))))

ALL += $(EXAMPLES)

.PHONY: examples-ptx
examples-ptx: ## make the examples' PTX again (needs nvcc and ptxas)
	tests/programs/corpus/make-ptx --output examples/kernels examples/kernels/*.cu
