# SPDX-License-Identifier: BSD-3-Clause
# The Windows programs under Wine; see tests/wine/run.

SUITES += wine
wine_PACKAGES := base drivers wine
wine_NEEDS = programs-windows $(DRIVERS_OUT)/wine/vpmuperf-double.exe $(DRIVERS_OUT)/wine/routines.exe \
	$(DRIVERS_OUT)/perflib-double.dll

# vpmuperf whose calls of perflib go through tests/wine/double.c. Apart from what is shipped.
exe_wine/vpmuperf-double_SRC := $(vpmuperf_SRC) tests/wine/double.c
exe_wine/vpmuperf-double_LIBS := -ladvapi32
exe_wine/routines_SRC := guest-drivers/vpmuperf/counters.c tests/wine/routines.c
exe_wine/routines_LIBS := -ladvapi32
$(foreach p,wine/vpmuperf-double wine/routines,$(eval $(call EXE_RULES,$(p))))
$(DRIVERS_OUT)/wine/vpmuperf-double.exe $(DRIVERS_OUT)/wine/routines.exe: | $(DRIVERS_OUT)/wine
$(DRIVERS_OUT)/wine:
	@mkdir -p $@

# The consumer routines that Wine lacks, for vpmustat --perflib.
perflib_double_SRC := tests/wine/perflib_double.c $(perflib_SRC)
$(DRIVERS_OUT)/perflib-double.dll: $(perflib_double_SRC) $(wildcard guest-drivers/perflib/*.[hd]*) | setup-drivers
	@mkdir -p $(@D)
	$(call run,MINGW,$@) $(DRIVERS_CC) $(EXES_CFLAGS) -MF $(@D)/perflib-double.d -shared -static -s -o $@ $(perflib_double_SRC)
