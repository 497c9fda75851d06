/* What `muster login` keeps: a token for each server, in the person's own folder. */
#include "cli/store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/http_client.h"

#define FILE_MAX 65536

static bool find_folder(char *path, size_t cap)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int len = -1;
    if (config != NULL && config[0] == '/') {
        len = snprintf(path, cap, "%s/muster", config);
    } else if (home != NULL && home[0] == '/') {
        len = snprintf(path, cap, "%s/.config/muster", home);
    }
    return len > 0 && (size_t)len < cap;
}

/* The name is a hash: an address may hold what a file name may not. */
static bool find_file(const char *server, char path[PATH_MAX])
{
    char folder[PATH_MAX - 128];
    char authority[512];
    char key[560];
    uint8_t hash[SHA256_LEN];
    char name[2 * SHA256_LEN + 1];
    if (!find_folder(folder, sizeof(folder)) ||
        !http_url_authority(server, authority, sizeof(authority))) {
        return false;
    }
    (void)snprintf(key, sizeof(key), "%s://%s",
                   strncasecmp(server, "https:", 6) == 0 ? "https" : "http", authority);
    crypto_sha256(str_of(key), hash);
    for (size_t i = 0; i < SHA256_LEN; i++) {
        (void)snprintf(name + 2 * i, 3, "%02x", hash[i]);
    }
    (void)snprintf(path, PATH_MAX, "%s/%s.json", folder, name);
    return true;
}

bool store_put(const char *server, const json_t *signed_in)
{
    char path[PATH_MAX];
    char folder[PATH_MAX - 128];
    if (!find_file(server, path) || !find_folder(folder, sizeof(folder))) {
        (void)fprintf(stderr, "muster: there is no home folder to keep the token in\n");
        return false;
    }
    json_t *kept = json_deep_copy(signed_in);
    (void)json_object_set_new(kept, "server", json_string(server));
    char *text = json_dumps(kept, JSON_INDENT(2));
    json_decref(kept);
    int failed = file_make_dirs(folder, 0700);
    if (failed == 0) {
        failed = file_write_durable(path, str_of(text), 0600);
    }
    if (text != NULL) {
        explicit_bzero(text, strlen(text));
    }
    free(text);
    if (failed != 0) {
        (void)fprintf(stderr, "muster: %s cannot be written: %s\n", path, strerror(failed));
    }
    return failed == 0;
}

json_t *store_get(const char *server)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    if (!find_file(server, path) || file_read(path, FILE_MAX, &data) != 0) {
        return NULL;
    }
    json_t *kept = json_loadb(data.ptr, data.len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_string(json_object_get(kept, "access_token"))) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}

void store_drop(const char *server)
{
    char path[PATH_MAX];
    if (find_file(server, path)) {
        (void)unlink(path);
    }
}
