/* Listening sockets that the loops share. */
#include "server/listener.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

#define LISTEN_BACKLOG 1024
#define HOST_MAX 256

/* Parts "host:port"; the host without brackets. */
static bool split_listen(const char *listen_on, char host[HOST_MAX], const char **ret_port)
{
    const char *colon = strrchr(listen_on, ':');
    if (colon == NULL || colon[1] == '\0') {
        return false;
    }
    struct str name = {listen_on, (size_t)(colon - listen_on)};
    if (name.len >= 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']') {
        name = (struct str){name.ptr + 1, name.len - 2};
    }
    if (name.len >= HOST_MAX) {
        return false;
    }
    memcpy(host, name.ptr, name.len);
    host[name.len] = '\0';
    *ret_port = colon + 1;
    return true;
}

static int open_socket(const struct addrinfo *address, bool shared)
{
    const int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) ||
        bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        int kept = errno;
        (void)close(fd);
        errno = kept;
        return -1;
    }
    return fd;
}

int listener_port(int fd)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    char port[8];
    uint64_t value = 0;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0 ||
        getnameinfo((struct sockaddr *)&bound, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV) !=
            0 ||
        !str_parse_u64(str_of(port), 0, 65535, &value)) {
        return 0;
    }
    return (int)value;
}

int listener_open(const char *listen_on, int wanted_port, bool first, char *error, size_t error_cap)
{
    char host[HOST_MAX];
    char port_text[8];
    const char *port = NULL;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};

    if (!split_listen(listen_on, host, &port)) {
        (void)snprintf(error, error_cap, "listen must be ADDRESS:PORT, not \"%.80s\"", listen_on);
        return -1;
    }
    if (wanted_port != 0) {
        (void)snprintf(port_text, sizeof(port_text), "%d", wanted_port);
        port = port_text;
    }
    int rc = getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, &found);
    if (rc != 0) {
        (void)snprintf(error, error_cap, "listen: \"%.80s\" is no address: %s", listen_on,
                       gai_strerror(rc));
        return -1;
    }
    /* Sockets that share a port would let a second server take half of the first one's clients
     * silently; one that does not share tells whether the port is free. */
    int fd = -1;
    bool is_free = true;
    if (first) {
        int probe = open_socket(found, false);
        is_free = probe >= 0;
        if (is_free) {
            (void)close(probe);
        }
    }
    if (is_free) {
        fd = open_socket(found, true);
    }
    if (fd < 0) {
        (void)snprintf(error, error_cap, "cannot listen on %.80s: %s", listen_on,
                       strerrordesc_np(errno));
    }
    freeaddrinfo(found);
    return fd;
}
