/* The command line's calls to a server: address, token, problems in words. */
#include "cli/client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/http_client.h"
#include "base/uuid.h"

#define PAGES_MAX 1000 /* of 200: more than any list here holds */

struct client {
    struct http_client *http;
    const char *server;
    struct buf authorization;
    struct http_answer answer;
};

struct client *client_new(const char *server, const char *token, const char *ca_file)
{
    struct client *client = calloc(1, sizeof(*client));
    assert(client != NULL);
    struct http_client_options options = {
        .ca_file = ca_file, .timeout_ms = 30000, .max_bytes = 16u << 20};
    client->http = http_client_new(&options);
    client->server = server;
    if (token[0] != '\0') {
        buf_printf(&client->authorization, "Authorization: Bearer %s", token);
    }
    return client;
}

void client_free(struct client *client)
{
    if (client == NULL) {
        return;
    }
    http_client_free(client->http);
    http_answer_free(&client->answer);
    buf_free(&client->authorization);
    free(client);
}

/* Title, detail and each bad field of a problem. */
static void print_problem(long status, const json_t *problem)
{
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *id = json_string_value(json_object_get(problem, "request_id"));
    (void)fprintf(stderr, "muster: %s (%ld)\n", title != NULL ? title : "the server refused",
                  status);
    if (detail != NULL) {
        (void)fprintf(stderr, "  %s\n", detail);
    }
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get(problem, "errors"), i, item) {
        const char *where = json_string_value(json_object_get(item, "pointer"));
        if (where == NULL) {
            where = json_string_value(json_object_get(item, "parameter"));
        }
        const char *why = json_string_value(json_object_get(item, "detail"));
        (void)fprintf(stderr, "  %s: %s\n", where != NULL ? where : "", why != NULL ? why : "");
    }
    if (status >= 500 && id != NULL) {
        (void)fprintf(stderr, "  request %s\n", id);
    }
}

static json_t *read_answer(struct client *client)
{
    struct http_answer *answer = &client->answer;
    if (answer->status == 0) {
        (void)fprintf(stderr, "muster: %s does not answer: %s\n", client->server, answer->error);
        return NULL;
    }
    if (answer->status == 204) {
        return json_object();
    }
    json_t *body = json_loadb(answer->body.ptr != NULL ? answer->body.ptr : "", answer->body.len,
                              JSON_REJECT_DUPLICATES, NULL);
    if (answer->status >= 200 && answer->status < 300 && body != NULL) {
        return body;
    }
    print_problem(answer->status, body);
    json_decref(body);
    return NULL;
}

static void send_call(struct client *client, const char *method, const char *path, json_t *body,
                      const char *key)
{
    CLEANUP(buf_free) struct buf url = {0};
    CLEANUP(cleanup_free) char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    const char *headers[4] = {"Content-Type: application/json"};
    size_t count = 1;
    if (client->authorization.ptr != NULL) {
        headers[count++] = client->authorization.ptr;
    }
    headers[count] = key;
    struct str server = str_of(client->server);
    while (server.len > 0 && server.ptr[server.len - 1] == '/') {
        server.len--;
    }
    buf_printf(&url, "%.*s/api/v1%s", STR_FMT(server), path);
    http_client_send(client->http, method, url.ptr, headers, str_of(text), &client->answer);
}

json_t *client_call(struct client *client, const char *method, const char *path, json_t *body,
                    bool idempotency)
{
    char id[UUID_TEXT_LEN + 1];
    char key[64];
    struct uuid uuid = uuid_v4();
    uuid_format(&uuid, id);
    (void)snprintf(key, sizeof(key), "Idempotency-Key: %s", id);
    send_call(client, method, path, body, idempotency ? key : NULL);
    return read_answer(client);
}

json_t *client_ask(struct client *client, const char *method, const char *path, json_t *body,
                   long *ret_status)
{
    const struct http_answer *answer = &client->answer;
    send_call(client, method, path, body, NULL);
    *ret_status = answer->status;
    return answer->status == 0 || answer->body.len == 0
               ? NULL
               : json_loadb(answer->body.ptr, answer->body.len, JSON_REJECT_DUPLICATES, NULL);
}

json_t *client_list(struct client *client, const char *path)
{
    json_t *all = json_array();
    CLEANUP(buf_free) struct buf page = {0};
    buf_printf(&page, "%s%climit=200", path, strchr(path, '?') != NULL ? '&' : '?');
    size_t first_len = page.len;
    for (int i = 0; i < PAGES_MAX; i++) {
        json_t *body = client_call(client, "GET", page.ptr, NULL, false);
        if (body == NULL) {
            json_decref(all);
            return NULL;
        }
        (void)json_array_extend(all, json_object_get(body, "items"));
        const char *next = json_string_value(json_object_get(body, "next_cursor"));
        if (next == NULL) {
            json_decref(body);
            break;
        }
        page.len = first_len;
        buf_printf(&page, "&cursor=%s", next);
        json_decref(body);
    }
    return all;
}
