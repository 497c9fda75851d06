/* What is known of one issuer, read as the API takes it. */
#include "oidc/issuer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/http_client.h"
#include "base/uuid.h"
#include "oidc/jose.h"

#define AUDIENCES_MAX 16
#define TENANTS_MAX 100
#define URL_MAX 1024

void oidc_issuer_init(struct oidc_issuer *issuer)
{
    *issuer = (struct oidc_issuer){
        .algs = JOSE_ALGS_ALL, .leeway_s = OIDC_LEEWAY_S, .max_lifetime_s = OIDC_LIFETIME_S};
}

static const char *first_not_run(const char *found, const struct cel *expression)
{
    return found != NULL || expression == NULL ? found : cel_not_run(expression);
}

const char *oidc_issuer_not_run(const struct oidc_issuer *issuer)
{
    const char *found = first_not_run(NULL, issuer->username.expression);
    found = first_not_run(found, issuer->groups.expression);
    found = first_not_run(found, issuer->uid.expression);
    for (size_t i = 0; i < issuer->claim_rule_count; i++) {
        found = first_not_run(found, issuer->claim_rules[i].expression);
    }
    for (size_t i = 0; i < issuer->user_rule_count; i++) {
        found = first_not_run(found, issuer->user_rules[i].expression);
    }
    for (size_t i = 0; i < issuer->extra_count; i++) {
        found = first_not_run(found, issuer->extra[i].expression);
    }
    return found;
}

/* ------------------------------------------------------------------ URLs */
/* Scheme, "://", then the host with a port up to the path. */
static struct str authority_of(struct str url)
{
    ptrdiff_t begin = url.ptr != NULL ? str_find(url, STR("://"), 0) : -1;
    if (begin < 0) {
        return (struct str){NULL, 0};
    }
    struct str rest = {url.ptr + begin + 3, url.len - (size_t)begin - 3};
    for (size_t i = 0; i < rest.len; i++) {
        if (strchr("/?#", rest.ptr[i]) != NULL) {
            rest.len = i;
        }
    }
    return rest;
}

static struct str host_of(struct str url)
{
    struct str host = authority_of(url);
    ptrdiff_t at = str_find(host, STR("@"), 0);
    if (at >= 0) {
        host = (struct str){host.ptr + at + 1, host.len - (size_t)at - 1};
    }
    if (str_starts(host, STR("["))) {
        ptrdiff_t end = str_find(host, STR("]"), 0);
        return end > 0 ? (struct str){host.ptr + 1, (size_t)end - 1} : (struct str){NULL, 0};
    }
    ptrdiff_t port = str_find(host, STR(":"), 0);
    return port >= 0 ? (struct str){host.ptr, (size_t)port} : host;
}

const char *oidc_url_problem(struct str url)
{
    struct str authority = authority_of(url);
    for (size_t i = 0; i < url.len; i++) {
        if ((uint8_t)url.ptr[i] <= ' ' || url.ptr[i] == 0x7f || url.ptr[i] == '\\') {
            return "URL must not contain spaces, control characters or backslashes";
        }
    }
    if (!str_starts(url, STR("https://"))) {
        return "URL scheme must be https";
    }
    if (str_find(authority, STR("@"), 0) >= 0) {
        return "URL must not contain a username or password";
    }
    if (str_find(url, STR("?"), 0) >= 0) {
        return "URL must not contain a query";
    }
    if (str_find(url, STR("#"), 0) >= 0) {
        return "URL must not contain a fragment";
    }
    return host_of(url).len == 0 ? "URL must have a host" : NULL;
}

bool oidc_url_is_private(struct str url)
{
    struct str host = host_of(url);
    char text[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    if (host.ptr == NULL || host.len == 0 || host.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host.ptr, host.len);
    /* inet_aton takes the short and octal forms that a resolver would take, too. */
    if (inet_aton(text, &in4.sin_addr) != 0) {
        return !http_address_is_public((const struct sockaddr *)&in4);
    }
    if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
        return !http_address_is_public((const struct sockaddr *)&in6);
    }
    return false;
}

/* ------------------------------------------------------------------ paths into claims */
bool oidc_path_parse(struct str text, struct oidc_mapping *ret)
{
    size_t pos = 0;
    ret->path_len = 0;
    while (pos < text.len) {
        size_t begin = pos;
        size_t end;
        if (ret->path_len == OIDC_PATH_MAX) {
            return false;
        }
        if (text.ptr[pos] == '[') {
            if (pos + 1 >= text.len || (text.ptr[pos + 1] != '"' && text.ptr[pos + 1] != '\'')) {
                return false;
            }
            struct str close = text.ptr[pos + 1] == '"' ? STR("\"]") : STR("']");
            ptrdiff_t found = str_find(text, close, pos + 2);
            if (found < 0) {
                return false;
            }
            begin = pos + 2;
            end = (size_t)found;
            pos = end + 2;
        } else {
            while (pos < text.len && text.ptr[pos] != '.' && text.ptr[pos] != '[') {
                pos++;
            }
            end = pos;
        }
        if (end == begin) {
            return false;
        }
        ret->path[ret->path_len++] = (struct str){text.ptr + begin, end - begin};
        if (pos < text.len && text.ptr[pos] == '.') {
            pos++;
            if (pos == text.len) {
                return false;
            }
        }
    }
    return ret->path_len > 0;
}

/* ------------------------------------------------------------------ iss */
/* Entra in its clouds; only these have issuers that stand for several tenants. */
static const char *const entra_hosts[] = {"https://login.microsoftonline.com/",
                                          "https://login.microsoftonline.us/",
                                          "https://login.partner.microsoftonline.cn/"};

static size_t entra_host_len(struct str url)
{
    for (size_t i = 0; i < COUNTOF(entra_hosts); i++) {
        if (str_starts(url, str_of(entra_hosts[i]))) {
            return strlen(entra_hosts[i]);
        }
    }
    return 0;
}

/* Where in the URL the tenant stands; false when the URL is no template. */
static bool find_template(struct str url, size_t *ret_begin, size_t *ret_end)
{
    static const char *const marks[] = {"{tenantid}", "common", "organizations", "consumers"};
    size_t begin = entra_host_len(url);
    struct str rest = {url.ptr + begin, url.len - begin};
    for (size_t i = 0; begin > 0 && i < COUNTOF(marks); i++) {
        size_t len = strlen(marks[i]);
        if (str_starts(rest, str_of(marks[i])) && (rest.len == len || rest.ptr[len] == '/')) {
            *ret_begin = begin;
            *ret_end = begin + len;
            return true;
        }
    }
    return false;
}

bool oidc_issuer_is_template(struct str url)
{
    size_t begin;
    size_t end;
    return find_template(url, &begin, &end);
}

struct str oidc_issuer_of_tenant(struct arena *arena, struct str url, struct str tenant)
{
    size_t begin;
    size_t end;
    if (!find_template(url, &begin, &end)) {
        return url;
    }
    struct str head = {url.ptr, begin};
    struct str tail = {url.ptr + end, url.len - end};
    return str_of(
        arena_printf(arena, "%.*s%.*s%.*s", STR_FMT(head), STR_FMT(tenant), STR_FMT(tail)));
}

bool oidc_issuer_matches(const struct oidc_issuer *issuer, struct str iss, struct str tid)
{
    size_t begin;
    size_t end;
    if (issuer->entra_tenants.count > 0 && find_template(issuer->url, &begin, &end)) {
        struct str head = {issuer->url.ptr, begin};
        struct str tail = {issuer->url.ptr + end, issuer->url.len - end};
        if (tid.len == 0 || iss.len != head.len + tid.len + tail.len) {
            return false;
        }
        struct str middle = {iss.ptr + begin, tid.len};
        return str_starts(iss, head) && str_ends(iss, tail) && str_eq(middle, tid);
    }
    if (str_eq(issuer->url, STR("https://accounts.google.com")) &&
        str_eq(iss, STR("accounts.google.com"))) {
        return true;
    }
    return str_eq(issuer->url, iss);
}

/* ------------------------------------------------------------------ the API's form */
/* As it stands in the body. The last rows belong to logins and to the list of issuers: they are
 * allowed here, so that one file serves both, and not used. */
struct issuer_body {
    struct str issuer, client_id, username_claim, username_prefix, groups_claim, groups_path,
        groups_prefix, required_claims;
    struct str name, title, preset, client_secret, discovery_url, ca_certificate;
    struct str_list audiences, algorithms, entra_tenants, allowed_domains, quirks, scopes;
    int64_t leeway_s, max_lifetime_s, not_before;
    bool has_leeway, has_lifetime, has_groups_claim, has_groups_path;
    bool enabled, sign_in, bearer;
};

#define AT(member) offsetof(struct issuer_body, member)

static const char *const algorithm_names[] = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
                                              "ES256", "ES384", "ES512", "EdDSA", NULL};
static const char *const quirk_names[] = {"email_verified_absent", "email_verified_string", NULL};
static const char *const preset_names[] = {"google",   "okta",    "auth0", "entra",
                                           "keycloak", "generic", NULL};

/* clang-format off */
static const struct field issuer_fields[] = {
    {"issuer", FIELD_STR, AT(issuer), .flags = FIELD_REQUIRED, .min = 1, .max = URL_MAX},
    {"audiences", FIELD_STR_LIST, AT(audiences), .min = 1, .max = AUDIENCES_MAX},
    {"client_id", FIELD_STR, AT(client_id), .min = 1},
    {"algorithms", FIELD_STR_LIST, AT(algorithms), .min = 1, .max = JOSE_ALG_COUNT, .names = algorithm_names},
    {"username_claim", FIELD_STR, AT(username_claim), .min = 1},
    {"username_prefix", FIELD_STR, AT(username_prefix), .min = 1},
    {"groups_claim", FIELD_STR, AT(groups_claim), AT(has_groups_claim), FIELD_NULLABLE, .min = 1},
    {"groups_path", FIELD_STR, AT(groups_path), AT(has_groups_path), .min = 1},
    {"groups_prefix", FIELD_STR, AT(groups_prefix), .min = 1},
    {"required_claims", FIELD_JSON, AT(required_claims), .flags = FIELD_OBJECT},
    {"allowed_domains", FIELD_STR_LIST, AT(allowed_domains), .min = 1, .max = TENANTS_MAX},
    {"entra_tenants", FIELD_STR_LIST, AT(entra_tenants), .min = 1, .max = TENANTS_MAX},
    {"leeway_s", FIELD_I64, AT(leeway_s), AT(has_leeway), .min = 0, .max = OIDC_LEEWAY_S},
    {"max_lifetime_s", FIELD_I64, AT(max_lifetime_s), AT(has_lifetime), .min = 60, .max = OIDC_LIFETIME_MAX_S},
    {"quirks", FIELD_STR_LIST, AT(quirks), .min = 0, .max = 2, .names = quirk_names},
    {"name", FIELD_STR, AT(name), .min = 1},
    {"title", FIELD_STR, AT(title)},
    {"preset", FIELD_ENUM, AT(preset), .names = preset_names},
    {"client_secret", FIELD_STR, AT(client_secret), .min = 1, .max = 4096},
    {"discovery_url", FIELD_STR, AT(discovery_url), .min = 1, .max = URL_MAX},
    {"ca_certificate", FIELD_STR, AT(ca_certificate), .flags = FIELD_LINES, .min = 1, .max = 16384},
    {"scopes", FIELD_STR_LIST, AT(scopes), .min = 0, .max = 32},
    {"enabled", FIELD_BOOL, AT(enabled)},
    {"sign_in", FIELD_BOOL, AT(sign_in)},
    {"bearer", FIELD_BOOL, AT(bearer)},
    {"not_before", FIELD_TIME, AT(not_before)},
    {NULL},
};
/* clang-format on */

struct reading {
    struct arena *arena;
    struct decode_errors *errors;
    const struct issuer_body *body;
    struct oidc_issuer *issuer;
};

static void complain(struct reading *reading, const char *pointer, const char *code,
                     const char *detail)
{
    decode_error_add(reading->arena, reading->errors, pointer, code, detail);
}

/* Plain http is as good as https where an operator named the host. */
static const char *find_problem(struct arena *arena, struct str url, bool allow_http)
{
    if (allow_http && str_starts(url, STR("http://"))) {
        const struct str rest = {url.ptr + 4, url.len - 4};
        return oidc_url_problem(str_of(arena_printf(arena, "https%.*s", STR_FMT(rest))));
    }
    return oidc_url_problem(url);
}

static void read_url(struct reading *reading, bool allow_private)
{
    struct str url = reading->body->issuer;
    const char *problem = find_problem(reading->arena, url, allow_private);
    reading->issuer->url = url;
    if (problem != NULL) {
        complain(reading, "#/issuer", "invalid_format",
                 arena_printf(reading->arena, "%s.", problem));
        return;
    }
    if (oidc_url_is_private(url) && !allow_private) {
        complain(reading, "#/issuer", "not_allowed",
                 "The address is not a public one; the installation's owner can allow it "
                 "(outbound_allow).");
    }
    if (reading->body->entra_tenants.count > 0 && entra_host_len(url) == 0) {
        complain(reading, "#/entra_tenants", "not_allowed",
                 "Tenants are listed only for an issuer of Microsoft Entra ID.");
    }
}

static void read_required(struct reading *reading)
{
    json_auto_t *claims = NULL;
    struct str text = reading->body->required_claims;
    const char *key;
    json_t *value;
    if (text.len == 0) {
        return;
    }
    claims = json_loadb(text.ptr, text.len, 0, NULL);
    reading->issuer->required = arena_zalloc(
        reading->arena, (json_object_size(claims) + 1) * sizeof(*reading->issuer->required));
    json_object_foreach (claims, key, value) {
        if (!json_is_string(value)) {
            complain(reading, "#/required_claims", "wrong_type", "Each value must be text.");
            return;
        }
        struct oidc_pair *pair = &reading->issuer->required[reading->issuer->required_count++];
        pair->name = str_of(arena_strndup(reading->arena, key, strlen(key)));
        pair->value = (struct str){
            arena_strndup(reading->arena, json_string_value(value), json_string_length(value)),
            json_string_length(value)};
    }
}

static void read_tenants(struct reading *reading)
{
    struct uuid tenant;
    const struct str_list *list = &reading->body->entra_tenants;
    for (size_t i = 0; i < list->count; i++) {
        if (!uuid_parse(list->items[i], &tenant)) {
            complain(reading, arena_printf(reading->arena, "#/entra_tenants/%zu", i),
                     "invalid_format", "A tenant is written as a GUID.");
        }
    }
    reading->issuer->entra_tenants = *list;
}

static void read_mappings(struct reading *reading)
{
    const struct issuer_body *body = reading->body;
    struct oidc_issuer *issuer = reading->issuer;
    issuer->username.path[0] = body->username_claim.len > 0 ? body->username_claim : STR("sub");
    issuer->username.path_len = 1;
    issuer->username.prefix = body->username_prefix;
    if (body->has_groups_path && body->has_groups_claim) {
        complain(reading, "#/groups_path", "not_allowed",
                 "Give groups_claim or groups_path, not both.");
    } else if (body->has_groups_path) {
        if (!oidc_path_parse(body->groups_path, &issuer->groups)) {
            complain(reading, "#/groups_path", "invalid_format",
                     "A path looks like realm_access.roles or access[\"my.app\"].roles.");
        }
    } else if (!body->has_groups_claim || body->groups_claim.len > 0) {
        issuer->groups.path[0] = body->has_groups_claim ? body->groups_claim : STR("groups");
        issuer->groups.path_len = 1;
    }
    issuer->groups.prefix = body->groups_prefix;
}

static void read_lists(struct reading *reading)
{
    const struct issuer_body *body = reading->body;
    struct oidc_issuer *issuer = reading->issuer;
    enum jose_alg alg;
    if (body->algorithms.count > 0) {
        issuer->algs = 0;
    }
    for (size_t i = 0; i < body->algorithms.count; i++) {
        if (jose_alg_find(body->algorithms.items[i], &alg)) {
            issuer->algs |= JOSE_ALG_BIT(alg);
        }
    }
    for (size_t i = 0; i < body->quirks.count; i++) {
        issuer->quirks |= str_eq_c(body->quirks.items[i], quirk_names[0])
                              ? OIDC_QUIRK_EMAIL_VERIFIED_ABSENT
                              : OIDC_QUIRK_EMAIL_VERIFIED_STRING;
    }
    issuer->allowed_domains = body->allowed_domains;
}

static void read_audiences(struct reading *reading, struct str client_id)
{
    struct oidc_issuer *issuer = reading->issuer;
    issuer->client_id = client_id.len > 0 ? client_id : reading->body->client_id;
    issuer->audiences = reading->body->audiences;
    if (issuer->audiences.count == 0 && issuer->client_id.len > 0) {
        issuer->audiences.items = arena_alloc(reading->arena, sizeof(struct str));
        issuer->audiences.items[0] = issuer->client_id;
        issuer->audiences.count = 1;
    }
    if (issuer->audiences.count == 0) {
        complain(reading, "#/audiences", "required", "Name the audiences, or the client_id.");
    }
}

enum err oidc_issuer_read(struct arena *arena, const struct oidc_issuer_source *source,
                          struct oidc_issuer *ret, struct decode_errors *errors,
                          const char **ret_detail)
{
    struct issuer_body body = {0};
    struct reading reading = {arena, errors, &body, ret};
    oidc_issuer_init(ret);
    if (source->text.len > OIDC_CONFIG_MAX_BYTES) {
        *ret_detail = "An issuer has at most 64 KiB.";
        return ERR_TOO_LARGE;
    }
    enum err err = decode_body(arena, source->text, issuer_fields, &body, errors, ret_detail);
    if (err != ERR_NONE) {
        return err;
    }
    ret->discovery_url = body.discovery_url;
    ret->ca_certificate = body.ca_certificate;
    ret->leeway_s = body.has_leeway ? body.leeway_s : OIDC_LEEWAY_S;
    ret->max_lifetime_s = body.has_lifetime ? body.max_lifetime_s : OIDC_LIFETIME_S;
    read_url(&reading, source->allow_private);
    read_audiences(&reading, source->client_id);
    read_mappings(&reading);
    read_required(&reading);
    read_tenants(&reading);
    read_lists(&reading);
    return errors->count > 0 ? ERR_INVALID_FIELDS : ERR_NONE;
}
