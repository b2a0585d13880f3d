# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make sharing-pictures: docs/pictures/*.svg anew, from traces of the real server. `work` is a client
# with modelled kernels, `picture` draws a trace.

PICTURE_PROGRAMS := $(BUILD)/tests/programs/pictures/work $(BUILD)/tests/programs/pictures/picture
$(call obj,tests/programs/pictures/work.c): tests/programs/pictures/kernels/work.ptx
$(BUILD)/tests/programs/pictures/work: $(call obj,tests/programs/pictures/work.c) $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/tests/programs/pictures/picture: $(call obj,tests/programs/pictures/picture.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
# tests/integration/test_trace.py traces the one, test_pictures.py runs the other.
CHECK_DEPS += $(PICTURE_PROGRAMS)

.PHONY: sharing-pictures
sharing-pictures: all $(PICTURE_PROGRAMS) ## draw docs/pictures/ anew from traces of the real server
	BUILD=$(abspath $(BUILD)) $(PYTHON) tests/programs/pictures/sharing.py docs/pictures
