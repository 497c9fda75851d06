/* Joining and access tokens of agents (docs/agent-protocol.md). */
#ifndef SERVER_HANDLERS_AGENT_H
#define SERVER_HANDLERS_AGENT_H

#include "base/decode.h"
#include "server/request.h"

struct agent_enroll_in {
    struct str token;
    struct str name;
    struct str public_key; /* base64url */
    struct str hardware;   /* JSON object; ptr NULL = absent */
};
extern const struct field agent_enroll_body[];

struct agent_challenge_in {
    struct str node_id;
};
extern const struct field agent_challenge_body[];

struct agent_token_in {
    struct str node_id;
    struct str nonce;
    struct str signature; /* base64url */
};
extern const struct field agent_token_body[];

enum err agent_enroll(struct request *rq);
enum err agent_challenge(struct request *rq);
enum err agent_token(struct request *rq);

#endif
