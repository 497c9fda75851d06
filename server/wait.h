/* Long polls: GET of one resource with If-None-Match and Prefer: wait=n (RFC 7240). */
#ifndef SERVER_WAIT_H
#define SERVER_WAIT_H

struct loop;

/* Before loop_start; the state is freed by wait_detach, after loop_join. */
void wait_attach(struct loop *loop);
void wait_detach(struct loop *loop);

#endif
