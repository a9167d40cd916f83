/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenarios.h"

#include "check.h"
#include "io.h"
#include "libc.h"

static void hello(void)
{
    NTSTATUS status;
    struct driver *driver = driver_load("hello.sys", &status, NULL);

    check_equal((ULONG)status, (ULONG)STATUS_SUCCESS, "hello.sys: DriverEntry");
    if (driver)
        driver_unload(driver);
}

const struct scenario scenarios[] = {
    {"hello", hello},
};
const unsigned scenario_count = ARRAY_SIZE(scenarios);
