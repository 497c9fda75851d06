/* Programs of the system: their output, their end, their deadline. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/clock.h"

static struct child_result run(const char *script, int timeout_ms, size_t max)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct child_options options = {.argv = argv, .timeout_ms = timeout_ms, .max_bytes = max};
    struct child_result result = {0};

    child_run(&options, &result);
    return result;
}

Test(child, output_and_exit_status_come_back)
{
    struct child_result result = run("echo out; echo why >&2; exit 3", 60000, 100);

    cr_assert_eq(result.end, CHILD_EXITED);
    cr_assert_eq(result.status, 3);
    cr_assert_str_eq(result.out.ptr, "out\n");
    cr_assert_str_eq(result.error, "why");
    cr_assert_not(child_ok(&result));
    child_result_free(&result);
}

Test(child, one_that_hangs_is_killed_with_all_it_started)
{
    struct child_result result = {0};
    uint64_t pid = 0;

    /* A busy machine may end it before it said anything: it gets more time then. */
    bool told = false;
    for (int limit_ms = 300; !told && limit_ms <= 30000; limit_ms *= 10) {
        child_result_free(&result);
        result = run("sleep 600 & echo $!; sleep 600", limit_ms, 100);
        cr_assert_eq(result.end, CHILD_TIMED_OUT);
        told = str_parse_u64(str_trim(buf_str(&result.out)), 1, INT32_MAX, &pid);
    }
    cr_assert(told);
    int64_t until_us = clock_mono_us() + 30000000;
    while (kill((pid_t)pid, 0) == 0 && clock_mono_us() < until_us) {
        char path[64];
        char state[256] = "";
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *file = fopen(path, "r");
        if (file == NULL || fgets(state, sizeof state, file) == NULL ||
            strstr(state, ") Z") != NULL) {
            if (file != NULL) {
                fclose(file);
            }
            break;
        }
        fclose(file);
    }
    cr_assert_lt(clock_mono_us(), until_us);
    child_result_free(&result);
}

Test(child, too_much_output_ends_it)
{
    struct child_result result = run("yes", 60000, 1000);

    cr_assert_eq(result.end, CHILD_TOO_MUCH);
    child_result_free(&result);
    result = run("printf 12345", 60000, 5);
    cr_assert(child_ok(&result));
    cr_assert_eq(result.out.len, 5);
    child_result_free(&result);
}

Test(child, a_program_that_is_not_there_surely_did_nothing)
{
    const char *argv[] = {"/nonexistent/program", NULL};
    struct child_options options = {.argv = argv, .timeout_ms = 1000, .max_bytes = 10};
    struct child_result result = {0};

    child_run(&options, &result);
    cr_assert_eq(result.end, CHILD_NOT_STARTED);
    cr_assert(strstr(result.error, "/nonexistent/program") != NULL);
    child_result_free(&result);
}

Test(child, a_signal_is_not_an_exit)
{
    struct child_result result = run("kill -9 $$", 60000, 10);

    cr_assert_eq(result.end, CHILD_KILLED);
    child_result_free(&result);
}
