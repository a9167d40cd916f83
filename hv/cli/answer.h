// SPDX-License-Identifier: BSD-3-Clause
/*
 * Reading vpmud's answers (docs/control.md). What is missing, or of another type than it should
 * be, is nothing: "", 0, false, no row. So no answer, however odd, is a danger.
 */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu/admission.h"

struct json_object;

const char *answer_text(struct json_object *object, const char *key);
uint64_t answer_number(struct json_object *object, const char *key);
bool answer_flag(struct json_object *object, const char *key);
struct vpmu_amount answer_amount(struct json_object *object, const char *key);

/* An object, NULL if it is none. */
struct json_object *answer_object(struct json_object *object, const char *key);

/* An array and its length; row i of it, NULL if that is no object. */
struct json_object *answer_rows(struct json_object *object, const char *key, size_t *count);
struct json_object *answer_row(struct json_object *rows, size_t i);

#endif
