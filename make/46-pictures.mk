# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make sharing-pictures: docs/pictures/*.svg anew, from traces of the real server. `work` is a client
# with modelled kernels, `picture` draws a trace.

PICTURE_PROGRAMS := $(BUILD)/tests/pictures/work $(BUILD)/tests/pictures/picture
$(call obj,tests/pictures/work.c): tests/pictures/kernels/work.ptx
$(BUILD)/tests/pictures/work: $(call obj,tests/pictures/work.c) $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/tests/pictures/picture: $(call obj,tests/pictures/picture.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
# tests/integration/test_trace.py traces the one, test_pictures.py runs the other.
CHECK_DEPS += $(PICTURE_PROGRAMS)

.PHONY: sharing-pictures
sharing-pictures: all $(PICTURE_PROGRAMS) ## draw docs/pictures/ anew from traces of the real server
	BUILD=$(abspath $(BUILD)) $(PYTHON) tests/pictures/sharing.py docs/pictures
