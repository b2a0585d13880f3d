# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The programs and libraries that are installed, and the examples that use them.

PROGRAM_LIBS = $(PKG_LIBS) -ldl -lm

$(BUILD)/bin/gpushared: $(call obj,server/supervisor/main.c) $(A)/libsupervisor.a $(A)/libscheduler.a $(A)/libcommon.a
$(BUILD)/libexec/gpushare-worker: $(call obj,server/worker/main.c) $(A)/libworker.a $(A)/libscheduler.a $(A)/libcommon.a
$(BUILD)/bin/gpusharectl: $(call obj,client/tools/gpusharectl.c) $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
$(BUILD)/bin/gpushare: $(call obj,client/tools/gpushare.c) $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
$(BUILD)/bin/softgpu: $(call obj,client/tools/softgpu.c) $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
# It reads compressed files of the accounting.
$(BUILD)/bin/gpusharectl: PROGRAM_LIBS += -lz
# The one program that speaks HTTP; no other one is linked with the library for it.
$(BUILD)/bin/gpushare-exporter: PROGRAM_LIBS += -lmicrohttpd
$(BUILD)/bin/gpushare-exporter: $(call obj,client/tools/exporter/gpushare_exporter.c) $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
$(BUILD)/bin/%:
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/libexec/%:
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -rdynamic -o $@ $^ $(PROGRAM_LIBS)

# The client library. The .a holds one relocatable object whose internal symbols are local, so that neither
# the .so nor the .a leaks a name that is not in the version script.
CLIENT_LIBS := -lzstd -llz4
$(BUILD)/lib/libgpushare-client.so.0: $(A)/libclient.a $(A)/libcommon.a client/libgpushare-client.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libgpushare-client.so.0 -Wl,--version-script=client/libgpushare-client.map \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-z,relro,-z,now -o $@ -Wl,--whole-archive $(A)/libclient.a -Wl,--no-whole-archive $(A)/libcommon.a $(CLIENT_LIBS)
	ln -sf libgpushare-client.so.0 $(BUILD)/lib/libgpushare-client.so
comma := ,
$(BUILD)/lib/libgpushare-client.a: $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	@rm -f $@
	$(LD) -r -o $(A)/gpushare-client.o --whole-archive $(A)/libclient.a --no-whole-archive $(A)/libcommon.a
	objcopy --wildcard --keep-global-symbol='gpushare_*' $(A)/gpushare-client.o
	$(AR) rcs $@ $(A)/gpushare-client.o

# Both libcuda.so.1 export all functions that NVIDIA's has: those that one does not carry are refused.
EXPORTS_SCRIPTS := client/cuda/generate_exports.py client/cuda/exports.py
DRIVER_TABLES := common/cuda/front/driver_exports.h common/cuda/front/exports.txt
$(BUILD)/generated/softgpu.map $(BUILD)/generated/softgpu_absent.c: $(EXPORTS_SCRIPTS) $(DRIVER_TABLES) server/softgpu/api/softgpu_exports.h
	@mkdir -p $(@D)
	$(PYTHON) $< $@

# Its threads are in its code when a program closes it, so the code stays mapped.
$(BUILD)/lib/softgpu/libcuda.so.1: $(A)/libsoftgpu.a $(A)/libcommon.a $(BUILD)/generated/softgpu.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(BUILD)/generated/softgpu.map -Wl,--no-undefined-version \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-Bsymbolic -Wl,-z,nodelete -o $@ -Wl,--whole-archive $(A)/libsoftgpu.a -Wl,--no-whole-archive $(A)/libcommon.a -lzstd -llz4 -lm -ldl

ALL += $(BUILD)/bin/gpushared $(BUILD)/libexec/gpushare-worker $(BUILD)/bin/gpusharectl $(BUILD)/bin/gpushare $(BUILD)/bin/softgpu $(BUILD)/bin/gpushare-exporter \
       $(BUILD)/lib/libgpushare-client.so.0 $(BUILD)/lib/libgpushare-client.a $(BUILD)/lib/softgpu/libcuda.so.1

# ---- the CUDA runtime
# libcudart.so.12 and .so.13: the same objects, but for the file of each release, the version script and the bodies of
# functions that are not carried.
CUDART_SRC := $(wildcard client/cuda/runtime/*.c client/cuda/runtime/base/*.c)
CUDART_SHARED := $(filter-out $(CUDART_RELEASES:%=client/cuda/runtime/release_%.c),$(CUDART_SRC))

CUDART_TABLES := client/cuda/runtime/runtime_exports.h client/cuda/runtime/exports.txt
CUDART_GENERATED := $(CUDART_RELEASES:%=$(BUILD)/generated/libcudart.so.%.map) $(CUDART_RELEASES:%=$(BUILD)/generated/cudart_absent.%.c)
$(CUDART_GENERATED): $(EXPORTS_SCRIPTS) $(CUDART_TABLES)
	@mkdir -p $(@D)
	$(PYTHON) $< $@

$(BUILD)/lib/gpushare/libcudart.so.%: $(BUILD)/obj/client/cuda/runtime/release_%.o $(BUILD)/obj/generated/cudart_absent.%.o $(call obj,$(CUDART_SHARED)) $(A)/libcommon.a $(BUILD)/generated/libcudart.so.%.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcudart.so.$* -Wl,--version-script=$(BUILD)/generated/libcudart.so.$*.map -Wl,--no-undefined-version \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-Bsymbolic -Wl,-z,relro,-z,now -o $@ $(filter %.o,$^) $(A)/libcommon.a -lzstd -llz4 -ldl

ALL += $(CUDART_RELEASES:%=$(BUILD)/lib/gpushare/libcudart.so.%)

# ---- the drop-in driver
# libcuda.so.1 for a client's process: the driver API over the client library's engine. It has a thread that
# calls the program's functions, so its code stays mapped.
DROPIN_SRC := $(wildcard client/cuda/driver/*.c client/cuda/driver/base/*.c client/cuda/driver/print/*.c client/cuda/driver/managed/*.c) $(FRONT_SRC)

$(BUILD)/generated/libcuda.map $(BUILD)/generated/cuda_absent.c: $(EXPORTS_SCRIPTS) $(DRIVER_TABLES)
	@mkdir -p $(@D)
	$(PYTHON) $< $@

$(BUILD)/lib/gpushare/libcuda.so.1: $(call obj,$(DROPIN_SRC)) $(BUILD)/obj/generated/cuda_absent.o $(A)/libclient.a $(A)/libcommon.a $(BUILD)/generated/libcuda.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(BUILD)/generated/libcuda.map -Wl,--no-undefined-version \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-Bsymbolic -Wl,-z,relro,-z,now,-z,nodelete -o $@ $(filter %.o,$^) $(A)/libclient.a $(A)/libcommon.a $(CLIENT_LIBS)

ALL += $(BUILD)/lib/gpushare/libcuda.so.1

# What each function of either library does, for `gpushare run --explain`.
$(BUILD)/generated/cuda_functions.c: $(EXPORTS_SCRIPTS) $(DRIVER_TABLES) $(CUDART_TABLES)
	@mkdir -p $(@D)
	$(PYTHON) $< $@

# The exporter's page, in one file.
PAGE_PARTS := $(addprefix client/tools/exporter/,page.html page.css page.js)
$(BUILD)/generated/exporter_page.c: client/tools/exporter/generate_page.py $(PAGE_PARTS)
	@mkdir -p $(@D)
	$(PYTHON) $< $@

# ---- the loader
# Linked with nothing but the C library, because the dynamic linker loads it into each program.
$(BUILD)/lib/gpushare/libgpushare-audit.so: $(call obj,client/cuda/loader/audit.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libgpushare-audit.so $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-z,relro,-z,now -o $@ $^

ALL += $(BUILD)/lib/gpushare/libgpushare-audit.so

# ---- the software GPU's lane loops
# These loops have flags of their own, and are compiled once for each instruction set. Results must be
# IEEE's to the bit, so nothing is contracted or reordered. NaNs matter; the exceptions that arithmetic
# would raise do not.

EXEC_VALUES := $(foreach f,values lanes,$(addprefix $(BUILD)/obj/server/softgpu/value/exec_$f,.o _v3_x86_64.o _v4_x86_64.o))
$(EXEC_VALUES): OPT = -O3 -g -ffp-contract=off -fno-math-errno -fno-trapping-math
$(filter %_v3_x86_64.o,$(EXEC_VALUES)): CFLAGS += -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt
$(filter %_v4_x86_64.o,$(EXEC_VALUES)): CFLAGS += -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt \
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512
$(BUILD)/obj/server/softgpu/value/exec_round.o: OPT = -O2 -g -ffp-contract=off -frounding-math
# clang warns of each loop that has no vector form (integer division, library calls).
$(EXEC_VALUES): CFLAGS += $(if $(findstring clang,$(CC)),-Wno-pass-failed)

# ---- examples
# The examples link the library as a user's program does. The PTX of their kernels is checked in; `make
# examples-ptx` compiles it again if nvcc is installed.

EXAMPLE_C   := $(wildcard examples/*.c)
EXAMPLES    := $(patsubst %.c,$(BUILD)/%,$(EXAMPLE_C))
EXAMPLE_SUPPORT := $(call obj,$(wildcard examples/support/*.c))

$(EXAMPLES): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(EXAMPLE_SUPPORT) $(BUILD)/lib/libgpushare-client.so.0
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(filter %.o,$^) -L$(BUILD)/lib -l:libgpushare-client.so.0 -lm \
	    $(if $(filter mandelbrot,$*),-lpng16)

# -MMD does not see the files that .incbin includes.
$(foreach e,$(EXAMPLE_C),$(eval $(BUILD)/obj/$(e:.c=.o): $(patsubst examples/%.c,examples/kernels/%.ptx,$(e))))

ALL += $(EXAMPLES)

# A CUDA program as nvcc made it: its object is checked in, with PTX alone as the device's code, so that no toolkit
# is needed to link it with our libcudart. A sanitizer's library would have to be the program's first one, which the
# loader's is.
UNMODIFIED_O := $(if $(SAN),,$(wildcard examples/unmodified/*_$(MACHINE).o))
UNMODIFIED := $(UNMODIFIED_O:%_$(MACHINE).o=$(BUILD)/%)
$(UNMODIFIED): $(BUILD)/%: %_$(MACHINE).o $(BUILD)/lib/gpushare/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $< -L$(BUILD)/lib/gpushare -l:libcudart.so.13
ALL += $(UNMODIFIED)
# The same program in Python, and its kernels.
UNMODIFIED_PYTHON := $(if $(SAN),,$(addprefix $(BUILD)/examples/unmodified/,heat.py heat.ptx))
$(UNMODIFIED_PYTHON): $(BUILD)/examples/unmodified/%: examples/unmodified/%
	@mkdir -p $(@D)
	install -p $< $@
ALL += $(UNMODIFIED_PYTHON)

.PHONY: examples-unmodified
examples-unmodified: ## make the object and the PTX of examples/unmodified again (needs nvcc)
	nvcc -c -O2 -cudart shared -gencode arch=compute_75,code=compute_75 \
	    -Xcompiler -fno-exceptions,-fno-rtti,-fno-stack-protector,-fno-threadsafe-statics \
	    -o examples/unmodified/heat_$(MACHINE).o examples/unmodified/heat.cu
	tests/programs/corpus/make-ptx --output examples/unmodified examples/unmodified/heat.cu

.PHONY: examples-ptx
examples-ptx: ## make the examples' PTX again (needs nvcc and ptxas)
	tests/programs/corpus/make-ptx --output examples/kernels examples/kernels/*.cu

# ---- what is made from the schema and checked in
# docs/protocol.md is made from the schema, and checked in so that it can be read without building.
# tests/unit/schemas fails if the two differ.
.PHONY: protocol-reference
protocol-reference: ## write docs/protocol.md, and what the JSON Schemas have of it, from schemas/protocol.xml
	$(PYTHON) schemas/generate.py --reference docs/protocol.md schemas/protocol.xml
	$(PYTHON) schemas/generate_json.py schemas/protocol.xml schemas

# docs/cuda-api.md is made from the tables of CUDA's functions. tests/unit/docs fails if they differ.
.PHONY: cuda-api
cuda-api: ## write docs/cuda-api.md from the tables of CUDA's functions in client/cuda
	$(PYTHON) client/cuda/generate_reference.py docs/cuda-api.md

# docs/messages.md is made from the table of messages and the symptoms of docs/troubleshooting.md. tests/unit/docs fails if they
# differ.
.PHONY: messages
messages: ## write docs/messages.md from common/messages*.h and docs/troubleshooting.md
	$(PYTHON) common/generate_messages.py docs/messages.md

.PHONY: demo
demo: all ## six processes share one GPU at once; works without a GPU too
	@$(PYTHON) examples/demo.py --build $(BUILD)
