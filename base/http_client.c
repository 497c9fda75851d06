/* Outgoing HTTP on libcurl: deadlines, size caps and an address filter. */
#include "base/http_client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 5000
#define DEFAULT_MAX_BYTES ((size_t)1024 * 1024)
/* Header lines of one answer together; libcurl bounds each line only. */
#define HEADERS_MAX_BYTES ((size_t)64 * 1024)
#define RETRY_AFTER_MAX_S 86400
#define MAX_AGE_MAX_S 31536000

/* Why an exchange was broken off by us rather than by libcurl. */
enum refusal { REFUSED_NOT, REFUSED_ADDRESS, REFUSED_BODY, REFUSED_HEADERS };

struct http_client {
    CURL *curl;
    size_t max_bytes;
    bool public_addresses_only;
    bool allow_http;
    bool loopback_only; /* this exchange: plain http that is allowed to the own machine only */
    enum refusal refusal;
    size_t header_bytes;
    long max_age_s;
    struct buf *body;
    char curl_error[CURL_ERROR_SIZE];
};

struct range4 {
    uint32_t base;
    unsigned bits;
};

#define IP4(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* IANA IPv4 special-purpose registry: what is not globally reachable, and multicast. */
static const struct range4 not_public4[] = {
    {IP4(0, 0, 0, 0), 8},      {IP4(10, 0, 0, 0), 8},     {IP4(100, 64, 0, 0), 10},
    {IP4(127, 0, 0, 0), 8},    {IP4(169, 254, 0, 0), 16}, {IP4(172, 16, 0, 0), 12},
    {IP4(192, 0, 0, 0), 24},   {IP4(192, 0, 2, 0), 24},   {IP4(192, 88, 99, 0), 24},
    {IP4(192, 168, 0, 0), 16}, {IP4(198, 18, 0, 0), 15},  {IP4(198, 51, 100, 0), 24},
    {IP4(203, 0, 113, 0), 24}, {IP4(224, 0, 0, 0), 4},    {IP4(240, 0, 0, 0), 4},
};

static bool is_public4(uint32_t address)
{
    for (size_t i = 0; i < COUNTOF(not_public4); i++) {
        if ((address ^ not_public4[i].base) >> (32 - not_public4[i].bits) == 0) {
            return false;
        }
    }
    return true;
}

static uint32_t read_ip4(const uint8_t *bytes)
{
    return IP4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* Only 2000::/3 is handed out as global unicast (RFC 4291 2.4): all else - loopback, unspecified,
 * mapped IPv4, fc00::/7, fe80::/10, multicast - is not. Inside it the tunnels carry IPv4 addresses.
 */
static bool is_public6(const uint8_t address[16])
{
    static const uint8_t documentation[4] = {0x20, 0x01, 0x0d, 0xb8};
    static const uint8_t protocols[2] = {0x20, 0x01}; /* 2001::/23, Teredo among them */
    static const uint8_t six_to_four[2] = {0x20, 0x02};
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};

    if (memcmp(address, nat64, sizeof(nat64)) == 0) {
        /* RFC 6052: the way to public IPv4 on an IPv6-only network. */
        return is_public4(read_ip4(address + 12));
    }
    if ((address[0] & 0xe0) != 0x20) {
        return false;
    }
    if (memcmp(address, documentation, sizeof(documentation)) == 0 ||
        (memcmp(address, protocols, sizeof(protocols)) == 0 && address[2] < 2)) {
        return false;
    }
    return memcmp(address, six_to_four, sizeof(six_to_four)) != 0;
}

bool http_address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in4;

        memcpy(&in4, address, sizeof(in4));
        return is_public4(ntohl(in4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, address, sizeof(in6));
        return is_public6(in6.sin6_addr.s6_addr);
    }
    return false;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in4;

        memcpy(&in4, address, sizeof(in4));
        return ntohl(in4.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, address, sizeof(in6));
        return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
    }
    return false;
}

/* Called with the address that was resolved, right before connecting: a name that changes its
 * address between a check and the connection gains nothing. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_client *client = ctx;

    (void)purpose;
    if ((client->public_addresses_only && !http_address_is_public(&address->addr)) ||
        (client->loopback_only && !is_loopback(&address->addr))) {
        client->refusal = REFUSED_ADDRESS;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_body(char *data, size_t size, size_t count, void *ctx)
{
    struct http_client *client = ctx;
    size_t len = size * count; /* size is always 1 */

    if (len > client->max_bytes - client->body->len) {
        client->refusal = REFUSED_BODY;
        return 0;
    }
    buf_add(client->body, data, len);
    return len;
}

/* RFC 9111 5.2.2; the strictest of several directives counts. */
static void note_cache_control(struct http_client *client, struct str line)
{
    struct str name;
    struct str directive;

    if (!str_split(&line, ':', &name) || !str_eq_nocase(name, STR("cache-control"))) {
        return;
    }
    while (str_split(&line, ',', &directive)) {
        uint64_t age_s = 0;
        struct str key;
        directive = str_trim(directive);
        if (!str_split(&directive, '=', &key)) {
            continue;
        }
        if (str_eq_nocase(key, STR("no-store")) || str_eq_nocase(key, STR("no-cache"))) {
            client->max_age_s = 0;
        } else if (str_eq_nocase(key, STR("max-age")) && client->max_age_s != 0 &&
                   str_parse_u64(directive, 0, UINT64_MAX, &age_s)) {
            client->max_age_s = age_s > MAX_AGE_MAX_S ? MAX_AGE_MAX_S : (long)age_s;
        }
    }
}

static size_t take_header(char *data, size_t size, size_t count, void *ctx)
{
    struct http_client *client = ctx;
    size_t len = size * count;

    if (len > HEADERS_MAX_BYTES - client->header_bytes) {
        client->refusal = REFUSED_HEADERS;
        return 0;
    }
    client->header_bytes += len;
    note_cache_control(client, (struct str){data, len});
    return len;
}

static void init_curl(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        abort();
    }
}

/* An option that libcurl does not take would be a hole in the filter: better no client at all. */
#define SET(client, option, value)                                             \
    do {                                                                       \
        if (curl_easy_setopt((client)->curl, (option), (value)) != CURLE_OK) { \
            abort();                                                           \
        }                                                                      \
    } while (0)

struct http_client *http_client_new(const struct http_client_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http_client *client = calloc(1, sizeof(*client));

    (void)pthread_once(&once, init_curl);
    if (client == NULL || (client->curl = curl_easy_init()) == NULL) {
        abort();
    }
    client->max_bytes = options->max_bytes == 0 ? DEFAULT_MAX_BYTES : options->max_bytes;
    client->public_addresses_only = options->public_addresses_only;
    client->allow_http = options->allow_http;
    SET(client, CURLOPT_NOSIGNAL, 1L);
    SET(client, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(client, CURLOPT_FOLLOWLOCATION, 0L);
    SET(client, CURLOPT_PROXY, ""); /* a proxy from the environment would get around the filter */
    SET(client, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(client, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(client, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(client, CURLOPT_USERAGENT, "muster/" MUSTER_VERSION);
    SET(client, CURLOPT_TIMEOUT_MS,
        options->timeout_ms == 0 ? (long)DEFAULT_TIMEOUT_MS : options->timeout_ms);
    SET(client, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(client, CURLOPT_OPENSOCKETDATA, client);
    SET(client, CURLOPT_WRITEFUNCTION, take_body);
    SET(client, CURLOPT_WRITEDATA, client);
    SET(client, CURLOPT_HEADERFUNCTION, take_header);
    SET(client, CURLOPT_HEADERDATA, client);
    SET(client, CURLOPT_ERRORBUFFER, client->curl_error);
    if (options->ca_file != NULL) {
        SET(client, CURLOPT_CAINFO, options->ca_file);
    }
    if (options->certificate_file != NULL) {
        SET(client, CURLOPT_SSLCERT, options->certificate_file);
        SET(client, CURLOPT_SSLKEY, options->key_file);
    }
    if (options->ca_pem.len > 0) {
        struct curl_blob pem = {(void *)(uintptr_t)options->ca_pem.ptr, options->ca_pem.len,
                                CURL_BLOB_COPY};
        SET(client, CURLOPT_CAINFO_BLOB, &pem);
        SET(client, CURLOPT_CAPATH, NULL); /* or the system's would be trusted beside them */
    }
    return client;
}

void http_client_free(struct http_client *client)
{
    if (client == NULL) {
        return;
    }
    curl_easy_cleanup(client->curl);
    free(client);
}

static void free_url(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void free_part(char **part)
{
    curl_free(*part);
}

static void free_list(struct curl_slist **list)
{
    curl_slist_free_all(*list);
}

static bool refuse(struct http_answer *answer, const char *error)
{
    (void)snprintf(answer->error, sizeof(answer->error), "%.*s", (int)sizeof(answer->error) - 1,
                   error);
    return false;
}

/* Checks the scheme; the address is checked when it is known. */
static bool check_url(struct http_client *client, const char *text, struct http_answer *answer)
{
    CLEANUP(free_url) CURLU *url = curl_url();
    CLEANUP(free_part) char *scheme = NULL;

    if (url == NULL) {
        abort();
    }
    if (curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK) {
        return refuse(answer, "the address is not a URL, or it holds a user name");
    }
    if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0) {
        return refuse(answer, "only http and https are spoken");
    }
    client->loopback_only = strcmp(scheme, "http") == 0 && !client->allow_http;
    if (client->loopback_only && client->public_addresses_only) {
        return refuse(answer, "plain http is not allowed to this address; use https");
    }
    return true;
}

bool http_url_authority(const char *text, char *ret_text, size_t cap)
{
    CLEANUP(free_url) CURLU *url = curl_url();
    CLEANUP(free_part) char *host = NULL;
    CLEANUP(free_part) char *port = NULL;

    if (url == NULL) {
        abort();
    }
    if (curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
        return false;
    }
    for (char *c = host; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    int len = snprintf(ret_text, cap, "%s:%s", host, port);
    return len > 0 && (size_t)len < cap;
}

static struct curl_slist *append(struct curl_slist *list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(list, line);

    if (longer == NULL) {
        abort();
    }
    return longer;
}

static bool make_headers(const char *const *lines, struct curl_slist **ret_list,
                         struct http_answer *answer)
{
    /* No 100-continue round trip, and no content type that we did not choose. */
    struct curl_slist *list = append(NULL, "Expect:");
    bool has_type = false;

    for (size_t i = 0; lines != NULL && lines[i] != NULL; i++) {
        struct str line = str_of(lines[i]);

        if (strpbrk(lines[i], "\r\n") != NULL) {
            curl_slist_free_all(list);
            return refuse(answer, "a header holds a line break");
        }
        has_type = has_type || (line.len >= 13 &&
                                str_eq_nocase((struct str){line.ptr, 13}, STR("content-type:")));
        list = append(list, lines[i]);
    }
    if (!has_type) {
        list = append(list, "Content-Type:");
    }
    *ret_list = list;
    return true;
}

static void set_body(struct http_client *client, const char *method, struct str body)
{
    bool takes_body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
                      strcmp(method, "PATCH") == 0 || body.len > 0;

    /* HTTPGET first: it clears what the request before left set. */
    SET(client, CURLOPT_HTTPGET, 1L);
    SET(client, CURLOPT_NOBODY, strcmp(method, "HEAD") == 0 ? 1L : 0L);
    if (takes_body) {
        SET(client, CURLOPT_POST, 1L);
        SET(client, CURLOPT_POSTFIELDS, body.ptr == NULL ? "" : body.ptr);
        SET(client, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    }
    SET(client, CURLOPT_CUSTOMREQUEST, method);
}

static void explain(const struct http_client *client, CURLcode code, struct http_answer *answer)
{
    switch (client->refusal) {
    case REFUSED_ADDRESS:
        (void)refuse(answer, client->loopback_only
                                 ? "plain http is allowed to this machine only; use https"
                                 : "the address is not a public one");
        return;
    case REFUSED_BODY:
        (void)snprintf(answer->error, sizeof(answer->error), "the answer is larger than %zu bytes",
                       client->max_bytes);
        return;
    case REFUSED_HEADERS:
        (void)refuse(answer, "the headers of the answer are too large");
        return;
    case REFUSED_NOT:
    default:
        (void)refuse(answer,
                     client->curl_error[0] != '\0' ? client->curl_error : curl_easy_strerror(code));
        return;
    }
}

static void perform(struct http_client *client, struct http_answer *answer)
{
    curl_off_t retry_after_s = 0;
    CURLcode code = curl_easy_perform(client->curl);

    if (code != CURLE_OK) {
        buf_clear(&answer->body);
        answer->unsent = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
                         code == CURLE_PEER_FAILED_VERIFICATION;
        explain(client, code, answer);
        return;
    }
    (void)curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &answer->status);
    (void)curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    answer->max_age_s = client->max_age_s;
    if (retry_after_s > 0) {
        answer->retry_after_s =
            retry_after_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : (long)retry_after_s;
    }
}

void http_client_send(struct http_client *client, const char *method, const char *url,
                      const char *const *headers, struct str body, struct http_answer *ret_answer)
{
    CLEANUP(free_list) struct curl_slist *list = NULL;

    buf_clear(&ret_answer->body);
    ret_answer->status = 0;
    ret_answer->unsent = false;
    ret_answer->retry_after_s = -1;
    ret_answer->max_age_s = -1;
    ret_answer->error[0] = '\0';
    client->refusal = REFUSED_NOT;
    client->max_age_s = -1;
    client->header_bytes = 0;
    client->body = &ret_answer->body;
    client->curl_error[0] = '\0';
    if (!check_url(client, url, ret_answer) || !make_headers(headers, &list, ret_answer)) {
        return;
    }
    SET(client, CURLOPT_URL, url);
    SET(client, CURLOPT_HTTPHEADER, list);
    set_body(client, method, body);
    perform(client, ret_answer);
    /* The handle outlives the list and the caller's body. */
    SET(client, CURLOPT_HTTPHEADER, NULL);
    SET(client, CURLOPT_POSTFIELDS, NULL);
    client->body = NULL;
}

void http_answer_free(struct http_answer *answer)
{
    buf_free(&answer->body);
}
