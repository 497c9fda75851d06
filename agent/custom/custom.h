/* The settings of this agent: taken from answers, kept on disk, and the checks that they bring. */
#ifndef AGENT_CUSTOM_CUSTOM_H
#define AGENT_CUSTOM_CUSTOM_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/collect/collector.h"
#include "agent/custom/command.h"
#include "agent/custom/metric.h"
#include "agent/faults.h"
#include "agent/identity.h"
#include "agent/options.h"
#include "agent/settings.h"

struct saver;

struct custom {
    struct collector collector;
    struct settings settings;
    char refused[SETTINGS_VERSION_CAP]; /* could not be used; "" = none */
    struct own_metrics metrics;
    struct own_commands commands;
    struct saver *saver;
    char path[4096];
};

/* Settings as delivered; the collector says what this node does not run. */
void custom_init(struct custom *custom, const struct options *options);
/* What an earlier run kept; after the faults are open. */
void custom_load(struct custom *custom, const struct options *options, struct faults *faults,
                 int64_t now_us);
void custom_stop(struct custom *custom);

/* Settings from an answer to the report with that nonce. */
struct settings_offer {
    struct str document;
    struct str signature; /* base64url, by the cluster's command key */
    const char *nonce;
    const struct identity *identity;
};
/* Takes them when the signature is right; what cannot be used of them stays as it was, and an event
 * says so. False when the document was refused as a whole. */
bool custom_take(struct custom *custom, const struct settings_offer *offer,
                 const struct options *options, struct faults *faults, int64_t now_us);

#endif
