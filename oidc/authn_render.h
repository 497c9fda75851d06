/* Issuers of ours written as Kubernetes' AuthenticationConfiguration. */
#ifndef OIDC_AUTHN_RENDER_H
#define OIDC_AUTHN_RENDER_H

#include "base/buf.h"
#include "oidc/issuer.h"

/*
 * Writes YAML that makes kube-apiserver decide as close to our verifier as its rules allow: party,
 * lifetime, verified email, required claims, groups that did not fit, reserved names. An issuer of
 * several tenants becomes one entry a tenant. NULL, or a sentence in the arena when an issuer
 * cannot be written: both prefixes are needed, since group names of one issuer must not be
 * another's. What the server has no rule for (leeway, iat in the future, typ, a key's purpose)
 * stays undone.
 */
const char *authn_config_render(struct arena *arena, const struct oidc_issuer *issuers,
                                size_t count, struct buf *out) MUST_CHECK;

#endif
