/* `classify`: the first byte picks the source, the context ends at the first NUL, the rest is the
 * input. */
#include <string.h>

#include "agent/classify/classify.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = {0};
    struct str context = {NULL, 0};
    const char *error = NULL;
    struct str input;

    if (size < 1) {
        return 0;
    }
    const char *source = classify_sources[data[0] % classify_source_count].name;
    input = (struct str){(const char *)data + 1, size - 1};
    const char *end = memchr(input.ptr, '\0', input.len);
    if (end != NULL) {
        context = (struct str){input.ptr, (size_t)(end - input.ptr)};
        input.len -= context.len + 1;
        input.ptr = end + 1;
    }
    if (!classify_run(str_of(source), context, input, &out, &error)) {
        (void)classify_run(str_of(source), (struct str){NULL, 0}, input, &out, &error);
    }
    buf_free(&out);
    return 0;
}
