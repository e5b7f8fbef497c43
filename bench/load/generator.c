/*
 * The generator: plays sessions on raw sockets with frames built beforehand, one thread, and reports on itself.
 *
 * Usage: generator <what> name=value ...      (generator.py beside this file takes and says the same)
 *
 *   ack       one message at a time, `pairs` taking turns; a sample is send -> "delivered"
 *   ask       the same with a question and its reply; a sample is send -> reply
 *   pace      sends `rate` times a second whether or not the last one was answered; a sample is send -> "delivered"
 *   flow      `pairs` senders, each with `window` messages on the way to a receiver of its own, for `ms`
 *   bulk      one frame of `text` bytes at a time; a sample is send -> the receiver has all of it
 *   list      one streamed list at a time; a sample is request -> last byte
 *   last      one page of `text` units of another session's response at a time; a sample is read -> its result
 *   presence  `batch` presences and a message behind them; a sample is first presence -> "delivered"
 *
 * Common: path=<socket> samples=<file for 32-bit nanoseconds> count=<samples> warm=<unmeasured ones before>
 * text=<bytes of text in a message> tag=<makes peer IDs unique>.
 *
 * Ends with one line of JSON: messages, elapsed_ns (of the measured part), cpu_ns (own, whole run), queued (answers
 * that said so), bytes (read by the measuring session). Any refusal or broken connection ends it with status 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define READ_ROOM (1024 * 1024)
#define MAX_PAIRS 256
/* Digits of a message's number at the end of its ID. */
#define ID_DIGITS 12
/* No answer for so long means that none will come. */
#define PATIENCE_MS 20000
/* Messages of one pair in a paced run that may be on the way at once. */
#define MAX_ON_THE_WAY 4096

struct peer {
    int fd;
    char id[128];
    char *at;
    size_t start, length, room;
    uint64_t bytes_read;
};

/* One message frame; `number` points at the digits of its ID, `reply_number` at those of the ID it answers. */
struct frame {
    char *at, *number, *reply_number;
    size_t length;
};

struct options {
    const char *what, *path, *samples, *tag;
    long count, warm, text, pairs, window, ms, batch, rate;
};

static struct options given = {
    .tag = "0", .count = 1000, .warm = 100, .text = 512, .pairs = 1, .window = 64, .ms = 1000, .batch = 1000, .rate = 1000};
static uint32_t *samples;
static long sample_count, queued_count;
static uint64_t message_count, elapsed_ns;
static uint64_t next_number = 1;

static void stop(const char *form, ...)
{
    va_list parts;
    va_start(parts, form);
    fputs("generator: ", stderr);
    vfprintf(stderr, form, parts);
    fputc('\n', stderr);
    va_end(parts);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void keep_sample(uint64_t from_ns)
{
    uint64_t spent = now_ns() - from_ns;
    if (sample_count < given.count)
        samples[sample_count++] = spent > UINT32_MAX ? UINT32_MAX : (uint32_t)spent;
}

/* ------------------------------------------------------------------ connections */

static void write_all(struct peer *peer, const char *from, size_t length)
{
    while (length) {
        ssize_t sent = send(peer->fd, from, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            stop("the broker closed a connection (%s)", strerror(errno));
        from += sent;
        length -= (size_t)sent;
    }
}

/* Makes room for `needed` bytes in all and moves what is there to the front when the end comes near. */
static void make_room(struct peer *peer, size_t needed)
{
    if (needed < READ_ROOM)
        needed = READ_ROOM;
    if (peer->start + needed <= peer->room)
        return;
    if (peer->start) {
        memmove(peer->at, peer->at + peer->start, peer->length);
        peer->start = 0;
    }
    if (needed + READ_ROOM > peer->room) {
        peer->room = needed + READ_ROOM;
        peer->at = realloc(peer->at, peer->room);
        if (!peer->at)
            stop("out of memory");
    }
}

/* Reads once; 0 when nothing is there (flags MSG_DONTWAIT). */
static size_t fill(struct peer *peer, int flags)
{
    make_room(peer, peer->length + 65536);
    for (;;) {
        size_t end = peer->start + peer->length;
        ssize_t got = recv(peer->fd, peer->at + end, peer->room - end, flags);
        if (got > 0) {
            peer->length += (size_t)got;
            peer->bytes_read += (uint64_t)got;
            return (size_t)got;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && (flags & MSG_DONTWAIT))
            return 0;
        stop("the broker closed a connection or fell silent (%s)", got ? strerror(errno) : "end of stream");
    }
}

/* The next whole frame's payload, or NULL. It stays valid until the next fill. */
static char *next_frame(struct peer *peer, size_t *length)
{
    uint32_t header;
    if (peer->length < sizeof header)
        return NULL;
    memcpy(&header, peer->at + peer->start, sizeof header);
    size_t whole = sizeof header + ntohl(header);
    if (peer->length < whole)
        return NULL;
    char *payload = peer->at + peer->start + sizeof header;
    *length = whole - sizeof header;
    peer->start += whole;
    peer->length -= whole;
    if (!peer->length)
        peer->start = 0;
    return payload;
}

/* What a frame is: 'd'elivered, 'q'ueued, 'f'ailed, 'm'essage, 's'essions, 'r'egistered, 'l' a read request,
 * 't' a read result, or '?'. */
static char kind_of(const char *payload, size_t length)
{
    static const char key[] = "\"type\":\"";
    const char *found = memmem(payload, length < 64 ? length : 64, key, sizeof key - 1);
    if (!found)
        found = memmem(payload, length, key, sizeof key - 1);
    if (!found)
        return '?';
    const char *kind = found + sizeof key - 1;
    if (!strncmp(kind, "delivered\"", 10))
        return 'd';
    if (!strncmp(kind, "message\"", 8))
        return 'm';
    if (!strncmp(kind, "delivery_queued\"", 16))
        return 'q';
    if (!strncmp(kind, "sessions\"", 9))
        return 's';
    if (!strncmp(kind, "registered\"", 11))
        return 'r';
    if (!strncmp(kind, "read_request\"", 13))
        return 'l';
    if (!strncmp(kind, "read_result\"", 12))
        return 't';
    return !strncmp(kind, "delivery_failed\"", 16) || !strncmp(kind, "error\"", 6) ? 'f' : '?';
}

static void refuse_refusal(char kind, const char *payload, size_t length)
{
    if (kind == 'f')
        stop("the broker refused: %.*s", (int)(length < 300 ? length : 300), payload);
    queued_count += kind == 'q';
}

static int is_outcome(char kind)
{
    return kind == 'd' || kind == 'q';
}

/* Waits for a frame of one of `kinds`; others are passed over. */
static char *await(struct peer *peer, const char *kinds, size_t *length)
{
    for (;;) {
        char *payload;
        while ((payload = next_frame(peer, length))) {
            char kind = kind_of(payload, *length);
            refuse_refusal(kind, payload, *length);
            if (strchr(kinds, kind))
                return payload;
        }
        fill(peer, 0);
    }
}

/* The value of a text member of a frame, copied to `into`. */
static void copy_text(const char *payload, size_t length, const char *key, char *into, size_t room)
{
    char *found = memmem(payload, length, key, strlen(key));
    char *start = found ? found + strlen(key) : NULL;
    char *end = start ? memchr(start, '"', length - (size_t)(start - payload)) : NULL;
    if (!end || (size_t)(end - start) >= room)
        stop("no %s in the broker's answer", key);
    memcpy(into, start, (size_t)(end - start));
    into[end - start] = 0;
}

static struct peer *join(const char *role, int number)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer || strlen(given.path) >= sizeof address.sun_path)
        stop("no room, or the path is too long");
    strcpy(address.sun_path, given.path);
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(peer->fd, (struct sockaddr *)&address, sizeof address))
        stop("cannot connect to %s (%s)", given.path, strerror(errno));
    setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(peer->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    char frame[1024], name[64];
    snprintf(name, sizeof name, "%s-%s-%d", role, given.tag, number);
    int length = snprintf(
        frame + 4, sizeof frame - 4,
        "{\"type\":\"register\",\"requestedId\":\"bench-%s\",\"session\":{\"cwd\":\"/bench/%s\",\"model\":\"bench\","
        "\"name\":\"%s\",\"status\":\"idle\",\"acceptsAsks\":true,\"pid\":%d,\"startedAt\":1700000000000,"
        "\"lastActivity\":1700000000000},\"sessionId\":\"bench-%s\",\"ext\":1}",
        name, role, name, getpid(), name);
    uint32_t header = htonl((uint32_t)length);
    memcpy(frame, &header, sizeof header);
    write_all(peer, frame, (size_t)length + 4);
    size_t answer_length;
    char *answer = await(peer, "r", &answer_length);
    copy_text(answer, answer_length, "\"sessionId\":\"", peer->id, sizeof peer->id);
    return peer;
}

/* ------------------------------------------------------------------ frames */

static void seal(struct frame *frame, int length)
{
    frame->length = (size_t)length + 4;
    uint32_t header = htonl((uint32_t)length);
    memcpy(frame->at, &header, sizeof header);
}

/* A message of `text_bytes` of text to `to`, with `extra` members (or ""). IDs are numbered in place. */
static struct frame make_message(const char *to, const char *extra, const char *series, long text_bytes)
{
    static const char words[] = "the broker hands this text to one session and to nobody else ";
    struct frame frame = {.at = malloc((size_t)text_bytes + 1024)};
    char *text = malloc((size_t)text_bytes + 1);
    if (!frame.at || !text)
        stop("out of memory");
    for (long index = 0; index < text_bytes; index++)
        text[index] = words[index % (long)(sizeof words - 1)];
    text[text_bytes] = 0;
    int length = snprintf(
        frame.at + 4, (size_t)text_bytes + 1020,
        "{\"type\":\"send\",\"to\":\"%s\",\"message\":{\"id\":\"00000000-0000-4000-%s-000000000000\","
        "\"timestamp\":1700000000000,%s\"content\":{\"text\":\"%s\"}}}",
        to, series, extra, text);
    free(text);
    frame.number = strstr(frame.at + 4, "\"id\":\"") + 6 + 24;
    frame.reply_number = strstr(frame.at + 4, "\"replyTo\":\"");
    if (frame.reply_number)
        frame.reply_number += 11 + 24;
    seal(&frame, length);
    return frame;
}

static struct frame make_plain(const char *payload)
{
    size_t length = strlen(payload);
    struct frame frame = {.at = malloc(length + 4)};
    if (!frame.at)
        stop("out of memory");
    memcpy(frame.at + 4, payload, length);
    seal(&frame, (int)length);
    return frame;
}

static void write_number(char *at, uint64_t number)
{
    for (int digit = ID_DIGITS - 1; digit >= 0; digit--, number /= 10)
        at[digit] = (char)('0' + number % 10);
}

static void say(struct peer *peer, struct frame *frame, uint64_t number)
{
    write_number(frame->number, number);
    write_all(peer, frame->at, frame->length);
}

/* ------------------------------------------------------------------ what is measured */

/* A sender and its receiver. In the pipelined run `waiting` bytes of `batch` are still to be written from `offset`. */
struct lane {
    struct peer *sender, *receiver;
    struct frame frame;
    char *batch;
    size_t offset, waiting;
    uint64_t sent, answered, arrived, *sent_ns;
    int waits_for_room;
};

static struct lane *open_lanes(void)
{
    struct lane *lanes = calloc((size_t)given.pairs, sizeof *lanes);
    if (!lanes || given.pairs > MAX_PAIRS)
        stop("at most %d pairs", MAX_PAIRS);
    for (int index = 0; index < given.pairs; index++) {
        struct lane *lane = &lanes[index];
        lane->receiver = join("receiver", index);
        lane->sender = join("sender", index);
        lane->frame = make_message(lane->receiver->id, "\"delivery\":\"steer\",", "8000", given.text);
        lane->batch = malloc(lane->frame.length * (size_t)given.window);
        lane->sent_ns = calloc(MAX_ON_THE_WAY, sizeof *lane->sent_ns);
        if (!lane->batch || !lane->sent_ns)
            stop("out of memory");
    }
    return lanes;
}

/* One message at a time, the pairs taking turns. */
static void measure_ack(void)
{
    size_t length;
    struct lane *lanes = open_lanes();
    for (long turn = -given.warm; turn < given.count; turn++) {
        struct lane *lane = &lanes[(turn + given.warm) % given.pairs];
        uint64_t from_ns = now_ns();
        say(lane->sender, &lane->frame, next_number++);
        await(lane->sender, "dq", &length);
        if (turn >= 0)
            keep_sample(from_ns);
        await(lane->receiver, "m", &length);
    }
    message_count = (uint64_t)given.count;
}

static void measure_ask(void)
{
    size_t length;
    struct peer *answerer = join("answerer", 0), *asker = join("asker", 0);
    struct frame question = make_message(answerer->id, "\"expectsReply\":true,", "8000", given.text);
    struct frame reply = make_message(
        asker->id, "\"replyTo\":\"00000000-0000-4000-8000-000000000000\",", "9000", given.text);
    for (long turn = -given.warm; turn < given.count; turn++) {
        uint64_t number = next_number++, from_ns = now_ns();
        say(asker, &question, number);
        await(answerer, "m", &length);
        write_number(reply.reply_number, number);
        say(answerer, &reply, number);
        await(asker, "m", &length);
        if (turn >= 0)
            keep_sample(from_ns);
        await(answerer, "dq", &length);
    }
    message_count = 2 * (uint64_t)given.count;
}

/* An owner's answer with `units` of text, the first of two such pages; `token` is the read's. */
static struct frame make_page(const char *token, const char *text, long units)
{
    struct frame frame = {.at = malloc((size_t)units + 1024)};
    if (!frame.at)
        stop("out of memory");
    int length = snprintf(
        frame.at + 4, (size_t)units + 1020,
        "{\"type\":\"read_response\",\"token\":\"%s\",\"kind\":\"last\",\"page\":{\"entryId\":\"entry\",\"offset\":0,"
        "\"text\":\"%s\",\"nextOffset\":%ld,\"total\":%ld}}",
        token, text, units, 2 * units);
    seal(&frame, length);
    return frame;
}

static void measure_last(void)
{
    size_t length;
    char token[256], asked[512], *payload, *text = malloc((size_t)given.text + 1);
    struct peer *owner = join("owner", 0), *reader = join("reader", 0);
    if (!text)
        stop("out of memory");
    memset(text, 'x', (size_t)given.text);
    text[given.text] = 0;
    snprintf(
        asked, sizeof asked, "{\"type\":\"read\",\"requestId\":\"r\",\"kind\":\"last\",\"to\":\"%s\",\"offset\":0}",
        owner->id);
    struct frame request = make_plain(asked);
    for (long turn = -given.warm; turn < given.count; turn++) {
        uint64_t from_ns = now_ns();
        write_all(reader, request.at, request.length);
        payload = await(owner, "l", &length);
        copy_text(payload, length, "\"token\":\"", token, sizeof token);
        struct frame page = make_page(token, text, given.text);
        write_all(owner, page.at, page.length);
        payload = await(reader, "t", &length);
        if (turn >= 0)
            keep_sample(from_ns);
        if (length < (size_t)given.text)
            stop("no page came: %.*s", (int)(length < 300 ? length : 300), payload);
        free(page.at);
    }
    message_count = (uint64_t)given.count;
}

static void count_outcomes(struct peer *peer, uint64_t *outcomes)
{
    size_t length;
    char *payload;
    while ((payload = next_frame(peer, &length))) {
        char kind = kind_of(payload, length);
        refuse_refusal(kind, payload, length);
        *outcomes += is_outcome(kind);
    }
}

/* Hears both ends of every pair that `polled` says is readable; returns how many messages were answered. */
static uint64_t hear_lanes(struct lane *lanes, struct pollfd *polled, uint64_t answered)
{
    size_t length;
    uint64_t before = answered;
    for (long index = 0; index < given.pairs; index++) {
        struct lane *lane = &lanes[index];
        uint64_t outcomes = 0;
        if (polled[2 * index].revents) {
            fill(lane->sender, MSG_DONTWAIT);
            count_outcomes(lane->sender, &outcomes);
        }
        for (; outcomes--; answered++, lane->answered++)
            if (answered >= (uint64_t)given.warm)
                keep_sample(lane->sent_ns[lane->answered % MAX_ON_THE_WAY]);
        if (polled[2 * index + 1].revents) {
            fill(lane->receiver, MSG_DONTWAIT);
            while (next_frame(lane->receiver, &length))
                lane->arrived++;
        }
    }
    return answered - before;
}

static void send_paced(struct lane *lane)
{
    if (lane->sent - lane->answered == MAX_ON_THE_WAY)
        stop("%d messages of one pair are unanswered", MAX_ON_THE_WAY);
    lane->sent_ns[lane->sent++ % MAX_ON_THE_WAY] = now_ns();
    say(lane->sender, &lane->frame, next_number++);
}

static void measure_pace(void)
{
    struct lane *lanes = open_lanes();
    struct pollfd polled[2 * MAX_PAIRS];
    uint64_t sent = 0, answered = 0, total = (uint64_t)(given.warm + given.count);
    uint64_t pause_ns = 1000000000u / (uint64_t)given.rate, due_ns = now_ns();
    for (long index = 0; index < given.pairs; index++) {
        polled[2 * index] = (struct pollfd){.fd = lanes[index].sender->fd, .events = POLLIN};
        polled[2 * index + 1] = (struct pollfd){.fd = lanes[index].receiver->fd, .events = POLLIN};
    }
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    while (answered < total) {
        uint64_t now = now_ns();
        uint64_t left_ns = sent == total ? PATIENCE_MS * 1000000ull : due_ns > now ? due_ns - now : 0;
        struct timespec wait = {.tv_sec = (time_t)(left_ns / 1000000000u), .tv_nsec = (long)(left_ns % 1000000000u)};
        if (!ppoll(polled, 2 * (nfds_t)given.pairs, &wait, NULL) && sent == total)
            stop("no answer for %d ms", PATIENCE_MS);
        answered += hear_lanes(lanes, polled, answered);
        for (; sent < total && now_ns() >= due_ns; due_ns += pause_ns)
            send_paced(&lanes[sent++ % (uint64_t)given.pairs]);
    }
    message_count = total;
}

static void push(struct lane *lane)
{
    while (lane->waiting) {
        ssize_t sent = send(lane->sender->fd, lane->batch + lane->offset, lane->waiting, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (sent <= 0)
            stop("the broker closed a connection (%s)", strerror(errno));
        lane->offset += (size_t)sent;
        lane->waiting -= (size_t)sent;
    }
}

static void top_up(struct lane *lane, int epoll_fd)
{
    if (!lane->waiting) {
        uint64_t room = (uint64_t)given.window - (lane->sent - lane->answered);
        lane->offset = 0;
        for (uint64_t index = 0; index < room; index++) {
            write_number(lane->frame.number, ++lane->sent);
            memcpy(lane->batch + lane->waiting, lane->frame.at, lane->frame.length);
            lane->waiting += lane->frame.length;
        }
    }
    push(lane);
    int waits = lane->waiting > 0;
    if (waits != lane->waits_for_room) {
        struct epoll_event wanted = {.events = EPOLLIN | (waits ? EPOLLOUT : 0u), .data.ptr = lane};
        epoll_ctl(epoll_fd, EPOLL_CTL_MOD, lane->sender->fd, &wanted);
        lane->waits_for_room = waits;
    }
}

static void hear_receiver(struct lane *lane)
{
    size_t length;
    char *payload;
    fill(lane->receiver, MSG_DONTWAIT);
    while ((payload = next_frame(lane->receiver, &length)))
        lane->arrived += kind_of(payload, length) == 'm';
}

static uint64_t total_of(struct lane *lanes, int what)
{
    uint64_t total = 0;
    for (long index = 0; index < given.pairs; index++)
        total += what == 's' ? lanes[index].sent : what == 'a' ? lanes[index].answered : lanes[index].arrived;
    return total;
}

static void watch_lanes(struct lane *lanes, int epoll_fd)
{
    for (long index = 0; index < given.pairs; index++) {
        struct lane *lane = &lanes[index];
        struct epoll_event sends = {.events = EPOLLIN, .data.ptr = lane};
        /* The low bit of a pointer is free: it marks the receiver's side. */
        struct epoll_event receives = {.events = EPOLLIN, .data.u64 = (uint64_t)(uintptr_t)lane | 1u};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, lane->sender->fd, &sends)
            || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, lane->receiver->fd, &receives))
            stop("cannot watch a connection (%s)", strerror(errno));
    }
}

/* Counts what is answered between the end of the warm-up (`warm` ms) and the end (`ms` behind it), then drains. */
static void measure_flow(void)
{
    struct lane *lanes = open_lanes();
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch_lanes(lanes, epoll_fd);
    uint64_t begin_ns = now_ns() + (uint64_t)given.warm * 1000000u, end_ns = begin_ns + (uint64_t)given.ms * 1000000u;
    uint64_t first = 0, began_ns = 0;
    int is_sending = 1;
    for (int index = 0; index < given.pairs; index++)
        top_up(&lanes[index], epoll_fd);
    while (is_sending || total_of(lanes, 'a') < total_of(lanes, 's') || total_of(lanes, 'r') < total_of(lanes, 's')) {
        struct epoll_event ready[2 * MAX_PAIRS];
        int found = epoll_wait(epoll_fd, ready, 2 * MAX_PAIRS, PATIENCE_MS);
        if (!found)
            stop("nothing came for %d ms", PATIENCE_MS);
        for (int index = 0; index < found; index++) {
            struct lane *lane = (struct lane *)(uintptr_t)(ready[index].data.u64 & ~(uint64_t)1);
            if (ready[index].data.u64 & 1) {
                hear_receiver(lane);
                continue;
            }
            if (ready[index].events & ~(unsigned)EPOLLOUT) {
                fill(lane->sender, MSG_DONTWAIT);
                count_outcomes(lane->sender, &lane->answered);
            }
            if (is_sending)
                top_up(lane, epoll_fd);
            else
                push(lane);
        }
        uint64_t now = now_ns();
        if (!began_ns && now >= begin_ns) {
            began_ns = now;
            first = total_of(lanes, 'a');
        }
        if (is_sending && now >= end_ns) {
            is_sending = 0;
            message_count = total_of(lanes, 'a') - first;
            elapsed_ns = now - began_ns;
        }
    }
    printf("{\"all\":%llu,", (unsigned long long)total_of(lanes, 's'));
}

static void measure_bulk(void)
{
    struct peer *receiver = join("receiver", 0), *sender = join("sender", 0);
    struct frame frame = make_message(receiver->id, "\"delivery\":\"steer\",", "8000", given.text);
    size_t length;
    for (long turn = -given.warm; turn < given.count; turn++) {
        uint64_t from_ns = now_ns();
        size_t offset = 0;
        char *arrived = NULL;
        write_number(frame.number, next_number++);
        while (!arrived) {
            struct pollfd polled[2] = {
                {.fd = receiver->fd, .events = POLLIN}, {.fd = offset < frame.length ? sender->fd : -1, .events = POLLOUT}};
            if (!poll(polled, 2, PATIENCE_MS))
                stop("nothing moved for %d ms", PATIENCE_MS);
            if (polled[1].revents) {
                ssize_t sent =
                    send(sender->fd, frame.at + offset, frame.length - offset, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (sent < 0 && errno != EAGAIN)
                    stop("the broker closed a connection (%s)", strerror(errno));
                offset += sent > 0 ? (size_t)sent : 0;
            }
            if (polled[0].revents) {
                fill(receiver, MSG_DONTWAIT);
                arrived = next_frame(receiver, &length);
            }
        }
        if (kind_of(arrived, length) != 'm')
            stop("the receiver heard something else");
        if (turn >= 0)
            keep_sample(from_ns);
        await(sender, "dq", &length);
    }
    message_count = (uint64_t)given.count;
}

static void measure_list(void)
{
    struct peer *peer = join("lister", 0);
    struct frame frame = make_plain("{\"type\":\"list\",\"requestId\":\"r\",\"stream\":true}");
    static const char more[] = "\"more\":true";
    for (long turn = -given.warm; turn < given.count; turn++) {
        uint64_t from_ns = now_ns(), before = peer->bytes_read;
        write_all(peer, frame.at, frame.length);
        for (;;) {
            size_t length;
            char *payload = await(peer, "s", &length);
            /* Behind the rows or before them, never far from an end: rows hold no such member. */
            size_t tail = length < 128 ? length : 128;
            if (!memmem(payload, tail, more, sizeof more - 1)
                && !memmem(payload + length - tail, tail, more, sizeof more - 1))
                break;
        }
        if (turn >= 0)
            keep_sample(from_ns);
        message_count = peer->bytes_read - before;
    }
}

static void measure_presence(void)
{
    size_t length;
    struct peer *receiver = join("receiver", 0), *sender = join("sender", 0);
    struct frame message = make_message(receiver->id, "\"delivery\":\"steer\",", "8000", given.text);
    struct frame states[2] = {
        make_plain("{\"type\":\"presence\",\"status\":\"thinking\",\"acceptsAsks\":false,\"pendingAsks\":1}"),
        make_plain("{\"type\":\"presence\",\"status\":\"idle\",\"acceptsAsks\":true,\"pendingAsks\":0}")};
    for (long turn = -given.warm; turn < given.count; turn++) {
        uint64_t from_ns = now_ns();
        for (long index = 0; index < given.batch; index++)
            write_all(sender, states[index & 1].at, states[index & 1].length);
        say(sender, &message, next_number++);
        await(sender, "dq", &length);
        if (turn >= 0)
            keep_sample(from_ns);
        await(receiver, "m", &length);
    }
    message_count = (uint64_t)(given.count * given.batch);
}

/* ------------------------------------------------------------------ the program */

static void read_option(char *word)
{
    struct { const char *name; const char **text; long *number; } known[] = {
        {"path=", &given.path, NULL},     {"samples=", &given.samples, NULL}, {"tag=", &given.tag, NULL},
        {"count=", NULL, &given.count},   {"warm=", NULL, &given.warm},       {"text=", NULL, &given.text},
        {"pairs=", NULL, &given.pairs},   {"window=", NULL, &given.window},   {"ms=", NULL, &given.ms},
        {"batch=", NULL, &given.batch},   {"rate=", NULL, &given.rate}};
    for (size_t index = 0; index < sizeof known / sizeof *known; index++) {
        size_t length = strlen(known[index].name);
        if (strncmp(word, known[index].name, length))
            continue;
        if (known[index].text)
            *known[index].text = word + length;
        else
            *known[index].number = atol(word + length);
        return;
    }
    stop("unknown option %s", word);
}

static void run(void)
{
    static const struct { const char *what; void (*measure)(void); } known[] = {
        {"ack", measure_ack},   {"ask", measure_ask},   {"pace", measure_pace},         {"flow", measure_flow},
        {"bulk", measure_bulk}, {"list", measure_list}, {"presence", measure_presence}, {"last", measure_last}};
    for (size_t index = 0; index < sizeof known / sizeof *known; index++)
        if (!strcmp(given.what, known[index].what)) {
            known[index].measure();
            return;
        }
    stop("unknown measurement %s", given.what);
}

static void write_samples(void)
{
    FILE *file = fopen(given.samples, "wb");
    size_t count = (size_t)sample_count;
    if (!file || fwrite(samples, sizeof *samples, count, file) != count || fclose(file))
        stop("cannot write %s", given.samples);
}

int main(int count, char **words)
{
    struct rusage used;
    if (count < 3)
        stop("usage: generator <what> path=<socket> [name=value ...]");
    given.what = words[1];
    for (int index = 2; index < count; index++)
        read_option(words[index]);
    if (!given.path)
        stop("path= is missing");
    samples = calloc((size_t)given.count + 1, sizeof *samples);
    if (!samples)
        stop("out of memory");
    uint64_t began_ns = now_ns();
    signal(SIGPIPE, SIG_IGN);
    run();
    if (!elapsed_ns)
        elapsed_ns = now_ns() - began_ns;
    getrusage(RUSAGE_SELF, &used);
    uint64_t cpu_ns = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u
        + (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
    if (given.samples)
        write_samples();
    if (strcmp(given.what, "flow"))
        printf("{\"all\":%llu,", (unsigned long long)message_count);
    printf("\"messages\":%llu,\"elapsed_ns\":%llu,\"lifetime_ns\":%llu,\"cpu_ns\":%llu,\"queued\":%ld}\n",
           (unsigned long long)message_count, (unsigned long long)elapsed_ns,
           (unsigned long long)(now_ns() - began_ns), (unsigned long long)cpu_ns, queued_count);
    return 0;
}
