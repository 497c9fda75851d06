/* The settings that a server sends: whatever they say, what comes out is within its bounds. */
#include <string.h>

#include "agent/settings.h"
#include "tests/fuzz/fuzz.h"

static void check_command(const struct own_check *check)
{
    FUZZ_CHECK(check->words.len > 0 && check->words.ptr[check->words.len - 1] == '\0');
    FUZZ_CHECK(check->word_count <= SETTINGS_WORDS_MAX);
    FUZZ_CHECK(check->word_count == 0 || check->words.ptr[0] == '/');
    FUZZ_CHECK(check->timeout_seconds >= 1 && check->timeout_seconds <= check->interval_seconds);
    FUZZ_CHECK(check->output_bytes >= 256 && check->output_bytes <= 16384);
    FUZZ_CHECK(check->raise_after >= 1 && check->clear_after >= 1);
}

static void check_all(const struct settings *settings)
{
    FUZZ_CHECK(settings->off_count <= SETTINGS_OFF_MAX);
    FUZZ_CHECK(settings->check_count <= SETTINGS_CHECKS_MAX);
    FUZZ_CHECK(settings->expected_gpus >= -1 && settings->expected_gpus <= 64);
    FUZZ_CHECK(strlen(settings->expected_ports) < SETTINGS_PORTS_CAP);
    FUZZ_CHECK(strlen(settings->version) == SETTINGS_VERSION_CAP - 1);
    for (size_t i = 0; i < settings->check_count; i++) {
        const struct own_check *check = &settings->checks[i];

        FUZZ_CHECK(settings_find(settings, check->id) == check);
        FUZZ_CHECK(check->action == ACTION_NONE || check->severity == SEVERITY_CRITICAL);
        if (check->is_command) {
            check_command(check);
        } else {
            FUZZ_CHECK(check->metric < METRIC_COUNT);
        }
    }
    for (size_t i = 0; i < state_row_count; i++) {
        unsigned raise = settings_raise(settings, &state_rows[i]);

        FUZZ_CHECK(raise >= 1 && raise <= 200);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct settings first;
    static struct settings second;
    struct str text = {(const char *)data, size};
    struct str half = {(const char *)data, size / 2};

    if (settings_read(text, NULL, &first)) {
        check_all(&first);
    }
    /* What cannot be used of the next stays as it was. */
    if (settings_read(size % 2 == 0 ? text : half, &first, &second)) {
        check_all(&second);
    }
    settings_free(&first);
    settings_free(&second);
    return 0;
}
