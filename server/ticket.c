/* Tickets: signed texts that others carry for us, such as a link that downloads something once. */
#include "server/ticket.h"

#include <errno.h>
#include <jwt.h>
#include <limits.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "server/config.h"

#define FILE_NAME "ticket.es256.pem"
#define PEM_MAX 4096
#define ISSUER "muster"
/* In cty: libjwt 1.10 writes typ itself, always as JWT. */
#define TYPE "muster+jwt"

/* The file's text and its public half, read once; a process serves one installation. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char pem[PEM_MAX + 1];
static size_t pem_len;
static char public_pem[PEM_MAX + 1];
static size_t public_len;

static void free_ticket(jwt_t **jwt)
{
    jwt_free(*jwt);
}

static void free_bio(BIO **bio)
{
    BIO_free(*bio);
}

static void free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* A fresh P-256 key as the file's text. */
static bool make_pem(struct buf *out)
{
    CLEANUP(free_key) EVP_PKEY *key = EVP_EC_gen("P-256");
    CLEANUP(free_bio) BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    if (key == NULL || bio == NULL ||
        PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1) {
        return false;
    }
    long len = BIO_get_mem_data(bio, &text);
    if (len <= 0) {
        return false;
    }
    buf_add(out, text, (size_t)len);
    explicit_bzero(text, (size_t)len);
    return true;
}

static int read_or_make(const char *path, struct buf *data)
{
    int failed = file_read(path, PEM_MAX, data);
    if (failed == ENOENT) {
        CLEANUP(buf_free) struct buf fresh = {0};
        failed = make_pem(&fresh) ? file_create_durable(path, buf_str(&fresh), 0600) : EIO;
        /* Another replica may have been first: its key counts. */
        if (failed == 0 || failed == EEXIST) {
            failed = file_read(path, PEM_MAX, data);
        }
        if (fresh.len > 0) {
            explicit_bzero(fresh.ptr, fresh.len);
        }
    }
    return failed;
}

/* libjwt signs with the one text and checks with the other. */
static bool derive_public(const struct buf *text)
{
    char *data = NULL;
    CLEANUP(free_bio) BIO *in = BIO_new_mem_buf(text->ptr, (int)text->len);
    CLEANUP(free_bio) BIO *out = BIO_new(BIO_s_mem());
    CLEANUP(free_key)
    EVP_PKEY *key = in != NULL ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL) : NULL;
    if (key == NULL || out == NULL || PEM_write_bio_PUBKEY(out, key) != 1) {
        return false;
    }
    long len = BIO_get_mem_data(out, &data);
    if (len <= 0 || len > PEM_MAX) {
        return false;
    }
    memcpy(public_pem, data, (size_t)len);
    public_len = (size_t)len;
    return true;
}

static bool load_key(void)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    if (pem_len == 0) {
        (void)snprintf(path, sizeof path, "%.3072s/" FILE_NAME, config.keys_dir);
        int failed = read_or_make(path, &data);
        if (failed == 0 && derive_public(&data)) {
            memcpy(pem, data.ptr, data.len);
            pem_len = data.len;
            explicit_bzero(data.ptr, data.len);
        } else {
            log_error("keys_dir: %s cannot be used: %s", path,
                      failed != 0 ? strerrordesc_np(failed) : "it holds no key");
        }
    }
    pthread_mutex_unlock(&lock);
    return pem_len > 0;
}

bool ticket_sign(const struct ticket *ticket, char text[TICKET_TEXT_MAX])
{
    CLEANUP(free_ticket) jwt_t *jwt = NULL;
    char org[UUID_TEXT_LEN + 1];
    char id[UUID_TEXT_LEN + 1];
    uuid_format(&ticket->org, org);
    uuid_format(&ticket->id, id);
    if (!load_key() || jwt_new(&jwt) != 0 ||
        jwt_set_alg(jwt, JWT_ALG_ES256, (const unsigned char *)pem, (int)pem_len) != 0 ||
        jwt_add_header(jwt, "cty", TYPE) != 0 || jwt_add_grant(jwt, "iss", ISSUER) != 0 ||
        jwt_add_grant(jwt, "aud", ticket->use) != 0 || jwt_add_grant(jwt, "sub", org) != 0 ||
        jwt_add_grant(jwt, "jti", id) != 0 ||
        jwt_add_grant_int(jwt, "iat", ticket->issued_s) != 0 ||
        jwt_add_grant_int(jwt, "exp", ticket->expires_s) != 0 ||
        jwt_add_grant_int(jwt, "after", ticket->after) != 0 ||
        jwt_add_grant_int(jwt, "limit", ticket->limit) != 0) {
        log_error("a ticket could not be made");
        return false;
    }
    char *signed_text = jwt_encode_str(jwt);
    bool good = signed_text != NULL && strlen(signed_text) < TICKET_TEXT_MAX;
    if (good) {
        (void)snprintf(text, TICKET_TEXT_MAX, "%s", signed_text);
    } else {
        log_error("a ticket could not be signed");
    }
    free(signed_text);
    return good;
}

static bool is_text(jwt_t *jwt, const char *name, const char *value)
{
    const char *found = jwt_get_grant(jwt, name);
    return found != NULL && strcmp(found, value) == 0;
}

static bool read_id(jwt_t *jwt, const char *name, struct uuid *ret_id)
{
    const char *text = jwt_get_grant(jwt, name);
    return text != NULL && uuid_parse(str_of(text), ret_id);
}

/* libjwt's own call takes any other type for 0: the claim's text says what it is. */
static bool read_number(jwt_t *jwt, const char *name, int64_t *ret_value)
{
    CLEANUP(cleanup_free) char *text = jwt_get_grants_json(jwt, name);
    return text != NULL && str_parse_i64(str_of(text), 0, INT64_MAX, ret_value);
}

bool ticket_check(struct str text, const char *use, int64_t now_s, struct ticket *ret_ticket)
{
    CLEANUP(free_ticket) jwt_t *jwt = NULL;
    char copy[TICKET_TEXT_MAX];
    struct ticket ticket = {.use = use};
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.ptr, '\0', text.len) != NULL ||
        !load_key()) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    /* libjwt takes the algorithm from the text: it counts only if it is ours. */
    if (jwt_decode(&jwt, copy, (const unsigned char *)public_pem, (int)public_len) != 0 ||
        jwt_get_alg(jwt) != JWT_ALG_ES256) {
        return false;
    }
    const char *type = jwt_get_header(jwt, "cty");
    if (type == NULL || strcmp(type, TYPE) != 0 || !is_text(jwt, "iss", ISSUER) ||
        !is_text(jwt, "aud", use) || !read_id(jwt, "sub", &ticket.org) ||
        !read_id(jwt, "jti", &ticket.id) || !read_number(jwt, "iat", &ticket.issued_s) ||
        !read_number(jwt, "exp", &ticket.expires_s) || !read_number(jwt, "after", &ticket.after) ||
        !read_number(jwt, "limit", &ticket.limit) || ticket.expires_s <= now_s) {
        return false;
    }
    *ret_ticket = ticket;
    return true;
}
