# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# A client with modelled kernels, for traces of known contents.

PICTURE_WORK := $(BUILD)/tests/pictures/work
$(call obj,tests/pictures/work.c): tests/pictures/kernels/work.ptx
$(PICTURE_WORK): $(call obj,tests/pictures/work.c) $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
# tests/integration/test_trace.py traces it.
CHECK_DEPS += $(PICTURE_WORK)
