/* Promises of base/log.h. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* What was written to standard error since capture_begin, in a static buffer. */
static int capture_pipe[2];
static int real_stderr;

static void capture_begin(void)
{
    (void)fflush(stderr);
    cr_assert_eq(pipe2(capture_pipe, O_CLOEXEC), 0);
    real_stderr = dup(STDERR_FILENO);
    cr_assert_neq(dup2(capture_pipe[1], STDERR_FILENO), -1);
    (void)close(capture_pipe[1]);
}

static const char *capture_end(void)
{
    static char text[64 * 1024];
    size_t used = 0;
    ssize_t got;

    cr_assert_neq(dup2(real_stderr, STDERR_FILENO), -1);
    (void)close(real_stderr);
    while ((got = read(capture_pipe[0], text + used, sizeof(text) - 1 - used)) > 0) {
        used += (size_t)got;
    }
    (void)close(capture_pipe[0]);
    text[used] = '\0';
    return text;
}

Test(log, a_line_is_one_json_object_with_its_context)
{
    json_t *line;

    clock_test_set(1796126400123456);
    log_setup("musterd", LOG_INFO, true);
    log_context("req-1", "org-1");
    capture_begin();
    log_warning("node \"%s\" is\nsilent", "gpu-1");
    line = json_loads(capture_end(), 0, NULL);
    cr_assert_not_null(line);
    cr_assert_str_eq(json_string_value(json_object_get(line, "at")), "2026-12-01T12:00:00.123456Z");
    cr_assert_str_eq(json_string_value(json_object_get(line, "level")), "warning");
    cr_assert_str_eq(json_string_value(json_object_get(line, "program")), "musterd");
    cr_assert_str_eq(json_string_value(json_object_get(line, "request_id")), "req-1");
    cr_assert_str_eq(json_string_value(json_object_get(line, "org_id")), "org-1");
    cr_assert_str_eq(json_string_value(json_object_get(line, "message")),
                     "node \"gpu-1\" is\nsilent");
    json_decref(line);
}

Test(log, plain_text_has_time_level_and_message)
{
    clock_test_set(1796126400123456);
    log_setup("musterd", LOG_DEBUG, false);
    capture_begin();
    log_debug("ready");
    cr_assert_str_eq(capture_end(), "12:00:00 debug   ready\n");
}

Test(log, what_could_forge_or_reorder_a_line_is_escaped)
{
    static const struct {
        const char *text;
        const char *plain;
        const char *json;
    } cases[] = {
        {"a\nb", "a\\nb", "a\\nb"},
        {"a\rb\tc", "a\\rb\\tc", "a\\rb\\tc"},
        {"\x1b[31m", "\\u001b[31m", "\\u001b[31m"},
        {"\x7f", "\\u007f", "\\u007f"},
        {"\xc2\x9b", "\\u009b", "\\u009b"},
        {"\xe2\x80\xaa\xe2\x80\xae", "\\u202a\\u202e", "\\u202a\\u202e"},
        {"\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069", "\\u2066\\u2069"},
        {"\xff\xc3", "\\xff\\xc3", "\\ufffd\\ufffd"},
        {"\xc3\xa4 \"q\" \\", "\xc3\xa4 \"q\" \\", "\xc3\xa4 \\\"q\\\" \\\\"},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        char expected[128];
        const char *written;

        log_setup("p", LOG_INFO, false);
        capture_begin();
        log_info("%s", cases[i].text);
        written = capture_end();
        (void)snprintf(expected, sizeof(expected), "info    %s\n", cases[i].plain);
        cr_assert_not_null(strstr(written, expected), "case %zu: %s", i, written);

        log_setup("p", LOG_INFO, true);
        capture_begin();
        log_info("%s", cases[i].text);
        written = capture_end();
        (void)snprintf(expected, sizeof(expected), "\"message\":\"%s\"}\n", cases[i].json);
        cr_assert_not_null(strstr(written, expected), "case %zu: %s", i, written);
    }
}

Test(log, a_long_line_is_cut_at_4_kib_and_stays_json)
{
    static char text[10000];
    const char *written;
    json_t *line;

    memset(text, '\x01', sizeof(text) - 1);
    log_setup("p", LOG_INFO, true);
    capture_begin();
    log_info("%s", text);
    written = capture_end();
    cr_assert_leq(strlen(written), 4096);
    cr_assert_gt(strlen(written), 4000);
    line = json_loads(written, 0, NULL);
    cr_assert_not_null(line, "%s", written + strlen(written) - 40);
    json_decref(line);
}

Test(log, a_level_under_the_lowest_writes_nothing)
{
    log_setup("p", LOG_WARNING, true);
    capture_begin();
    log_info("quiet");
    cr_assert_str_eq(capture_end(), "");
}

Test(log, errno_is_kept)
{
    log_setup("p", LOG_INFO, true);
    capture_begin();
    errno = EXDEV;
    log_info("x");
    cr_assert_eq(errno, EXDEV);
    (void)capture_end();
}

static void *write_many(void *arg)
{
    log_context(arg, NULL);
    for (int i = 0; i < 50; i++) {
        log_info("%0*d", 200, i);
    }
    return NULL;
}

Test(log, lines_of_two_threads_do_not_mix)
{
    pthread_t threads[2];
    static char ids[2][8] = {"one", "two"};
    int lines[2] = {0, 0};
    char *rest;
    char *at;

    log_setup("p", LOG_INFO, true);
    capture_begin();
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, write_many, ids[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
    rest = strdup(capture_end());
    at = rest;
    for (char *end = strchr(at, '\n'); end != NULL; at = end + 1, end = strchr(at, '\n')) {
        json_t *line;

        *end = '\0';
        line = json_loads(at, 0, NULL);
        cr_assert_not_null(line, "%s", at);
        lines[strcmp(json_string_value(json_object_get(line, "request_id")), "two") == 0]++;
        json_decref(line);
    }
    cr_assert_eq(lines[0], 50);
    cr_assert_eq(lines[1], 50);
    free(rest);
}

Test(log, levels_are_known_by_name)
{
    enum log_level level = LOG_ERROR;

    cr_assert(log_level_parse("debug", &level));
    cr_assert_eq(level, LOG_DEBUG);
    cr_assert_not(log_level_parse("DEBUG", &level));
    cr_assert_not(log_level_parse("", &level));
}
