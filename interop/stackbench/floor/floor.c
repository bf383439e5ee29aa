/*
 * What the kernel allows, without a stack and without Go: built and run by the measurements of
 * package stackbench. Results are JSON on the standard output.
 *
 *   floor echo ADDRESS PORT                   datagrams go back to where they came from
 *   floor serial ADDRESS PORT CALLS           one call after the other: the median time
 *   floor flight ADDRESS PORT CALLS WINDOW    as many calls outstanding: calls a second
 *   floor send ADDRESS PORT SIZE COUNT        by sendmmsg, once a line is read
 *   floor receive ADDRESS PORT COUNT          by recvmmsg: the rate, and what is missing
 *   floor beat ADDRESS PORT GROUP             says something to a group each second, and hears it
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 32, CALL = 24, LARGEST = 2048, QUIET_MS = 500 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct sockaddr_in at(const char *address, const char *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
        die(address);
    return a;
}

static int bound(const char *address, const char *port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 2 << 20;
    struct sockaddr_in a = at(address, port);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("bind");
    return fd;
}

static void beat(const char *address, const char *port, const char *group) {
    struct sockaddr_in own = at(address, port), to = at(group, port);
    struct ip_mreqn member = {.imr_multiaddr = to.sin_addr, .imr_address = own.sin_addr};
    int fd = bound(address, port), in = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
    char b[LARGEST] = {0};
    setsockopt(in, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(in, (struct sockaddr *)&to, sizeof to) != 0 ||
        setsockopt(in, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &member, sizeof member) != 0)
        die("group");
    for (;;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        if (poll(&p, 1, 1000) > 0)
            recv(in, b, sizeof b, 0);
        else
            sendto(fd, b, 56, 0, (struct sockaddr *)&to, sizeof to);
    }
}

static int connected(const char *address, const char *port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = at(address, port);
    struct timeval patience = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    return fd;
}

static void echo(int fd) {
    char b[LARGEST];
    for (;;) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        ssize_t n = recvfrom(fd, b, sizeof b, 0, (struct sockaddr *)&from, &size);
        if (n < 0)
            die("recvfrom");
        sendto(fd, b, (size_t)n, 0, (struct sockaddr *)&from, size);
    }
}

static void call(int fd) {
    char b[CALL] = {0};
    if (send(fd, b, sizeof b, 0) < 0)
        die("send");
}

static void answer(int fd) {
    char b[LARGEST];
    if (recv(fd, b, sizeof b, 0) < 0)
        die("recv");
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void serial(int fd, int calls) {
    int warm = calls / 10;
    double *times = calloc((size_t)calls, sizeof *times);
    for (int i = -warm; i < calls; i++) {
        double began = now();
        call(fd);
        answer(fd);
        if (i >= 0)
            times[i] = now() - began;
    }
    qsort(times, (size_t)calls, sizeof *times, ascending);
    printf("{\"value\": %.3f}\n", times[calls / 2]);
    free(times);
}

static void flight(int fd, int calls, int window) {
    double began = now();
    for (int i = 0; i < calls + window; i++) {
        if (i >= window)
            answer(fd);
        if (i < calls)
            call(fd);
    }
    printf("{\"value\": %.0f}\n", calls / (now() - began) * 1e6);
}

static void prepare(struct mmsghdr *m, struct iovec *v, char *bytes, size_t size) {
    memset(m, 0, BATCH * sizeof *m);
    for (int i = 0; i < BATCH; i++) {
        v[i] = (struct iovec){.iov_base = bytes + i * LARGEST, .iov_len = size};
        m[i].msg_hdr.msg_iov = &v[i];
        m[i].msg_hdr.msg_iovlen = 1;
    }
}

static void send_all(int fd, size_t size, int count) {
    static char bytes[BATCH * LARGEST];
    struct mmsghdr m[BATCH];
    struct iovec v[BATCH];
    prepare(m, v, bytes, size);
    if (getchar() == EOF)
        return;
    for (int sent = 0; sent < count;) {
        int n = sendmmsg(fd, m, (unsigned)(count - sent < BATCH ? count - sent : BATCH), 0);
        if (n < 0)
            die("sendmmsg");
        sent += n;
    }
}

static void receive_all(int fd, int count) {
    static char bytes[BATCH * LARGEST];
    struct mmsghdr m[BATCH];
    struct iovec v[BATCH];
    double first = 0, last = 0;
    int got = 0;
    prepare(m, v, bytes, LARGEST);
    while (got < count) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = recvmmsg(fd, m, BATCH, MSG_DONTWAIT, NULL);
        if (n > 0) {
            last = now();
            if (got == 0)
                first = last;
            got += n;
        } else if (poll(&p, 1, got ? QUIET_MS : 10000) == 0) {
            break;
        }
    }
    printf("{\"value\": %.0f, \"lost\": %d}\n", got > 1 ? (got - 1) / (last - first) * 1e6 : 0, count - got);
}

int main(int argc, char **argv) {
    const char *what = argc > 3 ? argv[1] : "";
    if (strcmp(what, "echo") == 0)
        echo(bound(argv[2], argv[3]));
    else if (strcmp(what, "beat") == 0 && argc == 5)
        beat(argv[2], argv[3], argv[4]);
    else if (strcmp(what, "serial") == 0 && argc == 5)
        serial(connected(argv[2], argv[3]), atoi(argv[4]));
    else if (strcmp(what, "flight") == 0 && argc == 6)
        flight(connected(argv[2], argv[3]), atoi(argv[4]), atoi(argv[5]));
    else if (strcmp(what, "send") == 0 && argc == 6)
        send_all(connected(argv[2], argv[3]), (size_t)atoi(argv[4]), atoi(argv[5]));
    else if (strcmp(what, "receive") == 0 && argc == 5)
        receive_all(bound(argv[2], argv[3]), atoi(argv[4]));
    else {
        fprintf(stderr, "floor: see the head of floor.c\n");
        return 2;
    }
    return 0;
}
