/* CEL's types: what an expression gives, found before it ever runs. */
#include <string.h>

#include "oidc/cel_internal.h"

#define VARIABLES_MAX 16

const struct cel_type cel_type_dyn = {CEL_DYN, NULL};
const struct cel_type cel_type_any = {CEL_ANY, NULL};
const struct cel_type cel_type_bool = {CEL_BOOL, NULL};
const struct cel_type cel_type_int = {CEL_INT, NULL};
const struct cel_type cel_type_double = {CEL_DOUBLE, NULL};
const struct cel_type cel_type_string = {CEL_STRING, NULL};
const struct cel_type cel_type_strings = {CEL_LIST, &cel_type_string};
static const struct cel_type type_null = {CEL_NULL, NULL};
static const struct cel_type type_claims = {CEL_MAP, &cel_type_any};
static const struct cel_type type_extra = {CEL_MAP, &cel_type_strings};
static const struct cel_type type_user = {CEL_USER, NULL};

struct variable {
    struct str name;
    const struct cel_type *type;
};

struct checker {
    struct arena *arena;
    enum cel_env env;
    struct variable variables[VARIABLES_MAX]; /* of the comprehensions around */
    size_t variable_count;
    bool unknown;
    const char *error;
};

static const struct cel_type *check(struct checker *checker, struct cel_node *node);

static const struct cel_type *refuse(struct checker *checker, const struct cel_node *node,
                                     const char *what)
{
    if (checker->error == NULL) {
        checker->error = arena_printf(checker->arena, "%s at character %u", what, node->at + 1);
    }
    return NULL;
}

static bool is_open(const struct cel_type *type)
{
    return type->kind == CEL_DYN || type->kind == CEL_ANY;
}

static bool is_number(const struct cel_type *type)
{
    return type->kind == CEL_INT || type->kind == CEL_DOUBLE;
}

static bool fits(const struct cel_type *type, enum cel_kind kind)
{
    return is_open(type) || type->kind == kind;
}

static const struct cel_type *make_type(struct checker *checker, enum cel_kind kind,
                                        const struct cel_type *item)
{
    struct cel_type *type = arena_alloc(checker->arena, sizeof(*type));
    *type = (struct cel_type){kind, item};
    return type;
}

static bool same_type(const struct cel_type *a, const struct cel_type *b)
{
    if (is_open(a) || is_open(b)) {
        return true;
    }
    if (a->kind != b->kind) {
        return false;
    }
    return a->item == NULL || b->item == NULL || same_type(a->item, b->item);
}

/* Two branches or two items together. */
static const struct cel_type *join(const struct cel_type *a, const struct cel_type *b)
{
    if (a->kind == CEL_ANY || b->kind == CEL_ANY) {
        return &cel_type_any;
    }
    return !is_open(a) && !is_open(b) && same_type(a, b) ? a : &cel_type_dyn;
}

/* ------------------------------------------------------------------ names and fields */
static const struct cel_type *check_ident(struct checker *checker, const struct cel_node *node)
{
    for (size_t i = checker->variable_count; i > 0; i--) {
        if (str_eq(checker->variables[i - 1].name, node->name)) {
            return checker->variables[i - 1].type;
        }
    }
    if (checker->env == CEL_ENV_CLAIMS && str_eq_c(node->name, "claims")) {
        return &type_claims;
    }
    if (checker->env == CEL_ENV_USER && str_eq_c(node->name, "user")) {
        return &type_user;
    }
    return refuse(
        checker, node,
        arena_printf(checker->arena, "undeclared reference to '%.*s'", STR_FMT(node->name)));
}

static const struct cel_type *user_field(struct str name)
{
    static const struct {
        const char *name;
        const struct cel_type *type;
    } fields[] = {{"username", &cel_type_string},
                  {"uid", &cel_type_string},
                  {"groups", &cel_type_strings},
                  {"extra", &type_extra}};
    for (size_t i = 0; i < COUNTOF(fields); i++) {
        if (str_eq_c(name, fields[i].name)) {
            return fields[i].type;
        }
    }
    return NULL;
}

/* The type of a field of a value; optional values stay optional. */
static const struct cel_type *check_field(struct checker *checker, const struct cel_node *node,
                                          const struct cel_type *type)
{
    const struct cel_type *field = NULL;
    if (type->kind == CEL_OPTIONAL) {
        field = check_field(checker, node, type->item);
        return field != NULL ? make_type(checker, CEL_OPTIONAL, field) : NULL;
    }
    if (is_open(type)) {
        return &cel_type_dyn;
    }
    if (type->kind == CEL_MAP) {
        return type->item;
    }
    if (type->kind == CEL_USER) {
        field = user_field(node->name);
        if (field == NULL) {
            return refuse(
                checker, node,
                arena_printf(checker->arena, "undefined field '%.*s'", STR_FMT(node->name)));
        }
        return field;
    }
    return refuse(checker, node, "this type has no fields");
}

static const struct cel_type *check_select(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *type = check(checker, node->args[0]);
    const struct cel_type *field = type != NULL ? check_field(checker, node, type) : NULL;
    if (field == NULL) {
        return NULL;
    }
    if (node->op == CEL_OP_HAS) {
        return &cel_type_bool;
    }
    if (node->op == CEL_OP_OPT_SELECT && field->kind != CEL_OPTIONAL) {
        return make_type(checker, CEL_OPTIONAL, field);
    }
    return field;
}

static const struct cel_type *check_index(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *type = check(checker, node->args[0]);
    const struct cel_type *index = type != NULL ? check(checker, node->args[1]) : NULL;
    if (index == NULL) {
        return NULL;
    }
    bool optional = type->kind == CEL_OPTIONAL;
    type = optional ? type->item : type;
    bool good = is_open(type) || (type->kind == CEL_LIST && (is_open(index) || is_number(index))) ||
                (type->kind == CEL_MAP && fits(index, CEL_STRING));
    if (!good) {
        return refuse(checker, node, "no matching overload for '_[_]'");
    }
    const struct cel_type *item = is_open(type) ? &cel_type_dyn : type->item;
    return optional || node->op == CEL_OP_OPT_INDEX ? make_type(checker, CEL_OPTIONAL, item) : item;
}

/* ------------------------------------------------------------------ operators */
static const struct cel_type *check_arithmetic(struct checker *checker, struct cel_node *node,
                                               const struct cel_type *a, const struct cel_type *b)
{
    if (is_open(a) || is_open(b)) {
        const struct cel_type *known = is_open(a) ? b : a;
        if (is_open(known) || is_number(known) ||
            (node->op == CEL_OP_ADD && (known->kind == CEL_STRING || known->kind == CEL_LIST))) {
            return is_open(known) ? &cel_type_dyn : known;
        }
    } else if (a->kind == b->kind) {
        bool real = a->kind == CEL_DOUBLE && node->op != CEL_OP_MOD;
        bool joined = node->op == CEL_OP_ADD && (a->kind == CEL_STRING || a->kind == CEL_LIST);
        if (a->kind == CEL_INT || real || (joined && same_type(a, b))) {
            return a;
        }
    }
    return refuse(checker, node, "no matching overload for an arithmetic operator");
}

static const struct cel_type *check_order(struct checker *checker, struct cel_node *node,
                                          const struct cel_type *a, const struct cel_type *b)
{
    bool ordered_a = is_open(a) || is_number(a) || a->kind == CEL_STRING || a->kind == CEL_BOOL;
    bool ordered_b = is_open(b) || is_number(b) || b->kind == CEL_STRING || b->kind == CEL_BOOL;
    bool same = is_open(a) || is_open(b) || a->kind == b->kind || (is_number(a) && is_number(b));
    return ordered_a && ordered_b && same
               ? &cel_type_bool
               : refuse(checker, node, "no matching overload for a comparison");
}

static const struct cel_type *check_binary(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *a = check(checker, node->args[0]);
    const struct cel_type *b = a != NULL ? check(checker, node->args[1]) : NULL;
    if (b == NULL) {
        return NULL;
    }
    if (node->op == CEL_OP_OR || node->op == CEL_OP_AND) {
        return fits(a, CEL_BOOL) && fits(b, CEL_BOOL)
                   ? &cel_type_bool
                   : refuse(checker, node, "&& and || want bool");
    }
    if (node->op == CEL_OP_EQ || node->op == CEL_OP_NE) {
        bool null = a->kind == CEL_NULL || b->kind == CEL_NULL;
        return same_type(a, b) || null || (is_number(a) && is_number(b))
                   ? &cel_type_bool
                   : refuse(checker, node, "no matching overload for '_==_'");
    }
    if (node->op == CEL_OP_IN) {
        bool good = is_open(b) || (b->kind == CEL_LIST && same_type(a, b->item)) ||
                    (b->kind == CEL_MAP && fits(a, CEL_STRING));
        return good ? &cel_type_bool : refuse(checker, node, "no matching overload for 'in'");
    }
    if (node->op >= CEL_OP_ADD) {
        return check_arithmetic(checker, node, a, b);
    }
    return check_order(checker, node, a, b);
}

static const struct cel_type *check_unary(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *type = check(checker, node->args[0]);
    if (type == NULL) {
        return NULL;
    }
    if (node->op == CEL_OP_NOT) {
        return fits(type, CEL_BOOL) ? &cel_type_bool : refuse(checker, node, "! wants bool");
    }
    return is_open(type) || is_number(type) ? type : refuse(checker, node, "- wants a number");
}

static const struct cel_type *check_cond(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *types[3];
    for (size_t i = 0; i < 3; i++) {
        types[i] = check(checker, node->args[i]);
        if (types[i] == NULL) {
            return NULL;
        }
    }
    if (!fits(types[0], CEL_BOOL)) {
        return refuse(checker, node, "a condition must be bool");
    }
    return same_type(types[1], types[2]) ? join(types[1], types[2])
                                         : refuse(checker, node, "both branches want one type");
}

/* ------------------------------------------------------------------ collections and calls */
static const struct cel_type *check_list(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *item = NULL;
    for (size_t i = 0; i < node->arg_count; i++) {
        const struct cel_type *type = check(checker, node->args[i]);
        if (type == NULL) {
            return NULL;
        }
        item = item == NULL ? type : join(item, type);
    }
    return make_type(checker, CEL_LIST, item != NULL ? item : &cel_type_dyn);
}

static const struct cel_type *check_map(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *item = NULL;
    for (size_t i = 0; i < node->arg_count; i++) {
        const struct cel_type *type = check(checker, node->args[i]);
        if (type == NULL) {
            return NULL;
        }
        if (i % 2 == 0 && !fits(type, CEL_STRING)) {
            checker->unknown = true;
            return refuse(checker, node, "only maps with text as keys are known here");
        }
        if (i % 2 == 1) {
            item = item == NULL ? type : join(item, type);
        }
    }
    return make_type(checker, CEL_MAP, item != NULL ? item : &cel_type_dyn);
}

static const struct cel_type *check_comprehension(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *range = check(checker, node->args[0]);
    if (range == NULL) {
        return NULL;
    }
    if (range->kind != CEL_LIST && range->kind != CEL_MAP && range->kind != CEL_DYN) {
        return refuse(checker, node,
                      "this expression cannot be the range of a comprehension (must be list, map, "
                      "or dynamic)");
    }
    if (checker->variable_count == VARIABLES_MAX) {
        return refuse(checker, node, "comprehensions are nested too deep");
    }
    const struct cel_type *item = range->kind == CEL_LIST  ? range->item
                                  : range->kind == CEL_MAP ? &cel_type_string
                                                           : &cel_type_dyn;
    checker->variables[checker->variable_count++] = (struct variable){node->name, item};
    const struct cel_type *body = check(checker, node->args[1]);
    const struct cel_type *condition =
        body != NULL && node->arg_count == 3 ? check(checker, node->args[2]) : &cel_type_bool;
    checker->variable_count--;
    if (body == NULL || condition == NULL) {
        return NULL;
    }
    condition = node->op == CEL_OP_MAP ? condition : body;
    if (!fits(condition, CEL_BOOL)) {
        return refuse(checker, node, "the condition of a comprehension must be bool");
    }
    if (node->op == CEL_OP_MAP || node->op == CEL_OP_FILTER) {
        return make_type(checker, CEL_LIST, node->op == CEL_OP_MAP ? body : item);
    }
    return &cel_type_bool;
}

static bool sig_fits(char sig, const struct cel_type *type)
{
    if (is_open(type) || sig == '*') {
        return true;
    }
    switch (sig) {
    case 's':
        return type->kind == CEL_STRING;
    case 'i':
        return type->kind == CEL_INT;
    case 'l':
        return type->kind == CEL_LIST;
    case 'm':
        return type->kind == CEL_MAP;
    case 'o':
        return type->kind == CEL_OPTIONAL;
    default:
        return type->kind == CEL_STRING || type->kind == CEL_LIST || type->kind == CEL_MAP;
    }
}

static bool row_fits(const struct cel_function *row, const struct cel_node *node,
                     const struct cel_type **types)
{
    const char *sig = row->sig[0] == '-' ? row->sig + 1 : row->sig;
    if (node->receiver != (row->sig[0] != '-') || strlen(sig) != node->arg_count) {
        return false;
    }
    for (size_t i = 0; i < node->arg_count; i++) {
        if (!sig_fits(sig[i], types[i])) {
            return false;
        }
    }
    return true;
}

static const struct cel_type *call_result(const struct cel_function *row,
                                          const struct cel_type **types, size_t count)
{
    if (row->result != NULL) {
        return row->result;
    }
    const struct cel_type *item = types[0]->item != NULL ? types[0]->item : &cel_type_dyn;
    return count > 1 && item->kind != CEL_ANY ? join(item, types[1]) : item;
}

static const struct cel_type *check_call(struct checker *checker, struct cel_node *node)
{
    const struct cel_type *types[CEL_ARGS_MAX] = {&cel_type_dyn};
    bool named = false;
    for (size_t i = 0; i < cel_functions_count; i++) {
        named = named || str_eq_c(node->name, cel_functions[i].name);
    }
    if (!named || node->arg_count > CEL_ARGS_MAX) {
        checker->unknown = !named;
        return refuse(checker, node,
                      arena_printf(checker->arena, "the function '%.*s' is not known here",
                                   STR_FMT(node->name)));
    }
    for (size_t i = 0; i < node->arg_count; i++) {
        types[i] = check(checker, node->args[i]);
        if (types[i] == NULL) {
            return NULL;
        }
    }
    for (size_t i = 0; i < cel_functions_count; i++) {
        if (str_eq_c(node->name, cel_functions[i].name) &&
            row_fits(&cel_functions[i], node, types)) {
            node->function = &cel_functions[i];
            return call_result(node->function, types, node->arg_count);
        }
    }
    return refuse(
        checker, node,
        arena_printf(checker->arena, "no matching overload for '%.*s'", STR_FMT(node->name)));
}

static const struct cel_type *check_literal(const struct cel_node *node)
{
    static const struct cel_type *const types[] = {[CEL_NULL] = &type_null,
                                                   [CEL_BOOL] = &cel_type_bool,
                                                   [CEL_INT] = &cel_type_int,
                                                   [CEL_DOUBLE] = &cel_type_double,
                                                   [CEL_STRING] = &cel_type_string};
    return types[node->value.kind];
}

static const struct cel_type *check(struct checker *checker, struct cel_node *node)
{
    switch (node->op) {
    case CEL_OP_LITERAL:
        return check_literal(node);
    case CEL_OP_IDENT:
        return check_ident(checker, node);
    case CEL_OP_SELECT:
    case CEL_OP_OPT_SELECT:
    case CEL_OP_HAS:
        return check_select(checker, node);
    case CEL_OP_INDEX:
    case CEL_OP_OPT_INDEX:
        return check_index(checker, node);
    case CEL_OP_CALL:
        return check_call(checker, node);
    case CEL_OP_MAKE_LIST:
        return check_list(checker, node);
    case CEL_OP_MAKE_MAP:
        return check_map(checker, node);
    case CEL_OP_NOT:
    case CEL_OP_NEGATE:
        return check_unary(checker, node);
    case CEL_OP_COND:
        return check_cond(checker, node);
    case CEL_OP_ALL:
    case CEL_OP_EXISTS:
    case CEL_OP_EXISTS_ONE:
    case CEL_OP_MAP:
    case CEL_OP_FILTER:
        return check_comprehension(checker, node);
    case CEL_OP_OR:
    case CEL_OP_AND:
    case CEL_OP_EQ:
    case CEL_OP_NE:
    case CEL_OP_LT:
    case CEL_OP_LE:
    case CEL_OP_GT:
    case CEL_OP_GE:
    case CEL_OP_IN:
    case CEL_OP_ADD:
    case CEL_OP_SUB:
    case CEL_OP_MUL:
    case CEL_OP_DIV:
    case CEL_OP_MOD:
        break;
    }
    return check_binary(checker, node);
}

const struct cel_type *cel_check(struct arena *arena, enum cel_env env, struct cel_node *root,
                                 bool *ret_unknown, const char **ret_error)
{
    struct checker checker = {.arena = arena, .env = env};
    const struct cel_type *type = check(&checker, root);
    *ret_unknown = checker.unknown;
    if (type == NULL) {
        *ret_error = checker.error;
    }
    return type;
}
