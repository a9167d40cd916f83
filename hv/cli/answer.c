// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/answer.h"

#include <json-c/json.h>

static struct json_object *typed(struct json_object *object, const char *key, json_type type)
{
    struct json_object *value = json_object_object_get(object, key);

    return json_object_is_type(value, type) ? value : NULL;
}

const char *answer_text(struct json_object *object, const char *key)
{
    struct json_object *value = typed(object, key, json_type_string);

    return value ? json_object_get_string(value) : "";
}

uint64_t answer_number(struct json_object *object, const char *key)
{
    return json_object_get_uint64(typed(object, key, json_type_int));
}

bool answer_flag(struct json_object *object, const char *key)
{
    return json_object_get_boolean(typed(object, key, json_type_boolean));
}

struct vpmu_amount answer_amount(struct json_object *object, const char *key)
{
    struct json_object *amount = answer_object(object, key);

    return (struct vpmu_amount){.gp = (uint16_t)answer_number(amount, "gp"),
                                .fixed = (uint16_t)answer_number(amount, "fixed")};
}

struct json_object *answer_object(struct json_object *object, const char *key)
{
    return typed(object, key, json_type_object);
}

struct json_object *answer_rows(struct json_object *object, const char *key, size_t *count)
{
    struct json_object *rows = typed(object, key, json_type_array);

    *count = rows ? json_object_array_length(rows) : 0;
    return rows;
}

struct json_object *answer_row(struct json_object *rows, size_t i)
{
    struct json_object *row = json_object_array_get_idx(rows, i);

    return json_object_is_type(row, json_type_object) ? row : NULL;
}
