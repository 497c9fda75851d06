/* Promises of `muster-agent classify`: every case of the corpus, and input that is none. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent/classify/classify.h"
#include "base/file.h"

#define FIXTURE SOURCE_ROOT "/tests/fixtures/detection_cases.jsonl"
/* The corpus that the fixture is made from, where it lies beside the project. */
#define CORPUS SOURCE_ROOT "/../shared/detection/cases.jsonl"

static const char *const compared[] = {"check",      "code",  "gpu",    "severity", "action",
                                       "node_fault", "count", "clears", "deferred"};

/* Runs one case; what it says as an array of objects. */
static json_t *run_case(json_t *item)
{
    CLEANUP(buf_free) struct buf out = {0};
    json_t *context = json_object_get(item, "context");
    char *text = context != NULL ? json_dumps(context, JSON_COMPACT) : NULL;
    const char *error = NULL;
    json_t *found = json_array();
    struct str line;

    cr_assert(classify_run(str_of(json_string_value(json_object_get(item, "source"))), str_of(text),
                           str_of(json_string_value(json_object_get(item, "input"))), &out, &error),
              "%s", error);
    free(text);
    struct str rest = buf_str(&out);
    while (str_split(&rest, '\n', &line)) {
        json_t *object = json_loadb(line.ptr, line.len, JSON_DECODE_ANY, NULL);

        cr_assert_not_null(object, "not JSON: %.*s", STR_FMT(line));
        json_array_append_new(found, object);
    }
    return found;
}

static size_t check_case(json_t *item)
{
    const char *id = json_string_value(json_object_get(item, "id"));
    json_t *expect = json_object_get(item, "expect");
    json_t *found = run_case(item);
    size_t wrong = 0;

    if (strcmp(json_string_value(json_object_get(expect, "check")), "none") == 0) {
        wrong = json_array_size(found);
    } else if (json_array_size(found) != 1) {
        wrong = 1;
    } else {
        json_t *finding = json_array_get(found, 0);

        for (size_t i = 0; i < COUNTOF(compared); i++) {
            json_t *wanted = json_object_get(expect, compared[i]);

            wrong += wanted != NULL && !json_equal(wanted, json_object_get(finding, compared[i]));
        }
    }
    if (wrong > 0) {
        char *text = json_dumps(found, JSON_COMPACT);

        cr_log_error("%s: %s", id, text);
        free(text);
    }
    json_decref(found);
    return wrong > 0;
}

static void check_file(const char *path, size_t at_least)
{
    CLEANUP(buf_free) struct buf data = {0};
    size_t count = 0;
    size_t wrong = 0;
    struct str line;

    cr_assert_eq(file_read(path, (size_t)4 << 20, &data), 0, "%s", path);
    struct str rest = buf_str(&data);
    while (str_split(&rest, '\n', &line)) {
        json_t *item = json_loadb(line.ptr, line.len, 0, NULL);

        cr_assert_not_null(item);
        wrong += check_case(item);
        count++;
        json_decref(item);
    }
    cr_assert_geq(count, at_least);
    cr_assert_eq(wrong, 0, "%zu of %zu cases are wrong", wrong, count);
}

Test(classify, every_case_of_the_fixture_is_judged_right)
{
    check_file(FIXTURE, 139);
}

Test(classify, every_case_of_the_corpus_is_judged_right)
{
    CLEANUP(buf_free) struct buf data = {0};

    if (file_read(CORPUS, (size_t)4 << 20, &data) != 0) {
        cr_skip_test("../shared/detection/cases.jsonl is not there");
    }
    check_file(CORPUS, 139);
}

static size_t count_lines(const char *source, const char *context, const char *input)
{
    CLEANUP(buf_free) struct buf out = {0};
    const char *error = NULL;
    size_t count = 0;

    cr_assert(classify_run(str_of(source), str_of(context), str_of(input), &out, &error), "%s",
              error);
    for (size_t i = 0; i < out.len; i++) {
        count += out.ptr[i] == '\n';
    }
    return count;
}

Test(classify, every_source_takes_empty_and_foreign_input_without_a_word)
{
    for (size_t i = 0; i < classify_source_count; i++) {
        const char *name = classify_sources[i].name;

        cr_assert_eq(count_lines(name, "", ""), 0, "%s", name);
        cr_assert_eq(count_lines(name, "{}", "\n\n\n"), 0, "%s", name);
        if (strcmp(name, "slurm") != 0) {
            /* Slurm's reasons are free text: what nobody knows was written by a person. */
            cr_assert_eq(count_lines(name, "{}", "The quick brown fox jumps over the lazy dog.\n"),
                         0, "%s", name);
        }
    }
}

Test(classify, a_context_that_is_no_object_is_refused)
{
    CLEANUP(buf_free) struct buf out = {0};
    const char *error = NULL;

    cr_assert_not(classify_run(STR("kmsg"), STR("[1]"), STR("x"), &out, &error));
    cr_assert_not(classify_run(STR("kmsg"), STR("{\"last_seq\": 1.5}"), STR("x"), &out, &error));
    cr_assert(classify_run(STR("kmsg"), STR("{\"unknown\": {\"a\": [1]}, \"last_seq\": 3}"),
                           STR("x"), &out, &error));
    cr_assert_not(classify_run(STR("no such"), STR(""), STR("x"), &out, &error));
}

Test(classify, two_gpus_are_two_incidents)
{
    cr_assert_eq(count_lines("kmsg", "",
                             "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
                             "NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus.\n"),
                 2);
}

Test(classify, a_process_that_writes_to_the_kernels_log_is_not_the_kernel)
{
    cr_assert_eq(
        count_lines("kmsg", "",
                    "12,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"),
        0);
    cr_assert_eq(
        count_lines("journald", "",
                    "{\"_TRANSPORT\":\"syslog\",\"SYSLOG_IDENTIFIER\":\"kernel\",\"MESSAGE\":"
                    "\"NVRM: Xid (PCI:0000:3b:00): 79, x\"}\n"),
        0);
}

Test(classify, a_message_in_bytes_is_read_too)
{
    cr_assert_eq(
        count_lines(
            "journald", "",
            "{\"_TRANSPORT\":\"kernel\",\"MESSAGE\":[78,86,82,77,58,32,88,105,100,32,40,80,67,"
            "73,58,48,48,48,48,58,51,98,58,48,48,41,58,32,55,57,44,32,255]}\n"),
        1);
}
