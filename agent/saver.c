/* One small file that is written anew when its content changes, by a thread. */
#include "agent/saver.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"

/* The thread calls nothing deep. */
#define STACK_BYTES ((size_t)128 * 1024)

struct saver {
    const char *path;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t idle;
    struct buf next; /* the newest text that waits; under the lock, as all below */
    bool waiting;
    bool busy;
    bool failed; /* the newest text is not on the disk */
    bool stop;
    bool running;
};

static bool write_text(const struct saver *saver, struct str text)
{
    int failed = file_write_durable(saver->path, text, 0600);

    if (failed != 0) {
        log_error("%s cannot be written: %s", saver->path, strerrordesc_np(failed));
    }
    return failed == 0;
}

static void *run_saver(void *ctx)
{
    struct saver *saver = ctx;
    struct buf text = {0};

    (void)pthread_mutex_lock(&saver->lock);
    for (;;) {
        while (!saver->waiting && !saver->stop) {
            (void)pthread_cond_wait(&saver->wake, &saver->lock);
        }
        if (!saver->waiting) {
            break;
        }
        struct buf empty = text;
        text = saver->next;
        saver->next = empty;
        saver->waiting = false;
        saver->busy = true;
        (void)pthread_mutex_unlock(&saver->lock);
        bool written = write_text(saver, buf_str(&text));
        (void)pthread_mutex_lock(&saver->lock);
        saver->failed = !written;
        saver->busy = false;
        (void)pthread_cond_broadcast(&saver->idle);
    }
    (void)pthread_mutex_unlock(&saver->lock);
    buf_free(&text);
    return NULL;
}

struct saver *saver_new(const char *path)
{
    struct saver *saver = calloc(1, sizeof(*saver));
    pthread_attr_t attr;

    assert(saver != NULL);
    saver->path = path;
    (void)pthread_mutex_init(&saver->lock, NULL);
    (void)pthread_cond_init(&saver->wake, NULL);
    (void)pthread_cond_init(&saver->idle, NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    saver->running = pthread_create(&saver->thread, &attr, run_saver, saver) == 0;
    (void)pthread_attr_destroy(&attr);
    return saver;
}

void saver_free(struct saver *saver)
{
    if (saver == NULL) {
        return;
    }
    if (saver->running) {
        (void)pthread_mutex_lock(&saver->lock);
        saver->stop = true;
        (void)pthread_cond_signal(&saver->wake);
        (void)pthread_mutex_unlock(&saver->lock);
        (void)pthread_join(saver->thread, NULL);
    }
    buf_free(&saver->next);
    free(saver);
}

void saver_put(struct saver *saver, struct buf *text)
{
    if (!saver->running) {
        saver->failed = !write_text(saver, buf_str(text));
        return;
    }
    (void)pthread_mutex_lock(&saver->lock);
    struct buf old = saver->next;
    saver->next = *text;
    *text = old;
    saver->waiting = true;
    (void)pthread_cond_signal(&saver->wake);
    (void)pthread_mutex_unlock(&saver->lock);
}

bool saver_failed(struct saver *saver)
{
    (void)pthread_mutex_lock(&saver->lock);
    bool failed = saver->failed && !saver->waiting && !saver->busy;
    (void)pthread_mutex_unlock(&saver->lock);
    return failed;
}

void saver_flush(struct saver *saver)
{
    (void)pthread_mutex_lock(&saver->lock);
    while (saver->running && (saver->waiting || saver->busy)) {
        (void)pthread_cond_wait(&saver->idle, &saver->lock);
    }
    (void)pthread_mutex_unlock(&saver->lock);
}
