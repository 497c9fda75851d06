/* Handlers of ends: signing out at the issuer too, its own word that a session is over, and the
 * list of one's sessions. */
#ifndef SERVER_HANDLERS_SIGN_OUT_H
#define SERVER_HANDLERS_SIGN_OUT_H

#include "server/request.h"

request_handler sign_out;           /* RP-initiated logout: gives the address to go to */
request_handler backchannel_logout; /* OpenID Connect Back-Channel Logout 1.0 */
request_handler session_list;
request_handler session_delete_one;

#endif
