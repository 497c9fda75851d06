/* Wakes background loops of this process: a list of subscribers behind one lock. */
#include "server/wake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct wake {
    struct wake *next;
    unsigned topics;
    pthread_cond_t changed;
    struct wake_orgs pending;
    bool poked;
};

/* Few subscribers and short critical sections: one lock for all of them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wake *subscribers;

struct wake *wake_subscribe(unsigned topics)
{
    struct wake *wake = calloc(1, sizeof *wake);
    if (wake == NULL) {
        abort();
    }
    wake->topics = topics;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&wake->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_lock(&lock);
    wake->next = subscribers;
    subscribers = wake;
    pthread_mutex_unlock(&lock);
    return wake;
}

void wake_unsubscribe(struct wake *wake)
{
    if (wake == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct wake **at = &subscribers;
    while (*at != NULL && *at != wake) {
        at = &(*at)->next;
    }
    if (*at == wake) {
        *at = wake->next;
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&wake->changed);
    free(wake);
}

static void remember_org(struct wake_orgs *orgs, const struct uuid *org)
{
    for (size_t i = 0; i < orgs->count; i++) {
        if (uuid_eq(&orgs->orgs[i], org)) {
            return;
        }
    }
    if (orgs->count == WAKE_ORGS_MAX) {
        orgs->all = true;
        return;
    }
    orgs->orgs[orgs->count++] = *org;
}

static void wake_matching(const struct uuid *org, unsigned topics)
{
    pthread_mutex_lock(&lock);
    for (struct wake *wake = subscribers; wake != NULL; wake = wake->next) {
        if ((wake->topics & topics) == 0) {
            continue;
        }
        if (org == NULL) {
            wake->pending.all = true;
        } else {
            remember_org(&wake->pending, org);
        }
        pthread_cond_signal(&wake->changed);
    }
    pthread_mutex_unlock(&lock);
}

void wake_org(const struct uuid *org, unsigned topics)
{
    wake_matching(org, topics);
}

void wake_all(unsigned topics)
{
    wake_matching(NULL, topics);
}

void wake_poke(struct wake *wake)
{
    pthread_mutex_lock(&lock);
    wake->poked = true;
    pthread_cond_signal(&wake->changed);
    pthread_mutex_unlock(&lock);
}

static struct timespec deadline_after(int timeout_ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    return at;
}

bool wake_wait(struct wake *wake, int timeout_ms, struct wake_orgs *ret_orgs)
{
    struct timespec deadline = deadline_after(timeout_ms);
    pthread_mutex_lock(&lock);
    int rc = 0;
    while (wake->pending.count == 0 && !wake->pending.all && !wake->poked && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&wake->changed, &lock, &deadline);
    }
    *ret_orgs = wake->pending;
    memset(&wake->pending, 0, sizeof wake->pending);
    wake->poked = false;
    pthread_mutex_unlock(&lock);
    return ret_orgs->count > 0 || ret_orgs->all;
}

void wake_pause(struct wake *wake, int timeout_ms)
{
    struct timespec deadline = deadline_after(timeout_ms);

    pthread_mutex_lock(&lock);
    int rc = 0;
    while (!wake->poked && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&wake->changed, &lock, &deadline);
    }
    wake->poked = false;
    pthread_mutex_unlock(&lock);
}
