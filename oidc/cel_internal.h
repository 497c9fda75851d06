/* What the halves of the CEL subset share: the tree, the table of functions, checked allocation. */
#ifndef OIDC_CEL_INTERNAL_H
#define OIDC_CEL_INTERNAL_H

#include "oidc/cel.h"

#define CEL_ARGS_MAX 3

enum cel_op {
    CEL_OP_LITERAL,
    CEL_OP_IDENT,
    CEL_OP_SELECT,     /* args[0].name */
    CEL_OP_OPT_SELECT, /* args[0].?name */
    CEL_OP_HAS,        /* has(args[0].name) */
    CEL_OP_INDEX,
    CEL_OP_OPT_INDEX,
    CEL_OP_CALL, /* name(args) or args[0].name(args[1] ...) */
    CEL_OP_MAKE_LIST,
    CEL_OP_MAKE_MAP,
    CEL_OP_NOT,
    CEL_OP_NEGATE,
    CEL_OP_COND,
    CEL_OP_OR,
    CEL_OP_AND,
    CEL_OP_EQ,
    CEL_OP_NE,
    CEL_OP_LT,
    CEL_OP_LE,
    CEL_OP_GT,
    CEL_OP_GE,
    CEL_OP_IN,
    CEL_OP_ADD,
    CEL_OP_SUB,
    CEL_OP_MUL,
    CEL_OP_DIV,
    CEL_OP_MOD,
    /* Comprehensions: args[0] is the range, name the variable, then what is evaluated. */
    CEL_OP_ALL,
    CEL_OP_EXISTS,
    CEL_OP_EXISTS_ONE,
    CEL_OP_MAP,    /* args[1] the result; args[2], when there, a condition */
    CEL_OP_FILTER, /* args[1] the condition */
};

struct cel_type {
    enum cel_kind kind;
    const struct cel_type *item; /* of lists, map values and optionals */
};

struct cel_function;

struct cel_node {
    enum cel_op op;
    unsigned at;   /* byte in the text */
    bool receiver; /* of a call: args[0] stood before the dot */
    struct str name;
    struct cel_value value;
    struct cel_node **args;
    size_t arg_count;
    const struct cel_function *function;
};

struct cel {
    const struct cel_node *root;
    const struct cel_type *type;
};

/* sig: the receiver ('-' = none) and the arguments: s string, i int, l list, m map, o optional,
 * z what has a size, * anything. run NULL = known, but not run here. */
struct cel_function {
    const char *name;
    const char *sig;
    const struct cel_type *result; /* NULL = the item of the receiver or first argument */
    bool (*run)(struct cel_run *run, const struct cel_value *args, size_t count,
                struct cel_value *ret);
};

extern const struct cel_type cel_type_dyn;
extern const struct cel_type cel_type_any;
extern const struct cel_type cel_type_bool;
extern const struct cel_type cel_type_int;
extern const struct cel_type cel_type_double;
extern const struct cel_type cel_type_string;
extern const struct cel_type cel_type_strings;

extern const struct cel_function cel_functions[];
extern const size_t cel_functions_count;

/* NULL with *ret_error. */
struct cel_node *cel_parse(struct arena *arena, struct str text, const char **ret_error) MUST_CHECK;
/* NULL with *ret_error; fills the functions of calls. */
const struct cel_type *cel_check(struct arena *arena, enum cel_env env, struct cel_node *root,
                                 bool *ret_unknown, const char **ret_error) MUST_CHECK;

/* Running. NULL and false set run->error. */
void *cel_alloc(struct cel_run *run, size_t count, size_t size) MUST_CHECK;
bool cel_step(struct cel_run *run, size_t steps) MUST_CHECK;
bool cel_fail(struct cel_run *run, const char *error); /* always false */
/* False, too, when the budget is used up (steps_left is 0 then). */
bool cel_equal(struct cel_run *run, const struct cel_value *a, const struct cel_value *b);
struct cel_value cel_bool(bool flag);
bool cel_is_number(const struct cel_value *value);
double cel_real(const struct cel_value *value);
/* The value under a key of a map; NULL when there is none. */
const struct cel_value *cel_map_find(const struct cel_value *map, struct str key);

#endif
