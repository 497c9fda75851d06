/* Signing in at the command line: muster login, logout and whoami. */
#include "cli/login.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/http_client.h"
#include "cli/store.h"

#define EXIT_FAILED 1
#define INTERVAL_MIN_S 1
#define INTERVAL_MAX_S 300
/* RFC 8628 3.5: each slow_down makes the interval so much longer. */
#define SLOWER_S 5

static void wait_seconds(json_int_t seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};
    (void)nanosleep(&pause, NULL);
}

static bool is_loopback(const char *authority)
{
    return strncmp(authority, "127.0.0.1:", 10) == 0 || strncmp(authority, "localhost:", 10) == 0 ||
           strncmp(authority, "[::1]:", 6) == 0;
}

/*
 * The address that a person is sent to. A server, or who pretends to be one, may name this machine
 * or itself, never a third: that one would ask for the code (RFC 8252 7.3, 8.10).
 */
static bool is_own_address(const char *server, const char *address)
{
    char own[512];
    char other[512];
    return address != NULL && http_url_authority(server, own, sizeof(own)) &&
           http_url_authority(address, other, sizeof(other)) &&
           (is_loopback(other) ||
            (strcmp(own, other) == 0 && strncasecmp(address, server, 5) == 0));
}

static json_t *begin(const struct command_line *line)
{
    char host[256] = "";
    char client[300];
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(client, sizeof(client), "muster%s%.240s", host[0] != '\0' ? " on " : "", host);
    json_t *body = json_pack("{s:s}", "client", client);
    json_t *codes = client_call(line->client, "POST", "/device-codes", body, false);
    json_decref(body);
    if (codes == NULL) {
        return NULL;
    }
    const char *address = json_string_value(json_object_get(codes, "verification_uri"));
    if (!is_own_address(line->server, address)) {
        (void)fprintf(stderr,
                      "muster: %s sends people to %s to sign in, which is another server. Give "
                      "--server the address that people use.\n",
                      line->server, address != NULL ? address : "nowhere");
        json_decref(codes);
        return NULL;
    }
    return codes;
}

static json_int_t read_interval(const json_t *codes)
{
    json_int_t interval = json_integer_value(json_object_get(codes, "interval"));
    return interval < INTERVAL_MIN_S   ? INTERVAL_MIN_S
           : interval > INTERVAL_MAX_S ? INTERVAL_MAX_S
                                       : interval;
}

/* Asks until somebody decided; NULL after printing why there is no token. */
static json_t *wait_for_token(const struct command_line *line, const json_t *codes)
{
    json_int_t interval = read_interval(codes);
    json_t *body = json_object();
    (void)json_object_set(body, "device_code", json_object_get(codes, "device_code"));
    json_t *answer = NULL;
    for (;;) {
        long status = 0;
        wait_seconds(interval);
        answer = client_ask(line->client, "POST", "/device-tokens", body, &status);
        const char *code = json_string_value(json_object_get(answer, "code"));
        bool pending = code != NULL && strcmp(code, "authorization_pending") == 0;
        bool slower = status == 0 || status == 429 || status == 503 ||
                      (code != NULL && strcmp(code, "slow_down") == 0);
        if (!pending && !slower) {
            break;
        }
        interval += slower && interval + SLOWER_S <= INTERVAL_MAX_S ? SLOWER_S : 0;
        json_decref(answer);
    }
    json_decref(body);
    if (json_is_string(json_object_get(answer, "access_token"))) {
        return answer;
    }
    const char *detail = json_string_value(json_object_get(answer, "detail"));
    (void)fprintf(stderr, "muster: not signed in: %s\n",
                  detail != NULL ? detail : "the server's answer cannot be read");
    json_decref(answer);
    return NULL;
}

int run_login(const struct command_line *line)
{
    json_t *codes = begin(line);
    if (codes == NULL) {
        return EXIT_FAILED;
    }
    (void)printf("Open %s\nand check that it shows this code: %s\n",
                 json_string_value(json_object_get(codes, "verification_uri_complete")),
                 json_string_value(json_object_get(codes, "user_code")));
    (void)fflush(stdout);
    json_t *token = wait_for_token(line, codes);
    json_decref(codes);
    if (token == NULL) {
        return EXIT_FAILED;
    }
    bool kept = store_put(line->server, token);
    if (kept) {
        (void)printf("Signed in to %s as %s, in %s, until %s.\n", line->server,
                     json_string_value(json_object_get(json_object_get(token, "person"), "name")),
                     json_string_value(json_object_get(json_object_get(token, "org"), "name")),
                     json_string_value(json_object_get(token, "expires_at")));
    }
    json_decref(token);
    return kept ? 0 : EXIT_FAILED;
}

int run_logout(const struct command_line *line)
{
    json_t *kept = store_get(line->server);
    if (kept == NULL) {
        (void)printf("Not signed in to %s.\n", line->server);
        return 0;
    }
    struct client *client = client_new(
        line->server, json_string_value(json_object_get(kept, "access_token")), line->ca_file);
    long status = 0;
    json_decref(client_ask(client, "DELETE", "/session", NULL, &status));
    client_free(client);
    json_decref(kept);
    if (status != 204 && status != 401) {
        (void)fprintf(stderr,
                      "muster: %s did not end the session (%ld); it is kept here. Try again.\n",
                      line->server, status);
        return EXIT_FAILED;
    }
    store_drop(line->server);
    (void)printf("Signed out of %s.\n", line->server);
    return 0;
}

int run_whoami(const struct command_line *line)
{
    json_t *me = client_call(line->client, "GET", "/me", NULL, false);
    if (me == NULL) {
        return EXIT_FAILED;
    }
    if (line->json) {
        (void)json_dumpf(me, stdout, JSON_INDENT(2));
        (void)printf("\n");
        json_decref(me);
        return 0;
    }
    const char *until = json_string_value(json_object_get(me, "expires_at"));
    (void)printf("%s (%s) in %s at %s\nroles:", json_string_value(json_object_get(me, "name")),
                 json_string_value(json_object_get(me, "kind")),
                 json_string_value(json_object_get(json_object_get(me, "org"), "name")),
                 line->server);
    size_t i;
    json_t *role;
    json_array_foreach (json_object_get(me, "roles"), i, role) {
        (void)printf("%s %s", i > 0 ? "," : "", json_string_value(role));
    }
    (void)printf("\n%s%s%s", until != NULL ? "until: " : "", until != NULL ? until : "",
                 until != NULL ? "\n" : "");
    json_decref(me);
    return 0;
}
