# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make install [PREFIX=/usr/local] [DESTDIR=]. It writes below PREFIX only, so it never overwrites a unit
# of a distribution's package. systemd reads units, sysusers.d and tmpfiles.d in /usr/local/lib as well
# as in /usr/lib.

BINDIR ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
CMAKEDIR ?= $(LIBDIR)/cmake/gpushare-client
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
# The unit path of systemd.unit(5), as far as an installation may write there.
SYSTEMD_DIRS := /etc/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system
DOCDIR ?= $(PREFIX)/share/doc/gpushare
# Where bash-completion looks, by the name of the command.
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
SOFTGPUDIR ?= $(PREFIX)/lib/gpushare/softgpu
# gpushare run looks for them beside its own folder.
CUDADIR ?= $(PREFIX)/lib/gpushare
INSTALL ?= install

CLIENT_SO := libgpushare-client.so
CLIENT_REAL := $(CLIENT_SO).$(VERSION)
CUDA_LIBRARIES := libcuda.so.1 $(CUDART_RELEASES:%=libcudart.so.%) libgpushare-audit.so
# The example that README compiles, and those that pages name.
EXAMPLES_INSTALLED := vector-add resilient stray
EXAMPLE_KERNELS := $(EXAMPLES_INSTALLED:%=%.cu) $(EXAMPLES_INSTALLED:%=%.ptx)
EXAMPLE_FILES := $(EXAMPLES_INSTALLED:%=%.c) example.h $(EXAMPLE_KERNELS)
# The pages name each other, and commands' help names the schemas by their folder. Examples lie beside the pages, and a link
# to a test or to README is plain text, because neither is installed.
DOC_PAGES := $(notdir $(wildcard docs/*.md))
DOC_LINKS := -e 's|](\.\./examples/|](examples/|g' -e 's|\[\([^]]*\)\](\.\./tests/[^)]*)|\1|g' -e 's|\[\([^]]*\)\](\.\./README\.md[^)]*)|\1|g'
# The pages of the tree have the folders of a plain make install; those that are installed, their own.
DOC_PLACES = -e '/<!-- in the tree -->/,/<!-- installed -->/d' -e 's|/usr/local/share/doc/gpushare|$(DOCDIR)|g' \
    -e 's|/usr/local/lib/gpushare|$(CUDADIR)|g' -e 's|/usr/local/share/man|$(MANDIR)|g' -e 's|/usr/local/lib/sysusers.d|$(SYSUSERSDIR)|g' \
    -e 's|/usr/local/lib/tmpfiles.d|$(TMPFILESDIR)|g' -e 's|/usr/local|$(PREFIX)|g'
DOC_FILES := docs/gpushared.yaml docs/gpushare.logrotate schemas/gpushared-config.schema.json systemd/gpushared.env systemd/gpushare-exporter.env
DOC_PICTURES := $(wildcard docs/pictures/*.svg)
MONITORING_FILES := $(wildcard docs/monitoring/*)
CONTAINER_FILES := $(wildcard docs/containers/*)
SCHEMA_FILES := $(wildcard schemas/*.schema.json)
# docs/man/NAME.SECTION, each into the folder of its section.
MAN_PAGES := $(notdir $(wildcard docs/man/*.[1-8]))
MAN_FILES := $(foreach page,$(MAN_PAGES),$(MANDIR)/man$(lastword $(subst ., ,$(page)))/$(page))
CMAKE_FILES := gpushare-client-config.cmake gpushare-client-config-version.cmake
# From one folder to another, by their names alone: neither need exist yet.
from_to = $(shell realpath --canonicalize-missing --no-symlinks --relative-to=$(1) $(2))
UNITS := gpushare-exporter.service gpushared.service gpushared.socket gpushared-admin.socket gpushare-devices.service
# In units, their variables of installation.
UNIT_PATHS = -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@LIBEXECDIR@|$(LIBEXECDIR)|g' -e 's|@DOCDIR@|$(DOCDIR)|g'
INSTALLED := $(BINDIR)/gpushared $(BINDIR)/gpusharectl $(BINDIR)/gpushare $(BINDIR)/softgpu $(BINDIR)/gpushare-exporter $(LIBEXECDIR)/gpushare-worker $(LIBEXECDIR)/gpushare-devices \
    $(LIBDIR)/$(CLIENT_REAL) $(LIBDIR)/$(CLIENT_SO).0 $(LIBDIR)/$(CLIENT_SO) $(LIBDIR)/libgpushare-client.a \
    $(INCLUDEDIR)/gpushare.h $(INCLUDEDIR)/gpushare_error.h $(PKGCONFIGDIR)/gpushare-client.pc $(CMAKE_FILES:%=$(CMAKEDIR)/%) $(MAN_FILES) $(SOFTGPUDIR)/libcuda.so.1 \
    $(CUDA_LIBRARIES:%=$(CUDADIR)/%) \
    $(UNITS:%=$(UNITDIR)/%) $(USERUNITDIR)/gpushared.service $(DOCDIR)/softgpu.conf $(SYSUSERSDIR)/gpushare.conf $(TMPFILESDIR)/gpushare.conf $(COMPLETIONDIR)/gpusharectl \
    $(EXAMPLE_FILES:%=$(DOCDIR)/examples/%) \
    $(addprefix $(DOCDIR)/,$(notdir $(DOC_FILES)) $(DOC_PAGES)) $(DOC_PICTURES:docs/%=$(DOCDIR)/%) $(MONITORING_FILES:docs/%=$(DOCDIR)/%) \
    $(CONTAINER_FILES:docs/%=$(DOCDIR)/%) $(SCHEMA_FILES:%=$(DOCDIR)/%)

.PHONY: install install-built uninstall
# Packages are built with a compiler's flags of their own, and then installed without a look at whether flags have changed.
install-built: $(if $(filter install-built,$(GOALS)),,all) ## install what is built already, as it is
	$(INSTALL) -d $(sort $(addprefix $(DESTDIR),$(dir $(INSTALLED))))
	$(INSTALL) -m 0755 $(BUILD)/bin/gpushared $(BUILD)/bin/gpusharectl $(BUILD)/bin/gpushare $(BUILD)/bin/softgpu $(BUILD)/bin/gpushare-exporter $(DESTDIR)$(BINDIR)/
	$(INSTALL) -m 0755 $(BUILD)/libexec/gpushare-worker $(DESTDIR)$(LIBEXECDIR)/
	$(INSTALL) -m 0755 systemd/gpushare-devices.sh $(DESTDIR)$(LIBEXECDIR)/gpushare-devices
	$(INSTALL) -m 0644 $(BUILD)/lib/$(CLIENT_SO).0 $(DESTDIR)$(LIBDIR)/$(CLIENT_REAL)
	ln -sf $(CLIENT_REAL) $(DESTDIR)$(LIBDIR)/$(CLIENT_SO).0
	ln -sf $(CLIENT_SO).0 $(DESTDIR)$(LIBDIR)/$(CLIENT_SO)
	$(INSTALL) -m 0644 $(BUILD)/lib/libgpushare-client.a $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 0644 client/gpushare.h client/gpushare_error.h $(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 0644 $(BUILD)/lib/softgpu/libcuda.so.1 $(DESTDIR)$(SOFTGPUDIR)/
	$(INSTALL) -m 0644 $(CUDA_LIBRARIES:%=$(BUILD)/lib/gpushare/%) $(DESTDIR)$(CUDADIR)/
	$(INSTALL) -m 0644 systemd/gpushare.sysusers $(DESTDIR)$(SYSUSERSDIR)/gpushare.conf
	for page in $(MAN_PAGES); do $(INSTALL) -m 0644 docs/man/$$page $(DESTDIR)$(MANDIR)/man$${page##*.}/ || exit 1; done
	$(INSTALL) -m 0644 systemd/gpushare.tmpfiles $(DESTDIR)$(TMPFILESDIR)/gpushare.conf
	$(BUILD)/bin/gpusharectl completion bash >$(DESTDIR)$(COMPLETIONDIR)/gpusharectl
	chmod 0644 $(DESTDIR)$(COMPLETIONDIR)/gpusharectl
	$(INSTALL) -m 0644 $(DOC_FILES) $(DESTDIR)$(DOCDIR)/
	for page in $(DOC_PAGES); do \
	    sed $(DOC_LINKS) $(DOC_PLACES) docs/$$page >$(DESTDIR)$(DOCDIR)/$$page && chmod 0644 $(DESTDIR)$(DOCDIR)/$$page || exit 1; done
	$(INSTALL) -m 0644 $(DOC_PICTURES) $(DESTDIR)$(DOCDIR)/pictures/
	$(INSTALL) -m 0644 $(MONITORING_FILES) $(DESTDIR)$(DOCDIR)/monitoring/
	$(INSTALL) -m 0644 $(CONTAINER_FILES) $(DESTDIR)$(DOCDIR)/containers/
	$(INSTALL) -m 0644 $(SCHEMA_FILES) $(DESTDIR)$(DOCDIR)/schemas/
	for example in $(EXAMPLES_INSTALLED); do \
	    sed -e 's|"examples/example.h"|"example.h"|' -e 's|"examples/kernels/|"|' examples/$$example.c \
	        >$(DESTDIR)$(DOCDIR)/examples/$$example.c || exit 1; done
	sed -e 's|"client/gpushare.h"|<gpushare.h>|' examples/example.h >$(DESTDIR)$(DOCDIR)/examples/example.h
	$(INSTALL) -m 0644 $(EXAMPLE_KERNELS:%=examples/kernels/%) $(DESTDIR)$(DOCDIR)/examples/
	chmod 0644 $(EXAMPLE_FILES:%=$(DESTDIR)$(DOCDIR)/examples/%)
	for unit in $(UNITS); do \
	    sed $(UNIT_PATHS) systemd/$$unit.in >$(DESTDIR)$(UNITDIR)/$$unit && \
	    chmod 0644 $(DESTDIR)$(UNITDIR)/$$unit || exit 1; done
	sed $(UNIT_PATHS) systemd/gpushared-user.service.in >$(DESTDIR)$(USERUNITDIR)/gpushared.service
	sed $(UNIT_PATHS) systemd/softgpu.conf.in >$(DESTDIR)$(DOCDIR)/softgpu.conf
	chmod 0644 $(DESTDIR)$(USERUNITDIR)/gpushared.service $(DESTDIR)$(DOCDIR)/softgpu.conf
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	    -e 's|@VERSION@|$(VERSION)|g' client/gpushare-client.pc.in >$(DESTDIR)$(PKGCONFIGDIR)/gpushare-client.pc
	chmod 0644 $(DESTDIR)$(PKGCONFIGDIR)/gpushare-client.pc
	for file in $(CMAKE_FILES); do \
	    sed -e 's|@LIB_FROM_CMAKE@|$(call from_to,$(CMAKEDIR),$(LIBDIR))|g' -e 's|@VERSION@|$(VERSION)|g' \
	        -e 's|@INCLUDE_FROM_CMAKE@|$(call from_to,$(CMAKEDIR),$(INCLUDEDIR))|g' client/$$file.in >$(DESTDIR)$(CMAKEDIR)/$$file && \
	    chmod 0644 $(DESTDIR)$(CMAKEDIR)/$$file || exit 1; done

install: install-built ## install below PREFIX (default /usr/local); DESTDIR is put before every path
	@echo "Installed below $(DESTDIR)$(PREFIX). For programs to find the library: ldconfig (where $(LIBDIR) is"
	@echo "none of its folders, LD_LIBRARY_PATH=$(LIBDIR))."
	$(if $(filter $(SYSTEMD_DIRS),$(UNITDIR)),,@echo "systemd does not read $(UNITDIR): for a service, install with UNITDIR=/etc/systemd/system.")
	@echo "To run the server as a service:"
	@echo "  systemd-sysusers $(SYSUSERSDIR)/gpushare.conf && systemd-tmpfiles --create $(TMPFILESDIR)/gpushare.conf && systemctl daemon-reload && systemctl enable --now gpushared.socket gpushared-admin.socket gpushared.service"

# Folders that only gpushare uses, and below a prefix that is not the system's all that are empty then.
INSTALLED_DIRS := $(patsubst %/,%,$(sort $(dir $(INSTALLED)) $(DOCDIR)/ $(PREFIX)/lib/gpushare/))
EMPTY_DIRS := $(if $(filter /usr /usr/local,$(PREFIX)),$(filter %/gpushare $(SOFTGPUDIR) $(CMAKEDIR) $(DOCDIR)/%,$(INSTALLED_DIRS)), \
    $(filter $(PREFIX)/% %/gpushare $(SOFTGPUDIR) $(CMAKEDIR) $(DOCDIR)/%,$(INSTALLED_DIRS)) $(addprefix $(PREFIX)/,lib/systemd lib/cmake share/bash-completion share/doc share/man share) $(PREFIX))
# systemd can't disable a unit whose file is gone, so the links of enabled units would stay, and the service would run on.
# Debian's systemd makes links to /lib for units below /usr/lib.
uninstall: ## remove what install put there (same PREFIX and DESTDIR); configuration and users stay
	enabled=$$(for unit in $(UNITS); do find $(DESTDIR)/etc/systemd/system -path "*.wants/$$unit" '(' -lname "$(UNITDIR)/$$unit" \
	    -o -lname "$(UNITDIR:/usr/lib/%=/lib/%)/$$unit" ')' -printf ' %f' 2>/dev/null; done); \
	[ -z "$$enabled" ] || { echo "Nothing is removed yet, because systemd has units of it enabled. As root run:" >&2; \
	    echo "  systemctl disable --now$$enabled" >&2; echo "Then make uninstall again." >&2; exit 1; }
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	for folder in $$(printf '%s\n' $(addprefix $(DESTDIR),$(EMPTY_DIRS)) | sort -r); do \
	    [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder; done
