/* The API's document and the problem pages, embedded at build (api/embed_api.py). */
#ifndef SERVER_API_DATA_H
#define SERVER_API_DATA_H

#include <stddef.h>

extern const char api_openapi[]; /* JSON */
extern const size_t api_openapi_len;

struct api_page {
    const char *slug; /* of the problem's type */
    const char *text; /* Markdown */
};
extern const struct api_page api_pages[]; /* by slug */
extern const size_t api_pages_count;

#endif
