/* From the text of a CEL expression to something that can be run, and what it touches. */
#include "oidc/cel_internal.h"

const struct cel *cel_compile(struct arena *arena, struct str text, enum cel_env env,
                              bool *ret_unknown, const char **ret_error)
{
    *ret_unknown = false;
    struct cel_node *root = cel_parse(arena, text, ret_error);
    if (root == NULL) {
        return NULL;
    }
    const struct cel_type *type = cel_check(arena, env, root, ret_unknown, ret_error);
    if (type == NULL) {
        return NULL;
    }
    struct cel *cel = arena_alloc(arena, sizeof(*cel));
    *cel = (struct cel){.root = root, .type = type};
    return cel;
}

enum cel_kind cel_type(const struct cel *cel)
{
    return cel->type->kind;
}

enum cel_kind cel_item_type(const struct cel *cel)
{
    return cel->type->kind == CEL_LIST ? cel->type->item->kind : CEL_DYN;
}

static bool reads_claim(const struct cel_node *node, const char *name)
{
    bool select =
        node->op == CEL_OP_SELECT || node->op == CEL_OP_OPT_SELECT || node->op == CEL_OP_HAS;
    bool index = node->op == CEL_OP_INDEX || node->op == CEL_OP_OPT_INDEX;
    if ((select || index) && node->args[0]->op == CEL_OP_IDENT &&
        str_eq_c(node->args[0]->name, "claims")) {
        const struct cel_node *key = index ? node->args[1] : NULL;
        struct str read = select ? node->name
                          : key->op == CEL_OP_LITERAL && key->value.kind == CEL_STRING
                              ? key->value.text
                              : (struct str){"", 0};
        if (str_eq_c(read, name)) {
            return true;
        }
    }
    for (size_t i = 0; i < node->arg_count; i++) {
        if (reads_claim(node->args[i], name)) {
            return true;
        }
    }
    return false;
}

bool cel_uses_claim(const struct cel *cel, const char *name)
{
    return reads_claim(cel->root, name);
}

static const char *find_not_run(const struct cel_node *node)
{
    const char *found =
        node->function != NULL && node->function->run == NULL ? node->function->name : NULL;
    for (size_t i = 0; found == NULL && i < node->arg_count; i++) {
        found = find_not_run(node->args[i]);
    }
    return found;
}

const char *cel_not_run(const struct cel *cel)
{
    return find_not_run(cel->root);
}
