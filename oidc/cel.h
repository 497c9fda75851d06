/* The part of CEL that Kubernetes' AuthenticationConfiguration needs: compile once, run bounded. */
#ifndef OIDC_CEL_H
#define OIDC_CEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

#define CEL_TEXT_MAX 8192
#define CEL_NODES_MAX 1000
/* Of one verification, all its expressions together. */
#define CEL_STEPS_MAX 100000
#define CEL_BYTES_MAX (1U << 20)
#define CEL_ARENA_CAP (2U << 20)

enum cel_kind {
    CEL_DYN, /* as a type only: known when it runs */
    CEL_ANY, /* as a type only: a claim; like CEL_DYN, but no range of a comprehension */
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_LIST,
    CEL_MAP,
    CEL_OPTIONAL,
    CEL_USER, /* as a type only: the variable user */
};

struct cel_value {
    enum cel_kind kind;
    union {
        bool flag;
        int64_t number;
        double real;
        struct str text;
        struct {
            struct cel_value *items; /* of a map: key, value, key, value ... */
            size_t count;            /* items or pairs */
        } list;
        const struct cel_value *some; /* NULL = none */
    };
};

/* The variables of an expression. */
enum cel_env { CEL_ENV_CLAIMS, CEL_ENV_USER };

/* A compiled expression; lives in the arena, is never changed, any thread may run it. */
struct cel;

/*
 * Parses and checks types as the API server does. NULL with a sentence in the arena when the
 * expression is wrong, or (*ret_unknown true) when it uses what this subset does not know, so that
 * the API server may or may not accept it.
 */
const struct cel *cel_compile(struct arena *arena, struct str text, enum cel_env env,
                              bool *ret_unknown, const char **ret_error) MUST_CHECK;
enum cel_kind cel_type(const struct cel *cel);
/* A list's item type; CEL_DYN for other types. */
enum cel_kind cel_item_type(const struct cel *cel);
/* True when it reads this claim, as claims.name, claims.?name or claims["name"]. */
bool cel_uses_claim(const struct cel *cel, const char *name);
/* The name of a function that is known but not run here; NULL when all can be run. */
const char *cel_not_run(const struct cel *cel);

/* One verification's budget and variables. */
struct cel_run {
    struct arena *arena; /* with CEL_ARENA_CAP */
    size_t steps_left;
    size_t bytes_left;
    struct cel_value claims;
    struct cel_value user;
    unsigned depth;    /* of the JSON being copied */
    const char *error; /* after a failure: static text */
    bool missing;      /* the failure: a key that is not there */
    struct str missing_key;
};

void cel_run_init(struct cel_run *run, struct arena *arena);
/* Copies the value, with whole numbers as CEL_INT; false when the budget is used up. */
bool cel_from_json(struct cel_run *run, const json_t *json, struct cel_value *ret) MUST_CHECK;
struct cel_value cel_text(struct str text);
/* False with run->error when it fails: a missing key, a type, the budget. No failure costs memory,
 * because macros meet many. */
bool cel_eval(struct cel_run *run, const struct cel *cel, struct cel_value *ret) MUST_CHECK;

#endif
