/* The console's files, read into memory at start and served from there, and the fixed answer of
 * /healthz. */
#include "server/static.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/map.h"
#include "server/encoding.h"
#include "server/exchange.h"
#include "server/metrics.h"

#define FILE_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define FILES_MAX 2000
#define DEPTH_MAX 8
#define PATH_MAX_BYTES 1024
/* The console's policy: nothing from elsewhere, nothing inline. */
#define PAGE_CSP                                                                      \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " \
    "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; "  \
    "form-action 'self'"

enum variant { VARIANT_PLAIN, VARIANT_BR, VARIANT_GZIP, VARIANT_COUNT };

struct file {
    char path[PATH_MAX_BYTES]; /* as in the address: "/assets/x.js" */
    struct buf bodies[VARIANT_COUNT];
    char etag[24];
};

struct files {
    struct file **items;
    size_t count;
};

/* ------------------------------------------------------------------ reading the folder */

static struct file *add_file(struct files *files, const char *path)
{
    if (files->count >= FILES_MAX) {
        return NULL;
    }
    struct file **items = reallocarray(files->items, files->count + 1, sizeof(struct file *));
    struct file *file = calloc(1, sizeof(*file));
    if (items == NULL || file == NULL) {
        abort();
    }
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    files->items = items;
    files->items[files->count++] = file;
    return file;
}

static void make_etag(struct file *file)
{
    uint8_t hash[SHA256_LEN];
    char hex[17];
    crypto_sha256(buf_str(&file->bodies[VARIANT_PLAIN]), hash);
    crypto_hex(hash, 8, hex);
    (void)snprintf(file->etag, sizeof(file->etag), "\"%s\"", hex);
}

/* The variant beside a file, when it is there and smaller. */
static void read_variant(struct file *file, const char *path, enum variant variant)
{
    static const char *const suffixes[VARIANT_COUNT] = {"", ".br", ".gz"};
    char name[2 * PATH_MAX_BYTES];
    struct buf *body = &file->bodies[variant];
    (void)snprintf(name, sizeof(name), "%s%s", path, suffixes[variant]);
    if (file_read(name, FILE_MAX_BYTES, body) != 0 ||
        body->len >= file->bodies[VARIANT_PLAIN].len) {
        buf_free(body);
    }
}

static bool is_variant(struct str path)
{
    return str_ends(path, STR(".br")) || str_ends(path, STR(".gz"));
}

static bool take_file(struct files *files, const char *path, const char *address, char *error,
                      size_t error_cap)
{
    struct file *file;
    if (is_variant(str_of(address))) {
        return true;
    }
    file = add_file(files, address);
    int failed = file == NULL ? EMFILE : file_read(path, FILE_MAX_BYTES, &file->bodies[0]);
    if (failed != 0) {
        (void)snprintf(error, error_cap, "web_dir: %.200s cannot be read: %s", path,
                       strerrordesc_np(failed));
        return false;
    }
    make_etag(file);
    read_variant(file, path, VARIANT_BR);
    read_variant(file, path, VARIANT_GZIP);
    return true;
}

static bool read_folder(struct files *files, const char *dir, const char *address, int depth,
                        char *error, size_t error_cap)
{
    DIR *folder = opendir(dir);
    if (folder == NULL) {
        (void)snprintf(error, error_cap, "web_dir: %.200s cannot be read: %s", dir,
                       strerrordesc_np(errno));
        return false;
    }
    bool good = true;
    for (struct dirent *entry = readdir(folder); good && entry != NULL; entry = readdir(folder)) {
        char path[PATH_MAX_BYTES];
        char below[PATH_MAX_BYTES];
        struct stat info;
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path) ||
            snprintf(below, sizeof(below), "%s/%s", address, entry->d_name) >= (int)sizeof(below) ||
            stat(path, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
            good = read_folder(files, path, below, depth + 1, error, error_cap);
        } else if (S_ISREG(info.st_mode)) {
            good = take_file(files, path, below, error, error_cap);
        }
    }
    (void)closedir(folder);
    return good;
}

struct files *files_load(const char *dir, char *error, size_t error_cap)
{
    struct files *files = calloc(1, sizeof(*files));
    if (files == NULL) {
        abort();
    }
    if (dir[0] != '\0' && !read_folder(files, dir, "", 0, error, error_cap)) {
        files_free(files);
        return NULL;
    }
    return files;
}

void files_free(struct files *files)
{
    if (files == NULL) {
        return;
    }
    for (size_t i = 0; i < files->count; i++) {
        for (size_t variant = 0; variant < VARIANT_COUNT; variant++) {
            buf_free(&files->items[i]->bodies[variant]);
        }
        free(files->items[i]);
    }
    free(files->items);
    free(files);
}

/* ------------------------------------------------------------------ ready responses */

struct page {
    struct MHD_Response *responses[VARIANT_COUNT]; /* NULL = there is no such variant */
    struct MHD_Response *unchanged;                /* 304 */
    const char *etag;
};

struct pages {
    struct map *by_path;
    const struct page *index;
};

static void free_page(void *value)
{
    struct page *page = value;
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        if (page->responses[i] != NULL) {
            respond_free(page->responses[i]);
        }
    }
    if (page->unchanged != NULL) {
        respond_free(page->unchanged);
    }
    free(page);
}

static const char *type_of(struct str path)
{
    static const struct {
        const char *suffix;
        const char *type;
    } rows[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".json", "application/json"},
        {".map", "application/json"},
        {".webmanifest", "application/manifest+json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".woff2", "font/woff2"},
        {".txt", "text/plain; charset=utf-8"},
        {".wasm", "application/wasm"},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if (str_ends(path, str_of(rows[i].suffix))) {
            return rows[i].type;
        }
    }
    return "application/octet-stream";
}

static struct page *make_page(const struct file *file, bool tls)
{
    static const char *const codings[VARIANT_COUNT] = {NULL, "br", "gzip"};
    struct str path = str_of(file->path);
    struct page *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        abort();
    }
    /* The build names its assets by their content. */
    const char *cache =
        str_starts(path, STR("/assets/")) ? "public, max-age=31536000, immutable" : "no-cache";
    struct ready_header headers[10] = {
        {"ETag", file->etag},
        {"Cache-Control", cache},
        {"Vary", "Accept-Encoding"},
        {"Content-Security-Policy", PAGE_CSP},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    size_t count = 6;
    if (tls) {
        headers[count++] = (struct ready_header){"Strict-Transport-Security", "max-age=31536000"};
    }
    page->etag = file->etag;
    page->unchanged = respond_make(STR(""), headers, count);
    headers[count++] = (struct ready_header){"Content-Type", type_of(path)};
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        if (i != VARIANT_PLAIN && file->bodies[i].ptr == NULL) {
            continue;
        }
        headers[count] = (struct ready_header){"Content-Encoding", codings[i]};
        page->responses[i] =
            respond_make(buf_str(&file->bodies[i]), headers, count + (i != VARIANT_PLAIN));
    }
    return page;
}

/* The oldest probe of all: answered before routes, callers and the database. */
static struct page *make_health_page(void)
{
    static const struct ready_header headers[] = {{"Content-Type", "text/plain; charset=utf-8"},
                                                  {"Cache-Control", "no-store"}};
    struct page *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        abort();
    }
    page->responses[VARIANT_PLAIN] = respond_make(STR("ok\n"), headers, COUNTOF(headers));
    return page;
}

/* Keys of a map are short: a longer path of a file goes by its hash. */
static struct str key_of(struct str path, uint8_t hash[SHA256_LEN])
{
    if (path.len <= SHA256_LEN) {
        return path;
    }
    crypto_sha256(path, hash);
    return (struct str){(const char *)hash, SHA256_LEN};
}

static void add_page(struct pages *pages, struct str path, struct page *page)
{
    uint8_t hash[SHA256_LEN];
    map_put(pages->by_path, key_of(path, hash), page);
}

void static_attach(struct loop *loop, const struct files *files, bool tls)
{
    struct pages *pages = calloc(1, sizeof(*pages));
    if (pages == NULL) {
        abort();
    }
    pages->by_path = map_new(free_page);
    for (size_t i = 0; i < files->count; i++) {
        struct page *page = make_page(files->items[i], tls);
        add_page(pages, str_of(files->items[i]->path), page);
        if (strcmp(files->items[i]->path, "/index.html") == 0) {
            pages->index = page;
        }
    }
    add_page(pages, STR("/healthz"), make_health_page());
    loop_slot_set(loop, LOOP_SLOT_STATIC, pages);
}

void static_detach(struct loop *loop)
{
    struct pages *pages = loop_slot(loop, LOOP_SLOT_STATIC);
    if (pages != NULL) {
        map_free(pages->by_path);
        free(pages);
        loop_slot_set(loop, LOOP_SLOT_STATIC, NULL);
    }
}

/* ------------------------------------------------------------------ serving */

static bool has_extension(struct str path)
{
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/') {
        at--;
        if (path.ptr[at] == '.') {
            return true;
        }
    }
    return false;
}

/* Addresses that are never a page of the console. */
static bool is_service_path(struct str path)
{
    static const char *const prefixes[] = {"/api/",      "/agent/", "/auth/",       "/downloads/",
                                           "/problems/", "/v1/",    "/.well-known/"};
    static const char *const whole[] = {"/api",      "/agent", "/auth",   "/downloads",
                                        "/problems", "/v1",    "/readyz", "/metrics"};
    for (size_t i = 0; i < COUNTOF(prefixes); i++) {
        if (str_starts(path, str_of(prefixes[i]))) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNTOF(whole); i++) {
        if (str_eq_c(path, whole[i])) {
            return true;
        }
    }
    return false;
}

static const struct page *find_page(const struct pages *pages, struct str path)
{
    uint8_t hash[SHA256_LEN];
    if (is_service_path(path)) {
        return NULL;
    }
    const struct page *page = map_get(pages->by_path, key_of(path, hash));
    if (page != NULL) {
        return page;
    }
    /* The console's own paths: its router reads the address. */
    return has_extension(path) ? NULL : pages->index;
}

static enum variant choose_variant(const struct exchange *ex, const struct page *page)
{
    if (page->responses[VARIANT_BR] == NULL && page->responses[VARIANT_GZIP] == NULL) {
        return VARIANT_PLAIN;
    }
    enum encoding encoding = encoding_choose(ex->headers[HEADER_ACCEPT_ENCODING]);
    enum variant variant = encoding == ENCODING_BR     ? VARIANT_BR
                           : encoding == ENCODING_GZIP ? VARIANT_GZIP
                                                       : VARIANT_PLAIN;
    return page->responses[variant] != NULL ? variant : VARIANT_PLAIN;
}

bool exchange_serve_file(struct exchange *ex)
{
    const struct pages *pages = loop_slot(ex->rq.loop, LOOP_SLOT_STATIC);
    const struct page *page = find_page(pages, ex->rq.path);
    if (page == NULL || ex->body_expected) {
        return false;
    }
    ex->route_index = METRIC_ROUTE_FILE;
    struct str known = ex->headers[HEADER_IF_NONE_MATCH];
    if (page->etag != NULL && known.ptr != NULL && str_find(known, str_of(page->etag), 0) >= 0) {
        ex->ready = page->unchanged;
        ex->rq.status = 304;
    } else {
        ex->ready = page->responses[choose_variant(ex, page)];
        ex->rq.status = 200;
    }
    return true;
}
