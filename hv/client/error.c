// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>

#include "client_internal.h"

int client_error(struct vpmu_client_error *error, vpmu_status status, int system_error,
                 const char *format, ...)
{
    char text[VPMU_WIRE_TEXT];
    va_list arguments;

    if (!error)
        return -1;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    *error = (struct vpmu_client_error){.status = status, .system_error = system_error};
    vpmu_wire_text(error->text, sizeof(error->text), text);
    return -1;
}
