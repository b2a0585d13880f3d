# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The programs and libraries that are installed.

PROGRAM_LIBS = $(PKG_LIBS) -ldl -lm

$(BUILD)/bin/gpushared: $(call obj,server/supervisor/main.c) $(A)/libsupervisor.a $(A)/libscheduler.a $(A)/libcommon.a
$(BUILD)/libexec/gpushare-worker: $(call obj,server/worker/main.c) $(A)/libworker.a $(A)/libscheduler.a $(A)/libcommon.a
$(BUILD)/bin/gpusharectl: $(call obj,client/tools/gpusharectl.c) $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
$(BUILD)/bin/gpushare: $(call obj,client/tools/gpushare.c) $(A)/libtools.a $(A)/libclient.a $(A)/libcommon.a
$(BUILD)/bin/%:
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/libexec/%:
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -rdynamic -o $@ $^ $(PROGRAM_LIBS)

# The client library: one relocatable object whose internal symbols are local, so
# that neither the .so nor the .a leaks a name that is not in the version script.
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

$(BUILD)/lib/softgpu/libcuda.so.1: $(A)/libsoftgpu.a $(A)/libcommon.a server/softgpu/libcuda.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=server/softgpu/libcuda.map \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-Bsymbolic -o $@ -Wl,--whole-archive $(A)/libsoftgpu.a -Wl,--no-whole-archive $(A)/libcommon.a -lzstd -llz4 -lm -ldl

ALL += $(BUILD)/bin/gpushared $(BUILD)/libexec/gpushare-worker $(BUILD)/bin/gpusharectl $(BUILD)/bin/gpushare \
       $(BUILD)/lib/libgpushare-client.so.0 $(BUILD)/lib/libgpushare-client.a $(BUILD)/lib/softgpu/libcuda.so.1
