/* Promises of base/config.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/file.h"

static const char *listen_address;
static int64_t report_s;
static bool verbose;
static const char *password;
static const char *ca_file;

static const struct config_key keys[] = {
    {"listen_address", CONFIG_STR, &listen_address, "127.0.0.1:8080", 1, 64, "Where to listen."},
    {"report_s", CONFIG_I64, &report_s, "10", 1, 3600, "Seconds between reports."},
    {"verbose", CONFIG_BOOL, &verbose, "no", 0, 0, "Say more."},
    {"password", CONFIG_SECRET, &password, "", 0, 0, "Kept out of every print."},
    {"ca_file", CONFIG_STR, &ca_file, NULL, 0, 0, NULL},
};

static char path[64];
static char error[200];

static void begin(void)
{
    int fd;

    (void)snprintf(path, sizeof(path), "/tmp/muster-test-XXXXXX");
    fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    (void)close(fd);
}

static void end(void)
{
    (void)unlink(path);
}

TestSuite(config, .init = begin, .fini = end);

static bool load_words(struct str file, int argc, const char *const *argv)
{
    char *copies[8] = {NULL};
    struct config_source source = {.file = path, .argc = argc, .argv = copies};
    bool loaded;

    cr_assert_leq((size_t)argc, COUNTOF(copies));
    for (int i = 0; i < argc; i++) {
        copies[i] = strdup(argv[i]);
    }
    cr_assert_eq(file_write_durable(path, file, 0600), 0);
    loaded = config_load(keys, COUNTOF(keys), &source, error, sizeof(error));
    for (int i = 0; i < argc; i++) {
        free(copies[i]);
    }
    return loaded;
}

static bool load(struct str file)
{
    return load_words(file, 0, NULL);
}

Test(config, without_sources_the_built_in_values_hold)
{
    struct config_source source = {.file = "/nonexistent/muster.conf"};

    cr_assert(config_load(keys, COUNTOF(keys), &source, error, sizeof(error)), "%s", error);
    cr_assert_str_eq(listen_address, "127.0.0.1:8080");
    cr_assert_eq(report_s, 10);
    cr_assert_not(verbose);
    cr_assert_str_eq(password, "");
    cr_assert_null(ca_file);
}

Test(config, a_file_that_must_exist_is_named_when_missing)
{
    struct config_source source = {.file = "/nonexistent/muster.conf", .must_exist = true};

    cr_assert_not(config_load(keys, COUNTOF(keys), &source, error, sizeof(error)));
    cr_assert_not_null(strstr(error, "/nonexistent/muster.conf"));
}

Test(config, the_file_is_read_with_comments_and_spaces)
{
    cr_assert(
        load(STR("# comment\n\n  report_s=20  \r\nlisten_address =  a#b = c \n\tverbose = on")),
        "%s", error);
    cr_assert_eq(report_s, 20);
    cr_assert_str_eq(listen_address, "a#b = c");
    cr_assert(verbose);
}

Test(config, options_win_over_environment_and_that_over_the_file)
{
    const char *argv[] = {"--report-s", "40", "--ca_file=x=y", "--verbose", "--", "anything"};

    cr_assert_eq(setenv("MUSTER_REPORT_S", "30", 1), 0);
    cr_assert_eq(setenv("MUSTER_PASSWORD", "from env", 1), 0);
    cr_assert(load_words(STR("report_s = 20\npassword = from file\n"), COUNTOF(argv), argv), "%s",
              error);
    cr_assert_eq(report_s, 40);
    cr_assert_str_eq(password, "from env");
    cr_assert_str_eq(ca_file, "x=y");
    cr_assert(verbose);
}

Test(config, an_unknown_key_is_refused_by_name_and_place)
{
    const char *argv[] = {"--wrong", "1"};

    cr_assert_not(load(STR("report_s = 20\n\nreport_sec = 5\n")));
    cr_assert_not_null(strstr(error, ":3:"), "%s", error);
    cr_assert_not_null(strstr(error, "report_sec"), "%s", error);
    cr_assert_not(load_words(STR(""), 2, argv));
    cr_assert_not_null(strstr(error, "--wrong"), "%s", error);
    cr_assert_eq(setenv("MUSTER_REPORT_SEC", "5", 1), 0);
    cr_assert_not(load(STR("")));
    cr_assert_not_null(strstr(error, "MUSTER_REPORT_SEC"), "%s", error);
}

Test(config, a_variable_of_another_program_may_be_named_as_foreign)
{
    static const char *const foreign[] = {"MUSTER_OTHER", NULL};
    struct config_source source = {.file = path, .foreign = foreign};

    cr_assert_eq(setenv("MUSTER_OTHER", "1", 1), 0);
    cr_assert(config_load(keys, COUNTOF(keys), &source, error, sizeof(error)), "%s", error);
}

Test(config, a_lower_case_variable_is_not_a_second_spelling)
{
    cr_assert_eq(setenv("MUSTER_report_s", "5", 1), 0);
    cr_assert_not(load(STR("")));
    cr_assert_not_null(strstr(error, "MUSTER_report_s"), "%s", error);
}

Test(config, bad_values_are_refused_with_key_and_place)
{
    static const struct {
        const char *file;
        const char *word;
    } cases[] = {
        {"report_s = 0", "report_s"},         {"report_s = 3601", "3600"},
        {"report_s = ten", "report_s"},       {"report_s =", "report_s"},
        {"verbose = maybe", "verbose"},       {"listen_address =", "listen_address"},
        {"just words", "key = value"},        {"= 5", "no key"},
        {"report_s = 1\nreport_s = 2", ":2"}, {"password = \xff", "UTF-8"},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_not(load(str_of(cases[i].file)), "%s", cases[i].file);
        cr_assert_not_null(strstr(error, cases[i].word), "%s gave %s", cases[i].file, error);
        cr_assert_not_null(strstr(error, path), "%s", error);
    }
    cr_assert_not(load(STR("password = a\0b")));
}

Test(config, a_refusal_changes_no_value)
{
    cr_assert(load(STR("report_s = 20")));
    cr_assert_not(load(STR("report_s = 30\nverbose = maybe")));
    cr_assert_eq(report_s, 20);
}

Test(config, words_that_are_no_options_are_refused)
{
    static const char *const bad[][2] = {
        {"serve", NULL}, {"-v", NULL}, {"--report-s", NULL}, {"--=5", NULL}};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_not(load_words(STR(""), 1, bad[i]), "%s", bad[i][0]);
        cr_assert_gt(strlen(error), 0);
    }
}

Test(config, a_bool_option_may_stand_alone_or_take_a_value)
{
    const char *alone[] = {"--verbose", "--report-s", "5"};
    const char *off[] = {"--verbose", "off"};
    const char *bad[] = {"--verbose", "words"};

    cr_assert(load_words(STR(""), 3, alone), "%s", error);
    cr_assert(verbose);
    cr_assert_eq(report_s, 5);
    cr_assert(load_words(STR(""), 2, off), "%s", error);
    cr_assert_not(verbose);
    cr_assert_not(load_words(STR(""), 2, bad));
}

Test(config, a_secret_is_never_shown)
{
    CLEANUP(buf_free) struct buf shown = {0};

    cr_assert(load(STR("password = hunter2\nreport_s = 7")));
    config_show(keys, COUNTOF(keys), &shown);
    cr_assert_null(strstr(shown.ptr, "hunter2"));
    cr_assert_not_null(strstr(shown.ptr, "password = ******\n"));
    cr_assert_not_null(strstr(shown.ptr, "# Seconds between reports.\nreport_s = 7\n"));
    cr_assert_not(load(STR("password = hunter2\xff")));
    cr_assert_null(strstr(error, "hunter2"), "nor is it in an error");
}

Test(config, what_is_shown_can_be_loaded_again)
{
    CLEANUP(buf_free) struct buf shown = {0};

    cr_assert(load(STR("report_s = 7\nverbose = yes\nlisten_address = [::1]:80")));
    config_show(keys, COUNTOF(keys), &shown);
    cr_assert(load(buf_str(&shown)), "%s", error);
    cr_assert_eq(report_s, 7);
    cr_assert(verbose);
    cr_assert_str_eq(listen_address, "[::1]:80");
}

Test(config, a_long_name_fits_into_the_error)
{
    static char line[5000];
    const char *argv[] = {line};

    memset(line, 'x', sizeof(line) - 1);
    line[0] = '-';
    line[1] = '-';
    cr_assert_not(load_words(STR(""), 1, argv));
    line[4000] = '=';
    cr_assert_not(load((struct str){line, sizeof(line) - 1}));
    cr_assert_lt(strlen(error), sizeof(error));
}
