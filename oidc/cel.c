/* Running an expression of the CEL subset, within a budget of steps and bytes. */
#include "oidc/cel.h"

#include <math.h>
#include <string.h>

#include "oidc/cel_internal.h"
#include "oidc/jose.h"

/* The variables of the comprehensions around, innermost first. */
struct scope {
    struct str name;
    const struct cel_value *value;
    const struct scope *outer;
};

static bool eval(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                 struct cel_value *ret);

/* ------------------------------------------------------------------ fields and items */
static bool make_optional(struct cel_run *run, const struct cel_value *some, struct cel_value *ret)
{
    struct cel_value *copy = NULL;
    if (some != NULL) {
        copy = cel_alloc(run, 1, sizeof(*copy));
        if (copy == NULL) {
            return false;
        }
        *copy = *some;
    }
    *ret = (struct cel_value){.kind = CEL_OPTIONAL, .some = copy};
    return true;
}

/* The item under the key, NULL when there is none; false when the value can have no such item. */
static bool find_item(struct cel_run *run, const struct cel_value *value,
                      const struct cel_value *key, const struct cel_value **ret_item)
{
    *ret_item = NULL;
    if (value->kind == CEL_MAP && key->kind == CEL_STRING) {
        *ret_item = cel_map_find(value, key->text);
        return cel_step(run, 1 + value->list.count / 16);
    }
    bool whole = key->kind == CEL_INT || (key->kind == CEL_DOUBLE && floor(key->real) == key->real);
    if (value->kind == CEL_LIST && whole) {
        double index = cel_real(key);
        if (index >= 0 && index < (double)value->list.count) {
            *ret_item = &value->list.items[(size_t)index];
        }
        return true;
    }
    return cel_fail(run, "a value has no fields or items of this kind");
}

static bool eval_item(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                      const struct cel_value *key, struct cel_value *ret)
{
    struct cel_value value = {0};
    const struct cel_value *item = NULL;
    bool optional = node->op == CEL_OP_OPT_SELECT || node->op == CEL_OP_OPT_INDEX;

    if (!eval(run, node->args[0], scope, &value)) {
        return false;
    }
    if (value.kind == CEL_OPTIONAL) {
        if (value.some == NULL) {
            *ret = value;
            return true;
        }
        value = *value.some;
        optional = true;
    }
    if (!find_item(run, &value, key, &item)) {
        return false;
    }
    if (node->op == CEL_OP_HAS) {
        *ret = cel_bool(item != NULL);
        return true;
    }
    if (optional) {
        return make_optional(run, item, ret);
    }
    if (item == NULL) {
        run->missing = true;
        run->missing_key = key->kind == CEL_STRING ? key->text : STR("index");
        return cel_fail(run, "no such key");
    }
    *ret = *item;
    return true;
}

static bool eval_index(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                       struct cel_value *ret)
{
    struct cel_value key = {0};
    return eval(run, node->args[1], scope, &key) && eval_item(run, node, scope, &key, ret);
}

static bool eval_ident(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                       struct cel_value *ret)
{
    for (; scope != NULL; scope = scope->outer) {
        if (str_eq(scope->name, node->name)) {
            *ret = *scope->value;
            return true;
        }
    }
    *ret = str_eq_c(node->name, "claims") ? run->claims : run->user;
    return true;
}

/* ------------------------------------------------------------------ operators */
/* true and false decide even beside an error (CEL's commutative logic). */
static bool eval_logic(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                       struct cel_value *ret)
{
    bool decides = node->op == CEL_OP_OR;
    bool failed = false;
    for (size_t i = 0; i < 2; i++) {
        struct cel_value side = {0};
        bool good = eval(run, node->args[i], scope, &side);
        if (good && side.kind != CEL_BOOL) {
            good = cel_fail(run, "&& and || want bool");
        }
        if (run->steps_left == 0 || run->bytes_left == 0) {
            return false;
        }
        if (good && side.flag == decides) {
            *ret = side;
            run->missing = false;
            return true;
        }
        failed = failed || !good;
    }
    *ret = cel_bool(!decides);
    return !failed;
}

static bool compare(struct cel_run *run, enum cel_op op, const struct cel_value *a,
                    const struct cel_value *b, struct cel_value *ret)
{
    int order;
    if (cel_is_number(a) && cel_is_number(b)) {
        double x = cel_real(a);
        double y = cel_real(b);
        order = (x > y) - (x < y);
    } else if (a->kind == CEL_STRING && b->kind == CEL_STRING) {
        size_t shorter = a->text.len < b->text.len ? a->text.len : b->text.len;
        if (!cel_step(run, shorter / 64)) {
            return false;
        }
        int bytes = shorter > 0 ? memcmp(a->text.ptr, b->text.ptr, shorter) : 0;
        order = bytes != 0 ? bytes : (a->text.len > b->text.len) - (a->text.len < b->text.len);
    } else if (a->kind == CEL_BOOL && b->kind == CEL_BOOL) {
        order = a->flag - b->flag;
    } else {
        return cel_fail(run, "values of these types have no order");
    }
    *ret = cel_bool(op == CEL_OP_LT   ? order < 0
                    : op == CEL_OP_LE ? order <= 0
                    : op == CEL_OP_GT ? order > 0
                                      : order >= 0);
    return true;
}

static bool add_up(struct cel_run *run, const struct cel_value *a, const struct cel_value *b,
                   struct cel_value *ret)
{
    bool text = a->kind == CEL_STRING;
    size_t size = text ? 1 : sizeof(*a->list.items);
    size_t count_a = text ? a->text.len : a->list.count;
    size_t count_b = text ? b->text.len : b->list.count;
    char *out = cel_alloc(run, count_a + count_b, size);
    if (out == NULL) {
        return false;
    }
    if (count_a > 0) {
        memcpy(out, text ? (const void *)a->text.ptr : a->list.items, count_a * size);
    }
    if (count_b > 0) {
        memcpy(out + count_a * size, text ? (const void *)b->text.ptr : b->list.items,
               count_b * size);
    }
    if (text) {
        *ret = cel_text((struct str){out, count_a + count_b});
    } else {
        *ret = (struct cel_value){.kind = CEL_LIST,
                                  .list = {(struct cel_value *)(void *)out, count_a + count_b}};
    }
    return true;
}

static bool calculate_whole(struct cel_run *run, enum cel_op op, int64_t a, int64_t b,
                            struct cel_value *ret)
{
    int64_t result = 0;
    bool bad;
    if (op == CEL_OP_ADD) {
        bad = __builtin_add_overflow(a, b, &result);
    } else if (op == CEL_OP_SUB) {
        bad = __builtin_sub_overflow(a, b, &result);
    } else if (op == CEL_OP_MUL) {
        bad = __builtin_mul_overflow(a, b, &result);
    } else {
        bad = b == 0 || (a == INT64_MIN && b == -1);
        if (!bad) {
            result = op == CEL_OP_DIV ? a / b : a % b;
        }
    }
    *ret = (struct cel_value){.kind = CEL_INT, .number = result};
    return !bad || cel_fail(run, "a calculation has no result (overflow or division by zero)");
}

static bool calculate(struct cel_run *run, enum cel_op op, const struct cel_value *a,
                      const struct cel_value *b, struct cel_value *ret)
{
    if (a->kind == b->kind && op == CEL_OP_ADD && (a->kind == CEL_STRING || a->kind == CEL_LIST)) {
        return add_up(run, a, b, ret);
    }
    if (a->kind == CEL_INT && b->kind == CEL_INT) {
        return calculate_whole(run, op, a->number, b->number, ret);
    }
    /* A claim such as 5.0 arrives as a whole number, so the two kinds meet here. */
    if (!cel_is_number(a) || !cel_is_number(b) || op == CEL_OP_MOD) {
        return cel_fail(run, "values of these types cannot be calculated with");
    }
    double x = cel_real(a);
    double y = cel_real(b);
    *ret = (struct cel_value){.kind = CEL_DOUBLE,
                              .real = op == CEL_OP_ADD   ? x + y
                                      : op == CEL_OP_SUB ? x - y
                                      : op == CEL_OP_MUL ? x * y
                                                         : x / y};
    return true;
}

static bool is_in(struct cel_run *run, const struct cel_value *item, const struct cel_value *list,
                  struct cel_value *ret)
{
    bool found = false;
    if (list->kind == CEL_MAP) {
        found = item->kind == CEL_STRING && cel_map_find(list, item->text) != NULL;
    } else if (list->kind == CEL_LIST) {
        for (size_t i = 0; !found && i < list->list.count; i++) {
            found = cel_equal(run, item, &list->list.items[i]);
        }
    } else {
        return cel_fail(run, "in wants a list or a map");
    }
    *ret = cel_bool(found);
    return cel_step(run, 1 + list->list.count / 16);
}

static bool eval_binary(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                        struct cel_value *ret)
{
    struct cel_value a = {0};
    struct cel_value b = {0};
    if (!eval(run, node->args[0], scope, &a) || !eval(run, node->args[1], scope, &b)) {
        return false;
    }
    if (node->op == CEL_OP_EQ || node->op == CEL_OP_NE) {
        *ret = cel_bool(cel_equal(run, &a, &b) == (node->op == CEL_OP_EQ));
        return run->steps_left > 0;
    }
    if (node->op == CEL_OP_IN) {
        return is_in(run, &a, &b, ret);
    }
    return node->op >= CEL_OP_ADD ? calculate(run, node->op, &a, &b, ret)
                                  : compare(run, node->op, &a, &b, ret);
}

static bool eval_unary(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                       struct cel_value *ret)
{
    if (!eval(run, node->args[0], scope, ret)) {
        return false;
    }
    if (node->op == CEL_OP_NOT) {
        ret->flag = ret->kind == CEL_BOOL && !ret->flag;
        return ret->kind == CEL_BOOL || cel_fail(run, "! wants bool");
    }
    if (ret->kind == CEL_DOUBLE) {
        ret->real = -ret->real;
        return true;
    }
    return ret->kind == CEL_INT ? calculate_whole(run, CEL_OP_SUB, 0, ret->number, ret)
                                : cel_fail(run, "- wants a number");
}

static bool eval_cond(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                      struct cel_value *ret)
{
    struct cel_value condition = {0};
    if (!eval(run, node->args[0], scope, &condition)) {
        return false;
    }
    if (condition.kind != CEL_BOOL) {
        return cel_fail(run, "a condition must be bool");
    }
    return eval(run, node->args[condition.flag ? 1 : 2], scope, ret);
}

/* ------------------------------------------------------------------ collections and calls */
static bool eval_collection(struct cel_run *run, const struct cel_node *node,
                            const struct scope *scope, struct cel_value *ret)
{
    struct cel_value *items = cel_alloc(run, node->arg_count, sizeof(*items));
    bool map = node->op == CEL_OP_MAKE_MAP;
    for (size_t i = 0; items != NULL && i < node->arg_count; i++) {
        if (!eval(run, node->args[i], scope, &items[i])) {
            return false;
        }
        if (map && i % 2 == 0 && items[i].kind != CEL_STRING) {
            return cel_fail(run, "a map's key must be text");
        }
    }
    *ret = (struct cel_value){.kind = map ? CEL_MAP : CEL_LIST,
                              .list = {items, map ? node->arg_count / 2 : node->arg_count}};
    return items != NULL;
}

static bool eval_call(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                      struct cel_value *ret)
{
    struct cel_value args[CEL_ARGS_MAX];
    for (size_t i = 0; i < node->arg_count; i++) {
        if (!eval(run, node->args[i], scope, &args[i])) {
            return false;
        }
    }
    if (node->function->run == NULL) {
        return cel_fail(run, "this function is not run here");
    }
    return node->function->run(run, args, node->arg_count, ret);
}

/* What a macro has found so far. */
struct folding {
    struct cel_value *items; /* map, filter */
    size_t count;
    bool failed; /* all, exists: an item failed; another may still decide */
};

/* One item; *ret_done when the answer is known. */
static bool fold_item(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                      struct folding *folding, bool *ret_done)
{
    struct cel_value body = {0};
    struct cel_value condition = cel_bool(true);
    if (node->arg_count == 3 &&
        (!eval(run, node->args[2], scope, &condition) || condition.kind != CEL_BOOL)) {
        return cel_fail(run, "the condition of a comprehension must be bool");
    }
    if (!condition.flag) {
        return true;
    }
    bool good = eval(run, node->args[1], scope, &body);
    if (node->op == CEL_OP_MAP) {
        if (good) {
            folding->items[folding->count++] = body;
        }
        return good;
    }
    if (good && body.kind != CEL_BOOL) {
        good = cel_fail(run, "the condition of a comprehension must be bool");
    }
    if (node->op == CEL_OP_FILTER && good && body.flag) {
        folding->items[folding->count] = *scope->value;
    }
    folding->count += good && body.flag;
    folding->failed = folding->failed || !good;
    *ret_done = good && ((node->op == CEL_OP_ALL && !body.flag) ||
                         (node->op == CEL_OP_EXISTS && body.flag));
    bool lenient = node->op == CEL_OP_ALL || node->op == CEL_OP_EXISTS;
    return good || (lenient && run->steps_left > 0 && run->bytes_left > 0);
}

static bool eval_comprehension(struct cel_run *run, const struct cel_node *node,
                               const struct scope *outer, struct cel_value *ret)
{
    struct cel_value range = {0};
    struct folding folding = {0};
    bool done = false;
    if (!eval(run, node->args[0], outer, &range)) {
        return false;
    }
    if (range.kind != CEL_LIST && range.kind != CEL_MAP) {
        return cel_fail(run, "the range of a comprehension must be a list or a map");
    }
    size_t width = range.kind == CEL_MAP ? 2 : 1;
    folding.items = cel_alloc(run, range.list.count, sizeof(*folding.items));
    if (folding.items == NULL) {
        return false;
    }
    for (size_t i = 0; !done && i < range.list.count; i++) {
        struct scope scope = {node->name, &range.list.items[i * width], outer};
        if (!fold_item(run, node, &scope, &folding, &done)) {
            return false;
        }
    }
    if (node->op == CEL_OP_MAP || node->op == CEL_OP_FILTER) {
        *ret = (struct cel_value){.kind = CEL_LIST, .list = {folding.items, folding.count}};
        return true;
    }
    if (!done && folding.failed) {
        return false;
    }
    run->missing = false;
    *ret = cel_bool(node->op == CEL_OP_ALL      ? !done
                    : node->op == CEL_OP_EXISTS ? done
                                                : folding.count == 1);
    return true;
}

static bool eval(struct cel_run *run, const struct cel_node *node, const struct scope *scope,
                 struct cel_value *ret)
{
    struct cel_value key = cel_text(node->name);
    if (!cel_step(run, 1)) {
        return false;
    }
    switch (node->op) {
    case CEL_OP_LITERAL:
        *ret = node->value;
        return true;
    case CEL_OP_IDENT:
        return eval_ident(run, node, scope, ret);
    case CEL_OP_SELECT:
    case CEL_OP_OPT_SELECT:
    case CEL_OP_HAS:
        return eval_item(run, node, scope, &key, ret);
    case CEL_OP_INDEX:
    case CEL_OP_OPT_INDEX:
        return eval_index(run, node, scope, ret);
    case CEL_OP_CALL:
        return eval_call(run, node, scope, ret);
    case CEL_OP_MAKE_LIST:
    case CEL_OP_MAKE_MAP:
        return eval_collection(run, node, scope, ret);
    case CEL_OP_NOT:
    case CEL_OP_NEGATE:
        return eval_unary(run, node, scope, ret);
    case CEL_OP_COND:
        return eval_cond(run, node, scope, ret);
    case CEL_OP_OR:
    case CEL_OP_AND:
        return eval_logic(run, node, scope, ret);
    case CEL_OP_ALL:
    case CEL_OP_EXISTS:
    case CEL_OP_EXISTS_ONE:
    case CEL_OP_MAP:
    case CEL_OP_FILTER:
        return eval_comprehension(run, node, scope, ret);
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
    return eval_binary(run, node, scope, ret);
}

bool cel_eval(struct cel_run *run, const struct cel *cel, struct cel_value *ret)
{
    if (run->steps_left == 0 || run->bytes_left == 0) {
        return cel_fail(run, "the expressions take too many steps or too much memory");
    }
    run->error = NULL;
    run->missing = false;
    return eval(run, cel->root, NULL, ret);
}
