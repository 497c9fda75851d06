/* The connections of a loop by what they are doing, each list in the order of its deadlines. */
#include "server/client.h"

#include <stddef.h>

static void append(struct clients *clients, struct client *client, enum client_phase phase,
                   int64_t now_us)
{
    client->phase = phase;
    client->deadline_us = now_us + clients->timeout_us[phase];
    client->prev = clients->tails[phase];
    client->next = NULL;
    if (client->prev != NULL) {
        client->prev->next = client;
    } else {
        clients->heads[phase] = client;
    }
    clients->tails[phase] = client;
}

static void unlink_client(struct clients *clients, struct client *client)
{
    if (client->prev != NULL) {
        client->prev->next = client->next;
    } else {
        clients->heads[client->phase] = client->next;
    }
    if (client->next != NULL) {
        client->next->prev = client->prev;
    } else {
        clients->tails[client->phase] = client->prev;
    }
}

void clients_add(struct clients *clients, struct client *client, int64_t now_us)
{
    append(clients, client, CLIENT_HEADER, now_us);
    clients->count++;
}

void clients_remove(struct clients *clients, struct client *client)
{
    unlink_client(clients, client);
    clients->count--;
}

void clients_move(struct clients *clients, struct client *client, enum client_phase phase,
                  int64_t now_us)
{
    unlink_client(clients, client);
    append(clients, client, phase, now_us);
}

struct client *clients_late(const struct clients *clients, int64_t now_us)
{
    for (size_t i = 0; i < CLIENT_PHASES; i++) {
        struct client *head = clients->heads[i];
        if (head != NULL && clients->timeout_us[i] > 0 && head->deadline_us <= now_us) {
            return head;
        }
    }
    return NULL;
}

int clients_timeout_ms(const struct clients *clients, int64_t now_us)
{
    int64_t soonest_us = -1;
    for (size_t i = 0; i < CLIENT_PHASES; i++) {
        const struct client *head = clients->heads[i];
        if (head == NULL || clients->timeout_us[i] == 0) {
            continue;
        }
        int64_t left_us = head->deadline_us > now_us ? head->deadline_us - now_us : 0;
        if (soonest_us < 0 || left_us < soonest_us) {
            soonest_us = left_us;
        }
    }
    return soonest_us < 0 ? -1 : (int)(soonest_us / 1000) + 1;
}
