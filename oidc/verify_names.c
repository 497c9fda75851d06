/* The checks that make names: user name, groups, what is reserved, rules about the user. */
#include <string.h>

#include "base/crypto.h"
#include "base/map.h"
#include "oidc/verify_internal.h"

static struct str join_prefix(struct checking *checking, struct str prefix, struct str name)
{
    char *text = arena_alloc(checking->arena, prefix.len + name.len + 1);
    if (prefix.len > 0) {
        memcpy(text, prefix.ptr, prefix.len);
    }
    memcpy(text + prefix.len, name.ptr, name.len);
    text[prefix.len + name.len] = '\0';
    return (struct str){text, prefix.len + name.len};
}

/* The claim at the end of the path; NULL when it, or an object on the way, is not there. */
static const json_t *find_claim(struct checking *checking, const struct oidc_mapping *mapping,
                                bool *ret_wrong)
{
    const json_t *value = checking->claims;
    *ret_wrong = false;
    for (size_t i = 0; i < mapping->path_len && value != NULL; i++) {
        if (!json_is_object(value)) {
            *ret_wrong = !json_is_null(value);
            return NULL;
        }
        value = json_object_get(
            value, arena_strndup(checking->arena, mapping->path[i].ptr, mapping->path[i].len));
    }
    return value;
}

static const char *show_path(struct checking *checking, const struct oidc_mapping *mapping)
{
    return jose_quote(checking->arena, mapping->path[mapping->path_len - 1]);
}

/* ------------------------------------------------------------------ user name and uid */
static enum oidc_reason run_mapping(struct checking *checking, const char *what,
                                    const struct cel *expression, struct cel_value *ret)
{
    if (cel_eval(&checking->run, expression, ret)) {
        return OIDC_OK;
    }
    return refuse(checking, checking->run.missing ? OIDC_CLAIM_MISSING : OIDC_CLAIM_TYPE,
                  "The expression for %s fails: %s%s%s.", what, checking->run.error,
                  checking->run.missing ? " " : "",
                  checking->run.missing ? jose_quote(checking->arena, checking->run.missing_key)
                                        : "");
}

static enum oidc_reason name_from_expression(struct checking *checking, const char *what,
                                             const struct cel *expression, struct str *ret)
{
    struct cel_value value;
    enum oidc_reason reason = run_mapping(checking, what, expression, &value);
    if (reason != OIDC_OK) {
        return reason;
    }
    if (value.kind != CEL_STRING || value.text.len == 0 || !jose_text_is_plain(value.text)) {
        return refuse(checking, OIDC_USERNAME_INVALID,
                      "The expression for %s must give text, not empty and without control "
                      "characters.",
                      what);
    }
    *ret = (struct str){arena_strndup(checking->arena, value.text.ptr, value.text.len),
                        value.text.len};
    return OIDC_OK;
}

static enum oidc_reason read_name(struct checking *checking, const char *what,
                                  const struct oidc_mapping *mapping, struct str *ret)
{
    struct str name = {"", 0};
    enum oidc_reason reason =
        mapping->expression != NULL
            ? name_from_expression(checking, what, mapping->expression, &name)
            : read_claim(checking,
                         arena_strndup(checking->arena, mapping->path[0].ptr, mapping->path[0].len),
                         &name);
    if (reason != OIDC_OK) {
        return reason;
    }
    *ret = join_prefix(checking, mapping->prefix, name);
    if (ret->len > OIDC_NAME_MAX) {
        return refuse(checking, OIDC_USERNAME_INVALID, "The %s has more than %d bytes.", what,
                      OIDC_NAME_MAX);
    }
    return OIDC_OK;
}

enum oidc_reason check_username(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    struct oidc_verdict *verdict = checking->verdict;
    enum oidc_reason reason =
        read_name(checking, "user name", &issuer->username, &verdict->username);
    if (reason == OIDC_OK && (issuer->uid.path_len > 0 || issuer->uid.expression != NULL)) {
        reason = read_name(checking, "uid", &issuer->uid, &verdict->uid);
    }
    return reason;
}

/* ------------------------------------------------------------------ groups */
/* Entra leaves the groups out of a large token and points elsewhere. Taking that for "no groups"
 * would be wrong in silence, and fetching what the token points to would be worse. */
static bool groups_are_elsewhere(struct checking *checking, const json_t *present)
{
    const struct oidc_mapping *mapping = &checking->issuer->groups;
    const json_t *names = json_object_get(checking->claims, "_claim_names");
    const json_t *marker = json_object_get(checking->claims, "hasgroups");
    bool by_expression =
        mapping->expression != NULL && cel_uses_claim(mapping->expression, "groups");
    struct str claim = by_expression           ? STR("groups")
                       : mapping->path_len > 0 ? mapping->path[0]
                                               : (struct str){"", 0};
    if (claim.len == 0) {
        return false;
    }
    const char *name = arena_strndup(checking->arena, claim.ptr, claim.len);
    bool marked = json_is_true(marker) || str_eq(jose_text(marker), STR("true"));
    return json_object_get(names, name) != NULL ||
           (marked && str_eq(claim, STR("groups")) && present == NULL);
}

/* Group names collected without empty ones and without doubles. */
struct collecting {
    struct checking *checking;
    struct str_list *groups;
    struct map *seen;
};

static enum oidc_reason add_group(struct collecting *collecting, bool is_text, struct str name)
{
    struct checking *checking = collecting->checking;
    uint8_t hash[SHA256_LEN];
    struct str key = name;
    if (!is_text || name.len > OIDC_GROUP_MAX || !jose_text_is_plain(name)) {
        return refuse(checking, OIDC_CLAIM_TYPE,
                      "Groups must be texts of at most %d bytes without control characters.",
                      OIDC_GROUP_MAX);
    }
    if (name.len > 64) { /* the longest key of a map */
        crypto_sha256(name, hash);
        key = (struct str){(const char *)hash, sizeof(hash)};
    }
    if (name.len == 0 || map_get(collecting->seen, key) != NULL) {
        return OIDC_OK;
    }
    if (collecting->groups->count == OIDC_GROUPS_MAX) {
        return refuse(checking, OIDC_GROUPS_OVERAGE, "The token has more than %d groups.",
                      OIDC_GROUPS_MAX);
    }
    map_put(collecting->seen, key, collecting);
    collecting->groups->items[collecting->groups->count++] =
        join_prefix(checking, checking->issuer->groups.prefix, name);
    return OIDC_OK;
}

static enum oidc_reason add_claim_groups(struct collecting *collecting, const json_t *value)
{
    enum oidc_reason reason = OIDC_OK;
    if (value == NULL || json_is_null(value)) {
        return OIDC_OK;
    }
    if (!json_is_array(value)) {
        return add_group(collecting, json_is_string(value), jose_text(value));
    }
    for (size_t i = 0; i < json_array_size(value) && reason == OIDC_OK; i++) {
        const json_t *item = json_array_get(value, i);
        reason = add_group(collecting, json_is_string(item), jose_text(item));
    }
    return reason;
}

static enum oidc_reason add_expression_groups(struct collecting *collecting)
{
    struct cel_value value;
    enum oidc_reason reason = run_mapping(collecting->checking, "groups",
                                          collecting->checking->issuer->groups.expression, &value);
    if (reason != OIDC_OK || value.kind == CEL_NULL) {
        return reason;
    }
    if (value.kind != CEL_LIST) {
        return add_group(collecting, value.kind == CEL_STRING, value.text);
    }
    for (size_t i = 0; i < value.list.count && reason == OIDC_OK; i++) {
        const struct cel_value *item = &value.list.items[i];
        reason = add_group(collecting, item->kind == CEL_STRING,
                           item->kind == CEL_STRING ? item->text : (struct str){"", 0});
    }
    return reason;
}

static void warn_of_absence(struct checking *checking)
{
    bool google = str_eq(checking->issuer->url, STR("https://accounts.google.com"));
    add_warning(checking,
                google ? "Google puts no groups into its tokens: give roles to users by name."
                       : arena_printf(checking->arena,
                                      "The token has no claim %s: is the issuer set up to send it "
                                      "(Okta: a groups claim filter; Keycloak: a mapper)?",
                                      show_path(checking, &checking->issuer->groups)));
}

static enum oidc_reason collect_groups(struct checking *checking, const json_t *value)
{
    struct collecting collecting = {checking, &checking->verdict->groups, map_new(NULL)};
    collecting.groups->items =
        arena_alloc(checking->arena, OIDC_GROUPS_MAX * sizeof(*collecting.groups->items));
    enum oidc_reason reason = checking->issuer->groups.expression != NULL
                                  ? add_expression_groups(&collecting)
                                  : add_claim_groups(&collecting, value);
    map_free(collecting.seen);
    return reason;
}

enum oidc_reason check_groups(struct checking *checking)
{
    const struct oidc_mapping *mapping = &checking->issuer->groups;
    bool wrong = false;
    if (mapping->path_len == 0 && mapping->expression == NULL) {
        return OIDC_OK;
    }
    const json_t *value =
        mapping->expression == NULL ? find_claim(checking, mapping, &wrong) : NULL;
    if (wrong) {
        return refuse(checking, OIDC_CLAIM_TYPE, "The way to the claim %s is no object.",
                      show_path(checking, mapping));
    }
    if (groups_are_elsewhere(checking, value)) {
        return refuse(checking, OIDC_GROUPS_OVERAGE,
                      "The groups did not fit into the token. In Entra, send only the groups "
                      "assigned to the application, or use app roles instead.");
    }
    if (value == NULL && mapping->expression == NULL) {
        warn_of_absence(checking);
        return OIDC_OK;
    }
    return collect_groups(checking, value);
}

/* Kubernetes keeps system: for itself; a token that gets through with system:masters rules it. */
enum oidc_reason check_reserved(struct checking *checking)
{
    const struct oidc_verdict *verdict = checking->verdict;
    struct str reserved = STR("system:");
    if (str_starts(verdict->username, reserved)) {
        return refuse(checking, OIDC_RESERVED_NAME, "The user name \"%s\" is reserved.",
                      jose_quote(checking->arena, verdict->username));
    }
    for (size_t i = 0; i < verdict->groups.count; i++) {
        if (str_starts(verdict->groups.items[i], reserved)) {
            return refuse(checking, OIDC_RESERVED_NAME, "The group \"%s\" is reserved.",
                          jose_quote(checking->arena, verdict->groups.items[i]));
        }
    }
    return OIDC_OK;
}

/* ------------------------------------------------------------------ extra and rules */
static enum oidc_reason add_extra(struct checking *checking, struct str key,
                                  const struct cel_value *value)
{
    struct oidc_verdict *verdict = checking->verdict;
    if (value->kind == CEL_NULL || (value->kind == CEL_STRING && value->text.len == 0)) {
        return OIDC_OK;
    }
    if (value->kind != CEL_STRING || value->text.len > OIDC_GROUP_MAX ||
        !jose_text_is_plain(value->text)) {
        return refuse(checking, OIDC_CLAIM_TYPE,
                      "The extra %s must be text of at most %d bytes, or a list of such.",
                      jose_quote(checking->arena, key), OIDC_GROUP_MAX);
    }
    if (verdict->extra_count == OIDC_GROUPS_MAX) {
        return refuse(checking, OIDC_CLAIM_TYPE, "There are more than %d extra values.",
                      OIDC_GROUPS_MAX);
    }
    struct str copy = {arena_strndup(checking->arena, value->text.ptr, value->text.len),
                       value->text.len};
    verdict->extra[verdict->extra_count++] = (struct oidc_pair){key, copy};
    return OIDC_OK;
}

static enum oidc_reason make_extra(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    enum oidc_reason reason = OIDC_OK;
    if (issuer->extra_count > 0) {
        checking->verdict->extra =
            arena_alloc(checking->arena, OIDC_GROUPS_MAX * sizeof(*checking->verdict->extra));
    }
    for (size_t i = 0; i < issuer->extra_count && reason == OIDC_OK; i++) {
        const struct oidc_extra *extra = &issuer->extra[i];
        struct cel_value value;
        reason = run_mapping(checking, "extra", extra->expression, &value);
        if (reason == OIDC_OK && value.kind != CEL_LIST) {
            reason = add_extra(checking, extra->key, &value);
        } else if (reason == OIDC_OK) {
            for (size_t k = 0; k < value.list.count && reason == OIDC_OK; k++) {
                reason = add_extra(checking, extra->key, &value.list.items[k]);
            }
        }
    }
    return reason;
}

/* extra as CEL sees it: a map from keys to lists; equal keys stand together in the verdict. */
static struct cel_value make_extra_value(struct checking *checking)
{
    const struct oidc_verdict *verdict = checking->verdict;
    struct arena *arena = checking->run.arena;
    struct cel_value *items = arena_zalloc(arena, (2 * verdict->extra_count + 1) * sizeof(*items));
    struct cel_value *texts = arena_zalloc(arena, (verdict->extra_count + 1) * sizeof(*texts));
    size_t pairs = 0;
    for (size_t i = 0; i < verdict->extra_count; i++) {
        const struct oidc_pair *pair = &verdict->extra[i];
        texts[i] = cel_text(pair->value);
        if (i > 0 && str_eq(pair->name, verdict->extra[i - 1].name)) {
            items[2 * pairs - 1].list.count++;
        } else {
            items[2 * pairs] = cel_text(pair->name);
            items[2 * pairs + 1] = (struct cel_value){.kind = CEL_LIST, .list = {&texts[i], 1}};
            pairs++;
        }
    }
    return (struct cel_value){.kind = CEL_MAP, .list = {items, pairs}};
}

static void make_user(struct checking *checking)
{
    const struct oidc_verdict *verdict = checking->verdict;
    struct arena *arena = checking->run.arena;
    struct cel_value *groups =
        arena_zalloc(arena, (verdict->groups.count + 1) * sizeof(struct cel_value));
    struct cel_value *items = arena_zalloc(arena, 8 * sizeof(*items));
    for (size_t i = 0; i < verdict->groups.count; i++) {
        groups[i] = cel_text(verdict->groups.items[i]);
    }
    items[0] = cel_text(STR("username"));
    items[1] = cel_text(verdict->username);
    items[2] = cel_text(STR("uid"));
    items[3] = cel_text(verdict->uid);
    items[4] = cel_text(STR("groups"));
    items[5] = (struct cel_value){.kind = CEL_LIST, .list = {groups, verdict->groups.count}};
    items[6] = cel_text(STR("extra"));
    items[7] = make_extra_value(checking);
    checking->run.user = (struct cel_value){.kind = CEL_MAP, .list = {items, 4}};
}

enum oidc_reason check_user(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    enum oidc_reason reason = make_extra(checking);
    if (reason != OIDC_OK || issuer->user_rule_count == 0) {
        return reason;
    }
    make_user(checking);
    for (size_t i = 0; i < issuer->user_rule_count; i++) {
        const struct oidc_rule *rule = &issuer->user_rules[i];
        struct cel_value value;
        if (!cel_eval(&checking->run, rule->expression, &value)) {
            return refuse(checking, OIDC_USERNAME_INVALID, "The rule %s fails: %s.",
                          jose_quote(checking->arena, rule->text), checking->run.error);
        }
        if (value.kind != CEL_BOOL || !value.flag) {
            return refuse(
                checking, OIDC_USERNAME_INVALID, "%s",
                jose_quote(checking->arena, rule->message.len > 0 ? rule->message : rule->text));
        }
    }
    return OIDC_OK;
}
