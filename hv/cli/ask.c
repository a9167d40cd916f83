// SPDX-License-Identifier: BSD-3-Clause
/* Questions of the commands, and what is said where there is no answer. */
#include "hv/cli/cli.h"

#include <glib.h>
#include <json-c/json.h>
#include <stdio.h>

#include "hv/cli/columns.h"
#include "hv/cli/terminal.h"

int cli_fail(const char *command, const struct control_error *error)
{
    GString *text = g_string_new(NULL);

    cli_put_printable(text, error->text);
    fprintf(stderr, "vpmuctl %s: %s\n", command, text->str);
    g_string_free(text, TRUE);
    if (error->absent)
        fputs("  start it: systemctl start vpmud; or say with --control where its socket is\n",
              stderr);
    if (error->denied && error->unreachable)
        fputs("  be root, or a member of the group that the socket has (vpmud)\n", stderr);
    return error->denied ? CLI_DENIED : error->unreachable ? CLI_UNAVAILABLE : CLI_REFUSED;
}

struct json_object *cli_ask(const char *command, const char *path, const char *op, const char *key,
                            const char *value, int *status)
{
    struct control_error error;
    struct json_object *answer = control_question(path, op, key, value, &error);

    *status = answer ? 0 : cli_fail(command, &error);
    return answer;
}

int cli_print_json(struct json_object *object)
{
    GString *text = g_string_new(
        json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                   JSON_C_TO_STRING_NOSLASHESCAPE));

    json_object_put(object);
    return terminal_end(g_string_append_c(text, '\n'), 0);
}
