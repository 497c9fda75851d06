/* Promises of base/http_client.h, against a small server on the loopback address. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/http_client.h"

/* Answers by path; the last row is for all other paths. */
static const struct {
    const char *path;
    const char *answer;
} canned[] = {
    {"/moved", "HTTP/1.1 302 Found\r\nLocation: /secret\r\nContent-Length: 0\r\n\r\n"},
    {"/busy", "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"},
    {"/forever", "HTTP/1.1 503 Busy\r\nRetry-After: 99999999\r\nContent-Length: 0\r\n\r\n"},
    {"/large", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890"},
    {"/chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                "6\r\n012345\r\n6\r\n678901\r\n0\r\n\r\n"},
    {"/exact", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"},
    {"/head", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"},
    {"/silent", ""},
    {"/hour",
     "HTTP/1.1 200 OK\r\ncache-control: Public, Max-Age=3600\r\nContent-Length: 2\r\n\r\nok"},
    {"/none",
     "HTTP/1.1 200 OK\r\nCache-Control: no-store, max-age=9\r\nContent-Length: 2\r\n\r\nok"},
    {"/ages",
     "HTTP/1.1 200 OK\r\nCache-Control: max-age=99999999999\r\nContent-Length: 2\r\n\r\nok"},
    {"/odd",
     "HTTP/1.1 200 OK\r\nCache-Control: max-age=-1, =, ,max-age\r\nContent-Length: 2\r\n\r\nok"},
    {"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
};

static int listener;
static unsigned port;
static pthread_t server;
static atomic_int connections;
static char last_request[4096];

static const char *find_answer(const char *request)
{
    const char *path = strchr(request, ' ');

    for (size_t i = 0; i < COUNTOF(canned); i++) {
        size_t len = strlen(canned[i].path);

        if (len == 0 || (path != NULL && strncmp(path + 1, canned[i].path, len) == 0)) {
            return canned[i].answer;
        }
    }
    return "";
}

/* Reads one request whole into last_request; false at the end of the connection. */
static bool read_request(int fd)
{
    size_t used = 0;
    size_t needed = SIZE_MAX;

    while (used < needed && used < sizeof(last_request) - 1) {
        ssize_t got = read(fd, last_request + used, sizeof(last_request) - 1 - used);
        const char *head_end;
        const char *length;

        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
        last_request[used] = '\0';
        head_end = strstr(last_request, "\r\n\r\n");
        length = strstr(last_request, "Content-Length: ");
        if (head_end != NULL) {
            needed = (size_t)(head_end - last_request) + 4 +
                     (length == NULL ? 0 : strtoul(length + 16, NULL, 10));
        }
    }
    return true;
}

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0) {
            return NULL;
        }
        atomic_fetch_add(&connections, 1);
        while (read_request(fd)) {
            const char *answer = find_answer(last_request);

            if (write(fd, answer, strlen(answer)) < 0) {
                break;
            }
        }
        (void)close(fd);
    }
}

static void begin(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 16), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    port = ntohs(address.sin_port);
    cr_assert_eq(pthread_create(&server, NULL, serve, NULL), 0);
}

static void end(void)
{
    /* Wakes accept with an error; the connections end with their clients. */
    (void)shutdown(listener, SHUT_RDWR);
    (void)pthread_join(server, NULL);
    (void)close(listener);
}

TestSuite(http_client, .init = begin, .fini = end, .timeout = 120);

static const char *url(const char *path)
{
    static char text[128];

    (void)snprintf(text, sizeof(text), "http://127.0.0.1:%u%s", port, path);
    return text;
}

static void get_once(const struct http_client_options *options, const char *address,
                     struct http_answer *answer)
{
    struct http_client *client = http_client_new(options);

    http_client_send(client, "GET", address, NULL, (struct str){0}, answer);
    http_client_free(client);
}

Test(http_client, an_answer_comes_with_status_and_body)
{
    struct http_client_options options = {0};
    struct http_answer answer = {0};

    get_once(&options, url("/"), &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.error);
    cr_assert(str_eq_c(buf_str(&answer.body), "ok"));
    cr_assert_eq(answer.retry_after_s, -1);
    cr_assert_str_eq(answer.error, "");
    http_answer_free(&answer);
}

Test(http_client, method_headers_and_body_are_sent_as_given)
{
    static const char *const headers[] = {"Content-Type: application/json", "X-Key: 7", NULL};
    struct http_client_options options = {0};
    struct http_answer answer = {0};
    struct http_client *client = http_client_new(&options);

    http_client_send(client, "PATCH", url("/x?y=1"), headers, STR("{\"a\":1}"), &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.error);
    cr_assert_eq(strncmp(last_request, "PATCH /x?y=1 HTTP/1.1\r\n", 23), 0);
    cr_assert_not_null(strstr(last_request, "\r\nContent-Type: application/json\r\n"));
    cr_assert_not_null(strstr(last_request, "\r\nX-Key: 7\r\n"));
    cr_assert_not_null(strstr(last_request, "\r\n\r\n{\"a\":1}"));
    cr_assert_null(strstr(last_request, "Expect:"));
    http_client_free(client);
    http_answer_free(&answer);
}

Test(http_client, requests_after_one_another_do_not_inherit_and_share_the_connection)
{
    static const char *const headers[] = {"X-Once: 1", NULL};
    struct http_client_options options = {0};
    struct http_answer answer = {0};
    struct http_client *client = http_client_new(&options);

    http_client_send(client, "POST", url("/a"), headers, STR("first"), &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.error);
    http_client_send(client, "GET", url("/b"), NULL, (struct str){0}, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.error);
    cr_assert_eq(strncmp(last_request, "GET /b ", 7), 0);
    cr_assert_null(strstr(last_request, "X-Once"));
    cr_assert_null(strstr(last_request, "first"));
    http_client_send(client, "POST", url("/c"), NULL, (struct str){0}, &answer);
    cr_assert_not_null(strstr(last_request, "\r\nContent-Length: 0\r\n"));
    cr_assert_null(strstr(last_request, "Content-Type"), "no type is made up");
    http_client_send(client, "HEAD", url("/head"), NULL, (struct str){0}, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.error);
    cr_assert_eq(answer.body.len, 0);
    http_client_send(client, "DELETE", url("/d"), NULL, (struct str){0}, &answer);
    cr_assert_eq(strncmp(last_request, "DELETE /d ", 10), 0);
    cr_assert(str_eq_c(buf_str(&answer.body), "ok"));
    cr_assert_eq(atomic_load(&connections), 1);
    http_client_free(client);
    http_answer_free(&answer);
}

Test(http_client, a_redirect_is_given_back_and_not_followed)
{
    struct http_client_options options = {0};
    struct http_answer answer = {0};

    get_once(&options, url("/moved"), &answer);
    cr_assert_eq(answer.status, 302, "%s", answer.error);
    cr_assert_not_null(strstr(last_request, "/moved"), "nothing else was asked");
    http_answer_free(&answer);
}

Test(http_client, retry_after_is_read_and_bounded)
{
    struct http_client_options options = {0};
    struct http_answer answer = {0};

    get_once(&options, url("/busy"), &answer);
    cr_assert_eq(answer.status, 503);
    cr_assert_eq(answer.retry_after_s, 7);
    get_once(&options, url("/forever"), &answer);
    cr_assert_eq(answer.retry_after_s, 86400);
    http_answer_free(&answer);
}

Test(http_client, a_body_over_the_cap_is_no_answer)
{
    static const char *const paths[] = {"/large", "/chunks"};
    struct http_client_options options = {.max_bytes = 10};

    for (size_t i = 0; i < COUNTOF(paths); i++) {
        struct http_answer answer = {0};

        get_once(&options, url(paths[i]), &answer);
        cr_assert_eq(answer.status, 0, "%s", paths[i]);
        cr_assert_eq(answer.body.len, 0);
        cr_assert_not_null(strstr(answer.error, "larger than 10"), "%s", answer.error);
        get_once(&options, url("/exact"), &answer);
        cr_assert_eq(answer.status, 200, "%s", answer.error);
        http_answer_free(&answer);
    }
}

Test(http_client, a_silent_server_ends_at_the_deadline)
{
    struct http_client_options options = {.timeout_ms = 50};
    struct http_answer answer = {0};

    get_once(&options, url("/silent"), &answer);
    cr_assert_eq(answer.status, 0);
    cr_assert_gt(strlen(answer.error), 0);
    http_answer_free(&answer);
}

Test(http_client, public_addresses_only_never_reaches_the_own_machine)
{
    static const char *const hosts[] = {"127.0.0.1",          "localhost",  "0.0.0.0", "[::1]",
                                        "[::ffff:127.0.0.1]", "2130706433", "127.1"};
    struct http_client_options options = {.public_addresses_only = true, .allow_http = true};

    for (size_t i = 0; i < COUNTOF(hosts); i++) {
        struct http_answer answer = {0};
        char address[128];

        (void)snprintf(address, sizeof(address), "http://%s:%u/", hosts[i], port);
        get_once(&options, address, &answer);
        cr_assert_eq(answer.status, 0, "%s", hosts[i]);
        http_answer_free(&answer);
    }
    cr_assert_eq(atomic_load(&connections), 0);
}

Test(http_client, plain_http_goes_to_the_own_machine_only_unless_allowed)
{
    struct http_client_options options = {.timeout_ms = 500};
    struct http_answer answer = {0};

    /* 192.0.2.1 is reserved for documentation (RFC 5737): refused before any packet. */
    get_once(&options, "http://192.0.2.1/", &answer);
    cr_assert_eq(answer.status, 0);
    cr_assert_not_null(strstr(answer.error, "https"), "%s", answer.error);
    options.public_addresses_only = true;
    get_once(&options, url("/"), &answer);
    cr_assert_eq(answer.status, 0);
    cr_assert_not_null(strstr(answer.error, "https"), "%s", answer.error);
    cr_assert_eq(atomic_load(&connections), 0);
    http_answer_free(&answer);
}

Test(http_client, other_schemes_and_user_names_are_refused)
{
    static const char *const bad[] = {"file:///etc/passwd",
                                      "ftp://127.0.0.1/",
                                      "gopher://127.0.0.1/",
                                      "http://user:pw@127.0.0.1/",
                                      "",
                                      "not a url",
                                      "http://",
                                      "//127.0.0.1/"};
    struct http_client_options options = {.allow_http = true};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        struct http_answer answer = {0};

        get_once(&options, bad[i], &answer);
        cr_assert_eq(answer.status, 0, "%s", bad[i]);
        cr_assert_gt(strlen(answer.error), 0, "%s", bad[i]);
        http_answer_free(&answer);
    }
}

Test(http_client, a_header_with_a_line_break_is_refused)
{
    static const char *const headers[] = {"X-A: 1\r\nX-B: 2", NULL};
    struct http_client_options options = {0};
    struct http_answer answer = {0};
    struct http_client *client = http_client_new(&options);

    http_client_send(client, "GET", url("/"), headers, (struct str){0}, &answer);
    cr_assert_eq(answer.status, 0);
    cr_assert_eq(atomic_load(&connections), 0);
    http_client_free(client);
    http_answer_free(&answer);
}

Test(http_client, a_proxy_of_the_environment_is_not_used)
{
    struct http_client_options options = {0};
    struct http_answer answer = {0};

    cr_assert_eq(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    get_once(&options, url("/"), &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.error);
    http_answer_free(&answer);
}

static bool is_public(const char *text)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
        return http_address_is_public((const struct sockaddr *)&in4);
    }
    cr_assert_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1, "%s", text);
    return http_address_is_public((const struct sockaddr *)&in6);
}

Test(http_client, addresses_that_are_not_public_are_known)
{
    static const char *const inside[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.0.1",
        "192.168.255.255",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::ffff:10.0.0.1",
        "::7f00:1",
        "64:ff9b::a00:1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "2001::1",
        "2002:a00:1::1",
        "100::1",
    };
    static const char *const outside[] = {
        "1.1.1.1",         "9.255.255.255",   "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",     "126.0.0.1",       "128.0.0.1",       "172.15.255.255",
        "172.32.0.0",      "192.167.255.255", "192.169.0.0",     "223.255.255.255",
        "2606:4700::1111", "2a00:1450::1",    "2001:4860::8888", "64:ff9b::808:808",
    };

    for (size_t i = 0; i < COUNTOF(inside); i++) {
        cr_assert_not(is_public(inside[i]), "%s", inside[i]);
    }
    for (size_t i = 0; i < COUNTOF(outside); i++) {
        cr_assert(is_public(outside[i]), "%s", outside[i]);
    }
}

Test(http_client, the_age_of_an_answer_is_read_and_bounded)
{
    static const struct {
        const char *path;
        long max_age_s;
    } cases[] = {{"/", -1}, {"/hour", 3600}, {"/none", 0}, {"/ages", 31536000}, {"/odd", -1}};
    struct http_client_options options = {0};
    struct http_answer answer = {0};

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        get_once(&options, url(cases[i].path), &answer);
        cr_assert_eq(answer.status, 200, "%s", answer.error);
        cr_assert_eq(answer.max_age_s, cases[i].max_age_s, "%s: %ld", cases[i].path,
                     answer.max_age_s);
    }
    http_answer_free(&answer);
}

Test(http_client, host_and_port_of_a_url_are_told)
{
    static const struct {
        const char *url;
        const char *authority; /* NULL = refused */
    } cases[] = {
        {"https://IdP.Example.com/x", "idp.example.com:443"},
        {"http://idp.example.com", "idp.example.com:80"},
        {"https://127.0.0.1:8443/", "127.0.0.1:8443"},
        {"https://[::1]:8443/a?b", "[::1]:8443"},
        {"https://user@idp.example.com/", NULL},
        {"no url", NULL},
        {"", NULL},
    };
    char text[64];

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        bool good = http_url_authority(cases[i].url, text, sizeof(text));
        cr_assert_eq(good, cases[i].authority != NULL, "%s", cases[i].url);
        if (good) {
            cr_assert_str_eq(text, cases[i].authority);
        }
    }
    cr_assert_not(http_url_authority("https://idp.example.com/", text, 10), "it does not fit");
}
