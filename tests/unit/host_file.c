// SPDX-License-Identifier: BSD-3-Clause
/* Whole files: of every size around the bound, and what is no file. */
#include "vpmu/host.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 5000u

Test(host_file, sizes)
{
    static const size_t sizes[] = {0, 1, 4094, 4095, 4096, MOST - 1, MOST, MOST + 1, 3 * MOST};
    char path[] = P_tmpdir "/vpmu-file-XXXXXX";
    const int file = mkstemp(path);

    cr_assert_geq(file, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = 77;

        cr_assert(!ftruncate(file, 0) && !ftruncate(file, (off_t)sizes[i]));
        if (sizes[i])
            cr_assert_eq(pwrite(file, "x", 1, (off_t)sizes[i] - 1), 1);
        errno = 0;
        char *text = vpmu_host_load_file(path, MOST, &size);

        cr_assert_eq(text != NULL, sizes[i] <= MOST, "%zu", sizes[i]);
        if (!text) {
            cr_expect_eq(errno, EFBIG);
            continue;
        }
        cr_expect_eq(size, sizes[i]);
        cr_expect_eq(text[size], '\0');
        cr_expect(!size || text[size - 1] == 'x');
        free(text);
    }
    close(file);
    unlink(path);
}

Test(host_file, no_file)
{
    char folder[] = P_tmpdir "/vpmu-file-XXXXXX", path[64];
    size_t size;

    cr_assert_not_null(mkdtemp(folder));
    cr_expect_null(vpmu_host_load_file(folder, MOST, &size));
    cr_expect_eq(errno, EISDIR);
    snprintf(path, sizeof(path), "%s/fifo", folder);
    cr_expect_null(vpmu_host_load_file(path, MOST, &size));
    cr_expect_eq(errno, ENOENT);
    cr_assert(!mkfifo(path, 0600));
    char *text = vpmu_host_load_file(path, MOST, &size);

    cr_assert_not_null(text);
    cr_expect_eq(size, 0);
    free(text);
    unlink(path);
    rmdir(folder);
}
