/* An AuthenticationConfiguration as it is written, decoded strictly by tables. */
#include "oidc/authn_decode.h"

#include <stddef.h>
#include <string.h>

#include "oidc/jose.h"

#define ITEMS_MAX 256 /* rules, audiences, extra of one issuer */

enum member_type { MEMBER_TEXT, MEMBER_TEXTS, MEMBER_BOOL, MEMBER_OBJECT, MEMBER_LIST };

struct member {
    const char *name;
    enum member_type type;
    size_t offset;                /* of the value; of a list: of the pointer, its count follows */
    size_t present;               /* of a bool that says it was there; 0 = none */
    const struct member *members; /* of an object or of a list's items */
    size_t item_size;
};

static const struct member issuer_members[] = {
    {"url", MEMBER_TEXT, offsetof(struct authn_issuer, url)},
    {"discoveryURL", MEMBER_TEXT, offsetof(struct authn_issuer, discovery_url)},
    {"certificateAuthority", MEMBER_TEXT, offsetof(struct authn_issuer, certificate_authority)},
    {"audiences", MEMBER_TEXTS, offsetof(struct authn_issuer, audiences)},
    {"audienceMatchPolicy", MEMBER_TEXT, offsetof(struct authn_issuer, match_policy)},
    {"egressSelectorType", MEMBER_TEXT, offsetof(struct authn_issuer, egress)},
    {NULL},
};
static const struct member claim_rule_members[] = {
    {"claim", MEMBER_TEXT, offsetof(struct authn_claim_rule, claim)},
    {"requiredValue", MEMBER_TEXT, offsetof(struct authn_claim_rule, required_value)},
    {"expression", MEMBER_TEXT, offsetof(struct authn_claim_rule, expression)},
    {"message", MEMBER_TEXT, offsetof(struct authn_claim_rule, message)},
    {NULL},
};
static const struct member user_rule_members[] = {
    {"expression", MEMBER_TEXT, offsetof(struct authn_user_rule, expression)},
    {"message", MEMBER_TEXT, offsetof(struct authn_user_rule, message)},
    {NULL},
};
static const struct member mapping_members[] = {
    {"claim", MEMBER_TEXT, offsetof(struct authn_mapping, claim)},
    {"prefix", MEMBER_TEXT, offsetof(struct authn_mapping, prefix),
     offsetof(struct authn_mapping, has_prefix)},
    {"expression", MEMBER_TEXT, offsetof(struct authn_mapping, expression)},
    {NULL},
};
static const struct member uid_members[] = {
    {"claim", MEMBER_TEXT, offsetof(struct authn_mapping, claim)},
    {"expression", MEMBER_TEXT, offsetof(struct authn_mapping, expression)},
    {NULL},
};
static const struct member extra_members[] = {
    {"key", MEMBER_TEXT, offsetof(struct authn_extra, key)},
    {"valueExpression", MEMBER_TEXT, offsetof(struct authn_extra, expression)},
    {NULL},
};
static const struct member claim_mappings_members[] = {
    {"username", MEMBER_OBJECT, offsetof(struct authn_jwt, username), 0, mapping_members},
    {"groups", MEMBER_OBJECT, offsetof(struct authn_jwt, groups), 0, mapping_members},
    {"uid", MEMBER_OBJECT, offsetof(struct authn_jwt, uid), 0, uid_members},
    {"extra", MEMBER_LIST, offsetof(struct authn_jwt, extra), 0, extra_members,
     sizeof(struct authn_extra)},
    {NULL},
};
static const struct member jwt_members[] = {
    {"issuer", MEMBER_OBJECT, offsetof(struct authn_jwt, issuer), 0, issuer_members},
    {"claimValidationRules", MEMBER_LIST, offsetof(struct authn_jwt, claim_rules), 0,
     claim_rule_members, sizeof(struct authn_claim_rule)},
    {"claimMappings", MEMBER_OBJECT, 0, 0, claim_mappings_members},
    {"userValidationRules", MEMBER_LIST, offsetof(struct authn_jwt, user_rules), 0,
     user_rule_members, sizeof(struct authn_user_rule)},
    {NULL},
};
static const struct member condition_members[] = {
    {"path", MEMBER_TEXT, offsetof(struct authn_condition, path)},
    {NULL},
};
static const struct member anonymous_members[] = {
    {"enabled", MEMBER_BOOL, offsetof(struct authn_anonymous, enabled)},
    {"conditions", MEMBER_LIST, offsetof(struct authn_anonymous, conditions), 0, condition_members,
     sizeof(struct authn_condition)},
    {NULL},
};
static const struct member document_members[] = {
    {"apiVersion", MEMBER_TEXT, offsetof(struct authn_document, api_version)},
    {"kind", MEMBER_TEXT, offsetof(struct authn_document, kind)},
    {"jwt", MEMBER_LIST, offsetof(struct authn_document, jwt), 0, jwt_members,
     sizeof(struct authn_jwt)},
    {"anonymous", MEMBER_OBJECT, offsetof(struct authn_document, anonymous),
     offsetof(struct authn_document, has_anonymous), anonymous_members},
    {NULL},
};

void authn_error(struct authn_config *config, const char *field, const char *code,
                 const char *message)
{
    if (config->error_count < AUTHN_PROBLEMS_MAX) {
        config->errors[config->error_count++] = (struct authn_problem){field, code, message};
    }
}

struct decoding_authn {
    struct arena *arena;
    struct authn_config *config;
};

static void decode_object(struct decoding_authn *decoding, const json_t *value,
                          const struct member *members, const char *path, void *out);

static void wrong_type(struct decoding_authn *decoding, const char *path, const char *wanted)
{
    authn_error(decoding->config, path, "wrong_type",
                arena_printf(decoding->arena, "%s is expected", wanted));
}

static void decode_texts(struct decoding_authn *decoding, const json_t *value, const char *path,
                         struct str_list *out)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value)) {
        wrong_type(decoding, path, "a list of texts");
        return;
    }
    if (count > ITEMS_MAX) {
        authn_error(decoding->config, path, "too_many", "at most 256 items are read");
        return;
    }
    out->items = arena_zalloc(decoding->arena, (count + 1) * sizeof(*out->items));
    out->count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(value, i);
        out->items[i] = jose_text(item);
        if (!json_is_string(item)) {
            wrong_type(decoding, arena_printf(decoding->arena, "%s[%zu]", path, i), "text");
        }
    }
}

static void decode_list(struct decoding_authn *decoding, const json_t *value,
                        const struct member *member, const char *path, char *out)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value)) {
        wrong_type(decoding, path, "a list");
        return;
    }
    if (count > ITEMS_MAX) {
        authn_error(decoding->config, path, "too_many", "at most 256 items are read");
        return;
    }
    char *items = arena_zalloc(decoding->arena, (count + 1) * member->item_size);
    /* The pointer's own type is only known to the table. */
    memcpy(out, &items, sizeof(items));
    memcpy(out + sizeof(items), &count, sizeof(count));
    for (size_t i = 0; i < count; i++) {
        decode_object(decoding, json_array_get(value, i), member->members,
                      arena_printf(decoding->arena, "%s[%zu]", path, i),
                      items + i * member->item_size);
    }
}

static void decode_member(struct decoding_authn *decoding, const json_t *value,
                          const struct member *member, const char *path, char *out)
{
    switch (member->type) {
    case MEMBER_TEXT:
        if (json_is_string(value)) {
            struct str text = jose_text(value);
            memcpy(out, &text, sizeof(text));
        } else {
            wrong_type(decoding, path, "text");
        }
        break;
    case MEMBER_BOOL:
        if (json_is_boolean(value)) {
            bool flag = json_is_true(value);
            memcpy(out, &flag, sizeof(flag));
        } else {
            wrong_type(decoding, path, "true or false");
        }
        break;
    case MEMBER_TEXTS:
        decode_texts(decoding, value, path, (struct str_list *)(void *)out);
        break;
    case MEMBER_LIST:
        decode_list(decoding, value, member, path, out);
        break;
    case MEMBER_OBJECT:
        decode_object(decoding, value, member->members, path, out);
        break;
    }
}

/* Recursion is bounded by the tables. */
static void decode_object(struct decoding_authn *decoding, const json_t *value,
                          const struct member *members, const char *path, void *out)
{
    const char *key;
    json_t *item;
    if (!json_is_object(value)) {
        wrong_type(decoding, path, "an object");
        return;
    }
    json_object_foreach ((json_t *)value, key, item) {
        const struct member *member = members;
        const char *below =
            arena_printf(decoding->arena, "%s%s%.100s", path, path[0] != '\0' ? "." : "",
                         jose_quote(decoding->arena, str_of(key)));
        while (member->name != NULL && strcmp(member->name, key) != 0) {
            member++;
        }
        if (member->name == NULL) {
            authn_error(decoding->config, below, "unknown_field", "there is no such field");
        } else if (!json_is_null(item)) {
            decode_member(decoding, item, member, below, (char *)out + member->offset);
            if (member->present > 0) {
                memcpy((char *)out + member->present, &(bool){true}, sizeof(bool));
            }
        }
    }
}

void authn_decode(struct arena *arena, const json_t *root, struct authn_document *ret,
                  struct authn_config *config)
{
    struct decoding_authn decoding = {arena, config};
    *ret = (struct authn_document){0};
    decode_object(&decoding, root, document_members, "", ret);
}
