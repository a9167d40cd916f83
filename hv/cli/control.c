// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/control.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "hv/cli/answer.h"

#define TIMEOUT_S 10
#define ANSWER_MOST (64u << 20)

__attribute__((format(printf, 2, 3))) static void set_error(struct control_error *error,
                                                            const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
}

static void cannot_connect(struct control_error *error, const char *path)
{
    error->absent = errno == ENOENT || errno == ECONNREFUSED;
    error->denied = errno == EACCES || errno == EPERM;
    set_error(error, "%s: %s%s", path, strerror(errno),
              error->absent ? " (is vpmud running?)" : "");
}

int control_connect(const char *path, struct control_error *error)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *error = (struct control_error){.unreachable = true};
    if (!path)
        path = CONTROL_SOCKET;
    if (strlen(path) >= sizeof(address.sun_path)) {
        set_error(error, "%s: the path is too long for a socket", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    const int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (control < 0 || connect(control, (const struct sockaddr *)&address, sizeof(address))) {
        cannot_connect(error, path);
        if (control >= 0)
            close(control);
        return -1;
    }
    setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(control, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    return control;
}

/* 0, or -1 with errno. */
static int send_all(int control, const char *text, size_t size)
{
    while (size) {
        const ssize_t sent = send(control, text, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        text += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* Feeds the parser until it has a whole object; NULL and errno, EBADMSG if it is no JSON. */
static struct json_object *receive(int control, struct json_tokener *parser)
{
    char part[16384];

    for (size_t total = 0; total < ANSWER_MOST;) {
        const ssize_t size = recv(control, part, sizeof(part), 0);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0) {
            errno = size < 0 ? errno : ECONNRESET;
            return NULL;
        }
        total += (size_t)size;
        struct json_object *answer = json_tokener_parse_ex(parser, part, (int)size);

        if (answer)
            return answer;
        if (json_tokener_get_error(parser) != json_tokener_continue) {
            errno = EBADMSG;
            return NULL;
        }
    }
    errno = EMSGSIZE;
    return NULL;
}

/* Whether it says {"ok": true}; else the error is what it says. */
static bool is_good(struct json_object *answer, struct control_error *error)
{
    struct json_object *why = answer_object(answer, "error");
    const char *text = answer_text(why, "text");

    if (answer_flag(answer, "ok"))
        return true;
    set_error(error, "%s", *text ? text : "vpmud's answer is neither ok nor an error");
    error->denied = !strcmp(answer_text(why, "status"), "denied");
    return false;
}

struct json_object *control_ask(int control, struct json_object *question,
                                struct control_error *error)
{
    const char *line = json_object_to_json_string_ext(question, JSON_C_TO_STRING_PLAIN);
    struct json_tokener *parser = json_tokener_new();
    struct json_object *answer = NULL;

    *error = (struct control_error){0};
    if (parser && !send_all(control, line, strlen(line)) && !send_all(control, "\n", 1))
        answer = receive(control, parser);
    if (!answer) {
        error->unreachable = true;
        set_error(error, "vpmud does not answer: %s", strerror(errno));
    } else if (!is_good(answer, error)) {
        json_object_put(answer);
        answer = NULL;
    }
    json_tokener_free(parser);
    return answer;
}

struct json_object *control_question(const char *path, const char *op, const char *key,
                                     const char *value, struct control_error *error)
{
    const int control = control_connect(path, error);
    struct json_object *question, *answer;

    if (control < 0)
        return NULL;
    question = json_object_new_object();
    json_object_object_add(question, "op", json_object_new_string(op));
    if (key)
        json_object_object_add(question, key, json_object_new_string(value));
    answer = control_ask(control, question, error);
    json_object_put(question);
    close(control);
    return answer;
}
