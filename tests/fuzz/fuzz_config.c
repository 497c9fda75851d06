/* Configuration: any file and any options either load within their ranges or refuse with a text. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/file.h"

/* Numbers and flags only: a text that loads is kept until exit, which would fill a fuzzer's memory.
 * Secrets take the same path as texts and are checked, then refused by their length. */
static int64_t report_s;
static bool verbose;
static const char *secret;

static const struct config_key keys[] = {
    {"report_s", CONFIG_I64, &report_s, "10", 1, 3600, "Seconds."},
    {"verbose", CONFIG_BOOL, &verbose, "no", 0, 0, "Say more."},
    {"secret", CONFIG_SECRET, &secret, NULL, 1000000, 2000000, "Never short enough."},
};

#define WORDS_MAX 6

/* Cuts the input into words at NUL bytes. */
static int cut_words(char *text, size_t size, char *words[WORDS_MAX])
{
    int count = 0;

    for (size_t at = 0; at < size && count < WORDS_MAX; at += strlen(text + at) + 1) {
        words[count++] = text + at;
    }
    return count;
}

static void load(const char *path, int argc, char **argv)
{
    struct config_source source = {.file = path, .argc = argc, .argv = argv};
    char error[120] = "untouched";

    if (config_load(keys, COUNTOF(keys), &source, error, sizeof(error))) {
        struct buf shown = {0};

        FUZZ_CHECK(report_s >= 1 && report_s <= 3600);
        FUZZ_CHECK(error[0] == '\0');
        config_show(keys, COUNTOF(keys), &shown);
        FUZZ_CHECK(strstr(shown.ptr, "report_s = ") != NULL);
        buf_free(&shown);
    } else {
        FUZZ_CHECK(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS_MAX];
    char path[32];
    char *text = malloc(size + 1);
    int fd = memfd_create("config", 0);

    FUZZ_CHECK(text != NULL && fd >= 0);
    memcpy(text, data, size);
    text[size] = '\0';
    FUZZ_CHECK(file_write_all(fd, (struct str){text, size}) == 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    load(path, 0, NULL);
    load(NULL, cut_words(text, size, words), words);
    (void)close(fd);
    free(text);
    return 0;
}
