/* Signed heads of the audit logs: what the database alone could forget, kept in files beside it. */
#include "server/audit_head.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/decode.h"
#include "base/encode.h"
#include "base/file.h"

#define KEY_LEN 32
#define LINE_MAX_BYTES 512 /* a line has about 330 */
#define FILE_MAX ((size_t)AUDIT_HEADS_MAX * LINE_MAX_BYTES)
/* Parts this use of a signature from any other. */
#define SIGN_LABEL "muster-audit-head"

struct audit_signer {
    char folder[PATH_MAX];
    struct ed25519 *key;
    uint8_t public_key[ED25519_PUBLIC_LEN];
};

/* ------------------------------------------------------------------ the key */

static int load_key(const char *path, uint8_t seed[KEY_LEN])
{
    CLEANUP(buf_free) struct buf data = {0};
    int failed = file_read(path, KEY_LEN, &data);
    if (failed == ENOENT) {
        uint8_t fresh[KEY_LEN];
        crypto_random(fresh, sizeof(fresh));
        failed = file_create_durable(path, (struct str){(const char *)fresh, sizeof(fresh)}, 0600);
        explicit_bzero(fresh, sizeof(fresh));
        /* Another replica may have been first: its key counts. */
        if (failed == 0 || failed == EEXIST) {
            failed = file_read(path, KEY_LEN, &data);
        }
    }
    if (failed == 0 && data.len != KEY_LEN) {
        failed = EINVAL;
    }
    if (failed == 0) {
        memcpy(seed, data.ptr, KEY_LEN);
        explicit_bzero(data.ptr, data.len);
    }
    return failed;
}

struct audit_signer *audit_signer_open(const char *keys_dir, char *error, size_t error_cap)
{
    struct audit_signer *signer = calloc(1, sizeof(*signer));
    char path[PATH_MAX + 16];
    uint8_t seed[KEY_LEN] = {0};
    if (signer == NULL) {
        abort();
    }
    int len = snprintf(signer->folder, sizeof(signer->folder), "%s/audit", keys_dir);
    int failed = len < 0 || len >= (int)sizeof(signer->folder) ? ENAMETOOLONG : 0;
    if (failed == 0) {
        failed = file_make_dirs(signer->folder, 0700);
    }
    (void)snprintf(path, sizeof(path), "%s/key.ed25519", signer->folder);
    if (failed == 0) {
        failed = load_key(path, seed);
    }
    signer->key = failed == 0 ? ed25519_import(seed) : NULL;
    explicit_bzero(seed, sizeof(seed));
    if (signer->key == NULL) {
        (void)snprintf(error, error_cap,
                       "keys_dir: %s cannot be used: %s. It is a file of 32 bytes, readable by the "
                       "server's user.",
                       path, failed == 0 ? "it is no Ed25519 key" : strerrordesc_np(failed));
        audit_signer_close(signer);
        return NULL;
    }
    ed25519_public(signer->key, signer->public_key);
    return signer;
}

void audit_signer_close(struct audit_signer *signer)
{
    if (signer != NULL) {
        ed25519_free(signer->key);
        free(signer);
    }
}

void audit_signer_closep(struct audit_signer **signer)
{
    audit_signer_close(*signer);
}

/* ------------------------------------------------------------------ a line */

struct head_text {
    char org[UUID_TEXT_LEN + 1];
    char hash[2 * SHA256_LEN + 1];
    char at[STR_RFC3339_LEN + 1];
    char signed_text[256];
};

static void write_text(const struct audit_head *head, struct head_text *text)
{
    uuid_format(&head->org, text->org);
    crypto_hex(head->hash, sizeof(head->hash), text->hash);
    str_format_rfc3339(head->at_us, text->at);
    (void)snprintf(text->signed_text, sizeof(text->signed_text), SIGN_LABEL "\n%s\n%lld\n%s\n%s",
                   text->org, (long long)head->seq, text->hash, text->at);
}

void audit_signer_line(const struct audit_signer *signer, const struct audit_head *head,
                       struct buf *out)
{
    struct head_text text;
    uint8_t signature[ED25519_SIGNATURE_LEN];
    char signature_text[96];
    char key_text[48];
    struct enc enc;
    write_text(head, &text);
    ed25519_sign(signer->key, str_of(text.signed_text), signature);
    crypto_b64(signature, sizeof(signature), signature_text);
    crypto_b64(signer->public_key, sizeof(signer->public_key), key_text);
    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "org");
    enc_cstr(&enc, text.org);
    enc_key(&enc, "seq");
    enc_i64(&enc, head->seq);
    enc_key(&enc, "hash");
    enc_cstr(&enc, text.hash);
    enc_key(&enc, "at");
    enc_cstr(&enc, text.at);
    enc_key(&enc, "key");
    enc_cstr(&enc, key_text);
    enc_key(&enc, "signature");
    enc_cstr(&enc, signature_text);
    enc_obj_end(&enc);
    buf_add_char(out, '\n');
}

struct line_in {
    struct str org;
    int64_t seq;
    struct str hash;
    int64_t at;
    struct str key;
    struct str signature;
};

/* clang-format off */
static const struct field line_fields[] = {
    {"org", FIELD_UUID, offsetof(struct line_in, org), 0, FIELD_REQUIRED, 0, 0, NULL, 0},
    {"seq", FIELD_I64, offsetof(struct line_in, seq), 0, FIELD_REQUIRED, 0, INT64_MAX, NULL, 0},
    {"hash", FIELD_STR, offsetof(struct line_in, hash), 0, FIELD_REQUIRED, 64, 64, NULL, 0},
    {"at", FIELD_TIME, offsetof(struct line_in, at), 0, FIELD_REQUIRED, 0, 0, NULL, 0},
    {"key", FIELD_STR, offsetof(struct line_in, key), 0, FIELD_REQUIRED, 1, 64, NULL, 0},
    {"signature", FIELD_STR, offsetof(struct line_in, signature), 0, FIELD_REQUIRED, 1, 128, NULL, 0},
    {NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL, 0},
};
/* clang-format on */

/* False when the line is none, or was not signed with this key. The arena is emptied. */
static bool read_line(const struct audit_signer *signer, struct str line, struct arena *arena,
                      struct audit_head *ret_head)
{
    struct line_in in = {0};
    struct decode_errors errors = {0};
    const char *detail = NULL;
    uint8_t signature[ED25519_SIGNATURE_LEN];
    size_t signature_len = 0;
    struct audit_head head = {0};
    struct head_text text;
    bool good = decode_body(arena, line, line_fields, &in, &errors, &detail) == ERR_NONE &&
                uuid_parse(in.org, &head.org) &&
                crypto_unhex(in.hash, head.hash, sizeof(head.hash)) &&
                crypto_unb64(in.signature, signature, sizeof(signature), &signature_len) &&
                signature_len == sizeof(signature);
    if (good) {
        head.seq = in.seq;
        head.at_us = in.at;
        write_text(&head, &text);
        good = ed25519_verify(signer->public_key, str_of(text.signed_text), signature);
    }
    arena_reset(arena);
    *ret_head = head;
    return good;
}

/* ------------------------------------------------------------------ the files */

static void file_of(const struct audit_signer *signer, const struct uuid *org,
                    char path[PATH_MAX + 64])
{
    char id[UUID_TEXT_LEN + 1];
    uuid_format(org, id);
    (void)snprintf(path, PATH_MAX + 64, "%s/%s.jsonl", signer->folder, id);
}

/* The last whole line of an open file, when it is a good one. */
static bool read_last(const struct audit_signer *signer, int fd, struct audit_head *ret_head)
{
    char tail[2 * LINE_MAX_BYTES];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof(tail) ? size - (off_t)sizeof(tail) : 0;
    ssize_t got = size <= 0 ? 0 : pread(fd, tail, sizeof(tail), from);
    if (got < 2 || tail[got - 1] != '\n') {
        return false;
    }
    size_t begin = (size_t)got - 1;
    while (begin > 0 && tail[begin - 1] != '\n') {
        begin--;
    }
    CLEANUP(arena_freep) struct arena *arena = arena_new((size_t)64 * 1024);
    return read_line(signer, (struct str){tail + begin, (size_t)got - 1 - begin}, arena, ret_head);
}

static int append(int fd, struct str line)
{
    int failed = file_write_all(fd, line);
    return failed != 0 ? failed : fsync(fd) != 0 ? errno : 0;
}

int audit_signer_keep(const struct audit_signer *signer, const struct audit_head *head,
                      int64_t min_age_s)
{
    CLEANUP(buf_free) struct buf line = {0};
    char path[PATH_MAX + 64];
    struct audit_head last;
    file_of(signer, &head->org, path);
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    int failed = flock(fd, LOCK_EX) != 0 ? errno : 0;
    bool known = failed == 0 && read_last(signer, fd, &last);
    bool due = !known || (last.seq != head->seq && head->at_us - last.at_us >= min_age_s * 1000000);
    if (failed == 0 && due) {
        audit_signer_line(signer, head, &line);
        failed = append(fd, buf_str(&line));
    }
    (void)close(fd);
    return failed;
}

int audit_heads_read(const struct audit_signer *signer, const struct uuid *org, const char *path,
                     struct arena *arena, struct audit_heads *ret_heads)
{
    CLEANUP(buf_free) struct buf data = {0};
    CLEANUP(arena_freep) struct arena *scratch = arena_new((size_t)64 * 1024);
    char own[PATH_MAX + 64];
    struct audit_heads heads = {0};
    size_t lines = 0;
    file_of(signer, org, own);
    int failed = file_read(path != NULL ? path : own, FILE_MAX, &data);
    if (failed != 0 && (failed != ENOENT || path != NULL)) {
        return failed;
    }
    struct str rest = buf_str(&data);
    struct str line;
    for (size_t i = 0; i < rest.len; i++) {
        lines += rest.ptr[i] == '\n';
    }
    size_t skipped = lines > AUDIT_HEADS_MAX ? lines - AUDIT_HEADS_MAX : 0;
    heads.items = arena_alloc(arena, (lines - skipped + 1) * sizeof(*heads.items));
    for (size_t n = 1; str_split(&rest, '\n', &line); n++) {
        struct audit_head head;
        if (n <= skipped || line.len == 0 || heads.bad_line != 0) {
            continue;
        }
        if (!read_line(signer, line, scratch, &head)) {
            heads.bad_line = n;
        } else if (uuid_eq(&head.org, org)) {
            heads.items[heads.count++] = head;
        }
    }
    *ret_heads = heads;
    return 0;
}
