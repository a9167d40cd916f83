// SPDX-License-Identifier: BSD-3-Clause
/* Questions to a daemon, and what is made of its answers. */
#include "hv/cli/control.h"
#include "hv/cli/managed.h"

#include <criterion/criterion.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* ---- A daemon that says one thing ---- */

static char folder[64];
static struct sockaddr_un address;
static char asked[256];

struct server {
    int listener;
    const char *says;
};

static void *serve(void *data)
{
    const struct server *server = data;
    const int client = accept(server->listener, NULL, NULL);
    size_t length = 0;

    while (length < sizeof(asked) - 1 && read(client, asked + length, 1) == 1)
        if (asked[length++] == '\n')
            break;
    asked[length] = '\0';
    (void)!write(client, server->says, strlen(server->says));
    close(client);
    return NULL;
}

static void setup(void)
{
    snprintf(folder, sizeof(folder), "%s/vpmu-cli-XXXXXX", P_tmpdir);
    cr_assert_not_null(mkdtemp(folder));
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", folder);
}

static void teardown(void)
{
    unlink(address.sun_path);
    rmdir(folder);
}

TestSuite(cli_control, .init = setup, .fini = teardown);

/* Asks a daemon that answers with this. */
static struct json_object *ask(const char *says, struct control_error *error)
{
    struct server server = {socket(AF_UNIX, SOCK_STREAM, 0), says};
    struct json_object *question = json_tokener_parse("{\"op\": \"leases\"}");
    pthread_t thread;

    unlink(address.sun_path);
    cr_assert(!bind(server.listener, (const struct sockaddr *)&address, sizeof(address)));
    cr_assert(!listen(server.listener, 1));
    cr_assert(!pthread_create(&thread, NULL, serve, &server));
    const int control = control_connect(address.sun_path, error);

    cr_assert_geq(control, 0, "%s", error->text);
    struct json_object *answer = control_ask(control, question, error);

    pthread_join(thread, NULL);
    close(control);
    close(server.listener);
    json_object_put(question);
    return answer;
}

Test(cli_control, answers)
{
    static const struct {
        const char *says;
        const char *error; /* NULL: it is an answer */
    } rows[] = {
        {"{\"ok\": true, \"leases\": []}\n", NULL},
        {"{\"ok\": true}", NULL},
        {"{\"ok\": false, \"error\": {\"status\": \"x\", \"text\": \"you may not\"}}\n",
         "you may not"},
        {"{\"ok\": false}\n", "neither ok nor an error"},
        {"{}\n", "neither ok nor an error"},
        {"[]\n", "neither ok nor an error"},
        {"{\"ok\": tru", "does not answer"},
        {"hello\n", "does not answer"},
        {"", "does not answer"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct control_error error = {.text = ""};
        struct json_object *answer = ask(rows[i].says, &error);

        cr_expect_str_eq(asked, "{\"op\":\"leases\"}\n");
        cr_expect_eq(answer != NULL, !rows[i].error, "%s", rows[i].says);
        if (rows[i].error)
            cr_expect_not_null(strstr(error.text, rows[i].error), "%s: %s", rows[i].says,
                               error.text);
        json_object_put(answer);
    }
}

Test(cli_control, nobody_there)
{
    struct control_error error;
    char path[256];

    cr_expect_eq(control_connect(address.sun_path, &error), -1);
    cr_expect(error.absent);
    cr_expect_not_null(strstr(error.text, "is vpmud running"), "%s", error.text);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    cr_expect_eq(control_connect(path, &error), -1);
    cr_expect_not(error.absent);
}

/* ---- Leases ---- */

Test(cli_managed, leases)
{
    struct vpmu_host_processor processors[4] = {{.online = true}};
    const struct vpmu_host host = {.processors = processors, .processor_count = 4};
    struct json_object *answer = json_tokener_parse(
        "{\"ok\": true, \"leases\": ["
        "{\"binding\": \"cpu\", \"state\": \"live\", \"pid\": 12, \"processors\": \"0-1\","
        " \"granted\": {\"gp\": 2, \"fixed\": 1}},"
        "{\"binding\": \"cpu\", \"state\": \"live\", \"pid\": 13, \"processors\": \"1\","
        " \"granted\": {\"gp\": 1, \"fixed\": 2}},"
        "{\"binding\": \"cpu\", \"state\": \"observed\", \"pid\": 14, \"processors\": \"0-3\","
        " \"granted\": {\"gp\": 5, \"fixed\": 0}},"
        "{\"binding\": \"vcpu\", \"state\": \"live\", \"pid\": 15, \"processors\": \"0-3\","
        " \"granted\": {\"gp\": 5, \"fixed\": 0}},"
        "{\"binding\": \"cpu\", \"state\": \"live\", \"pid\": 16, \"processors\": \"0-9\","
        " \"granted\": {\"gp\": 5, \"fixed\": 0}},"
        "{\"binding\": 7}, {}, null, 5]}");
    struct vpmu_host_managed managed;

    cr_assert_not_null(answer);
    cr_assert_eq(managed_of_answer(answer, &host, &managed), 0);
    cr_assert_eq(managed.pid_count, 3);
    cr_expect_eq(managed.pids[0], 12);
    cr_expect_eq(managed.pids[1], 13);
    cr_expect_eq(managed.taken[0].gp, 2);
    cr_expect_eq(managed.taken[1].gp, 3);
    cr_expect_eq(managed.taken[1].fixed, 3);
    cr_expect_eq(managed.taken[2].gp, 0);
    managed_free(&managed);
    json_object_put(answer);
    answer = json_tokener_parse("{\"ok\": true, \"leases\": 7}");
    cr_assert_eq(managed_of_answer(answer, &host, &managed), 0);
    cr_expect_eq(managed.pid_count, 0);
    managed_free(&managed);
    json_object_put(answer);
}
