/* Handlers of signing in at an issuer, in a browser. */
#ifndef SERVER_HANDLERS_SIGN_IN_H
#define SERVER_HANDLERS_SIGN_IN_H

#include "server/request.h"

request_handler sign_in_options;  /* what the sign-in page offers */
request_handler sign_in_start;    /* sends the browser to the issuer */
request_handler sign_in_callback; /* the browser comes back from there */

#endif
