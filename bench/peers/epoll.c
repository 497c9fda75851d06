/* The least that answers GET over keep-alive: what /healthz is measured against. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

#define EVENTS 512

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

static int listen_on(int port)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 1024) != 0) {
        perror("epoll peer");
        exit(1);
    }
    return fd;
}

static void serve(int fd)
{
    char request[4096];
    ssize_t got = recv(fd, request, sizeof(request), 0);
    if (got <= 0) {
        close(fd);
        return;
    }
    /* wrk does not pipeline: one request a read. */
    (void)send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
    uint64_t port = 8999;
    if (argc > 1 && !str_parse_u64(str_of(argv[1]), 1, 65535, &port)) {
        return 2;
    }
    int listener = listen_on((int)port);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd != listener) {
                serve(events[i].data.fd);
                continue;
            }
            int one = 1;
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
            (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        }
    }
}
