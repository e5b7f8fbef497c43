/*
 * A floor: about the least that an epoll broker for these frames can be.
 *
 * It speaks register, list and send for clients that write their members in the order in which this benchmark
 * writes them. It finds what it needs by searching, never parses JSON, checks nothing, limits nothing and forgets
 * nothing. One write per connection and turn of its loop. It shows what the system calls alone cost.
 *
 * Usage: broker <socket path>
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* As many connections as a descriptor table that somebody raised for this. */
#define MAX_PEERS 32768
/* Power of two, several times MAX_PEERS' usual filling. */
#define BUCKETS 65536
/* One read; large enough that a full socket buffer comes at once. */
#define READ_BYTES (256 * 1024)
/* The limit of one frame's payload; a list is cut into frames below it. */
#define FRAME_LIMIT (1024 * 1024)
/* Buffers beyond this are given back when they are empty. */
#define KEPT_BYTES (64 * 1024)
#define MAX_EVENTS 256
#define BACKLOG 1024

struct bytes {
    char *at;
    size_t start, length, room;
};

struct peer {
    int fd, place, is_dirty, waits_for_room;
    char *id, *row;
    size_t id_length, row_length;
    struct bytes in, out;
    struct peer *next;
};

static struct peer *buckets[BUCKETS], *roster[MAX_PEERS], *dirty[MAX_PEERS];
static int roster_length, dirty_length, epoll_fd;
static char read_buffer[READ_BYTES];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void append(struct bytes *to, const char *from, size_t length)
{
    if (to->start && to->start + to->length + length > to->room) {
        memmove(to->at, to->at + to->start, to->length);
        to->start = 0;
    }
    if (to->length + length > to->room) {
        size_t room = to->room ? to->room : 4096;
        while (room < to->length + length)
            room *= 2;
        to->at = realloc(to->at, room);
        if (!to->at)
            fail("realloc");
        to->room = room;
    }
    memcpy(to->at + to->start + to->length, from, length);
    to->length += length;
}

static void take(struct bytes *from, size_t length)
{
    from->start += length;
    from->length -= length;
    if (from->length)
        return;
    from->start = 0;
    if (from->room > KEPT_BYTES) {
        free(from->at);
        from->at = NULL;
        from->room = 0;
    }
}

static struct peer **bucket(const char *id, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t index = 0; index < length; index++)
        hash = (hash ^ (unsigned char)id[index]) * 16777619u;
    return &buckets[hash & (BUCKETS - 1)];
}

static struct peer *find(const char *id, size_t length)
{
    for (struct peer *peer = *bucket(id, length); peer; peer = peer->next)
        if (peer->id_length == length && !memcmp(peer->id, id, length))
            return peer;
    return NULL;
}

static void mark(struct peer *peer)
{
    if (!peer->is_dirty) {
        peer->is_dirty = 1;
        dirty[dirty_length++] = peer;
    }
}

static void begin_frame(struct peer *peer, size_t payload_length)
{
    uint32_t header = htonl((uint32_t)payload_length);
    append(&peer->out, (char *)&header, sizeof header);
    mark(peer);
}

/* The string behind `key` (which ends in the opening quote); its length goes to *length. */
static const char *string_behind(const char *payload, size_t payload_length, const char *key, size_t *length)
{
    const char *found = memmem(payload, payload_length, key, strlen(key));
    if (!found)
        return NULL;
    found += strlen(key);
    const char *end = memchr(found, '"', (size_t)(payload + payload_length - found));
    if (!end)
        return NULL;
    *length = (size_t)(end - found);
    return found;
}

/* Where the object that opens at `from` closes; strings in it hold no braces here. */
static const char *object_end(const char *from, const char *end)
{
    int depth = 0;
    for (; from < end; from++) {
        depth += (*from == '{') - (*from == '}');
        if (!depth)
            return from + 1;
    }
    return NULL;
}

static void join(struct peer *peer, const char *payload, size_t length)
{
    size_t id_length = 0;
    const char *id = string_behind(payload, length, "\"requestedId\":\"", &id_length);
    const char *session = memmem(payload, length, "\"session\":{", 11);
    const char *end = session ? object_end(session + 10, payload + length) : NULL;
    if (!id || !end || peer->id || find(id, id_length) || roster_length == MAX_PEERS)
        return;
    peer->id = strndup(id, id_length);
    peer->id_length = id_length;
    int written = asprintf(&peer->row, "{\"id\":\"%.*s\",%.*s", (int)id_length, id, (int)(end - session - 11), session + 11);
    if (!peer->id || written < 0)
        fail("malloc");
    peer->row_length = (size_t)written;
    peer->place = roster_length;
    roster[roster_length++] = peer;
    struct peer **chain = bucket(id, id_length);
    peer->next = *chain;
    *chain = peer;
    char answer[256];
    int answer_length = snprintf(answer, sizeof answer, "{\"type\":\"registered\",\"sessionId\":\"%s\"}", peer->id);
    begin_frame(peer, (size_t)answer_length);
    append(&peer->out, answer, (size_t)answer_length);
}

static void say_rows(struct peer *peer, const char *id, size_t id_length, int first, int last, size_t size)
{
    static const char head[] = "{\"type\":\"sessions\",\"requestId\":\"", middle[] = "\",\"sessions\":[";
    const char *tail = last < roster_length ? "],\"more\":true}" : "],\"more\":false}";
    begin_frame(peer, sizeof head - 1 + id_length + sizeof middle - 1 + size + strlen(tail));
    append(&peer->out, head, sizeof head - 1);
    append(&peer->out, id, id_length);
    append(&peer->out, middle, sizeof middle - 1);
    for (int place = first; place < last; place++) {
        if (place > first)
            append(&peer->out, ",", 1);
        append(&peer->out, roster[place]->row, roster[place]->row_length);
    }
    append(&peer->out, tail, strlen(tail));
}

static void list(struct peer *peer, const char *payload, size_t length)
{
    size_t id_length = 0, size = 0;
    const char *id = string_behind(payload, length, "\"requestId\":\"", &id_length);
    int first = 0;
    if (!id)
        return;
    for (int place = 0; place < roster_length; place++) {
        size_t row = roster[place]->row_length + (place > first);
        if (size + row > FRAME_LIMIT - 256) {
            say_rows(peer, id, id_length, first, place, size);
            first = place;
            size = 0;
            row = roster[place]->row_length;
        }
        size += row;
    }
    say_rows(peer, id, id_length, first, roster_length, size);
}

static void deliver(struct peer *peer, const char *payload, size_t length)
{
    static const char head[] = "{\"type\":\"message\",\"from\":", middle[] = ",\"message\":";
    size_t to_length = 0, id_length = 0;
    const char *to = string_behind(payload, length, "\"to\":\"", &to_length);
    const char *message = memmem(payload, length, "\"message\":{", 11);
    const char *id = message ? string_behind(message, (size_t)(payload + length - message), "\"id\":\"", &id_length) : NULL;
    struct peer *target = to ? find(to, to_length) : NULL;
    if (!peer->row || !id)
        return;
    const char *kind = target ? "delivered" : "delivery_failed";
    if (target) {
        /* Everything from the opening brace of the message to the one that closes the frame. */
        size_t message_length = (size_t)(payload + length - 1 - (message + 10));
        begin_frame(target, sizeof head - 1 + peer->row_length + sizeof middle - 1 + message_length + 1);
        append(&target->out, head, sizeof head - 1);
        append(&target->out, peer->row, peer->row_length);
        append(&target->out, middle, sizeof middle - 1);
        append(&target->out, message + 10, message_length);
        append(&target->out, "}", 1);
    }
    char answer[256];
    int answer_length =
        snprintf(answer, sizeof answer, "{\"type\":\"%s\",\"messageId\":\"%.*s\"}", kind, (int)id_length, id);
    begin_frame(peer, (size_t)answer_length);
    append(&peer->out, answer, (size_t)answer_length);
}

static void hear(struct peer *peer, const char *payload, size_t length)
{
    static const char type[] = "{\"type\":\"";
    if (length < sizeof type + 4 || memcmp(payload, type, sizeof type - 1))
        return;
    const char *kind = payload + sizeof type - 1;
    if (!memcmp(kind, "send\"", 5))
        deliver(peer, payload, length);
    else if (!memcmp(kind, "list\"", 5))
        list(peer, payload, length);
    else if (!memcmp(kind, "regis", 5))
        join(peer, payload, length);
}

/* Hears every whole frame; returns how many bytes those were. */
static size_t hear_all(struct peer *peer, const char *from, size_t length)
{
    size_t heard = 0;
    while (length - heard >= 4) {
        uint32_t header;
        memcpy(&header, from + heard, sizeof header);
        size_t payload_length = ntohl(header);
        if (length - heard - 4 < payload_length)
            break;
        hear(peer, from + heard + 4, payload_length);
        heard += 4 + payload_length;
    }
    return heard;
}

static void leave(struct peer *peer)
{
    if (peer->row) {
        struct peer **chain = bucket(peer->id, peer->id_length);
        while (*chain != peer)
            chain = &(*chain)->next;
        *chain = peer->next;
        roster[peer->place] = roster[--roster_length];
        roster[peer->place]->place = peer->place;
    }
    for (int index = 0; index < dirty_length; index++)
        if (dirty[index] == peer)
            dirty[index] = NULL;
    close(peer->fd);
    free(peer->in.at);
    free(peer->out.at);
    free(peer->id);
    free(peer->row);
    free(peer);
}

/* Reads once; returns 0 when the connection is gone. */
static int receive(struct peer *peer)
{
    ssize_t length = recv(peer->fd, read_buffer, READ_BYTES, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (length <= 0)
        return 0;
    if (!peer->in.length) {
        size_t heard = hear_all(peer, read_buffer, (size_t)length);
        if (heard < (size_t)length)
            append(&peer->in, read_buffer + heard, (size_t)length - heard);
        return 1;
    }
    append(&peer->in, read_buffer, (size_t)length);
    size_t heard = hear_all(peer, peer->in.at + peer->in.start, peer->in.length);
    if (heard)
        take(&peer->in, heard);
    return 1;
}

static void wait_for_room(struct peer *peer, int waits)
{
    if (peer->waits_for_room == waits)
        return;
    struct epoll_event wanted = {.events = EPOLLIN | (waits ? EPOLLOUT : 0u), .data.ptr = peer};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, peer->fd, &wanted);
    peer->waits_for_room = waits;
}

static void flush(struct peer *peer)
{
    peer->is_dirty = 0;
    if (!peer->out.length)
        return;
    ssize_t sent = send(peer->fd, peer->out.at + peer->out.start, peer->out.length, MSG_NOSIGNAL);
    if (sent > 0)
        take(&peer->out, (size_t)sent);
    wait_for_room(peer, peer->out.length > 0);
}

static void admit(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        fail("calloc");
    peer->fd = fd;
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = peer};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &wanted);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path)
        exit(2);
    strcpy(address.sun_path, path);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, BACKLOG))
        fail(path);
    return listener;
}

int main(int count, char **words)
{
    if (count != 2)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_at(words[1]);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ready[MAX_EVENTS], wanted = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &wanted);
    for (;;) {
        int found = epoll_wait(epoll_fd, ready, MAX_EVENTS, -1);
        for (int index = 0; index < found; index++) {
            struct peer *peer = ready[index].data.ptr;
            if (!peer)
                admit(listener);
            else if (ready[index].events & EPOLLOUT)
                mark(peer);
            if (peer && ready[index].events & ~(unsigned)EPOLLOUT && !receive(peer))
                leave(peer);
        }
        for (int index = 0; index < dirty_length; index++)
            if (dirty[index])
                flush(dirty[index]);
        dirty_length = 0;
    }
}
