/* Handlers of the audit log: its list and its export. */
#ifndef SERVER_HANDLERS_AUDIT_H
#define SERVER_HANDLERS_AUDIT_H

#include "server/request.h"

request_handler audit_list;
request_handler audit_export;

/* Makes a link that downloads a part of the log once, without a credential; and the download. */
enum err audit_export_link(struct request *rq);
enum err audit_download(struct request *rq);

#endif
