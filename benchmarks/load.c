/* Requests to a decision service, at given times or as fast as it answers.

    load key=value ...      prints one line of JSON

    mode=open      request i is due at i/rate seconds, whatever became of those before it: even ones
                   are decisions, odd ones the observation of the same session's round. Latency
                   counts from the moment a request is due, not from when a connection was free for
                   it, so that a server that stalls is charged for all who would have come.
    mode=closed    every connection is a caller with a session of its own, that waits for each
                   answer: decisions=1 decides and observes in turn, decisions=0 observes only.
                   Latency counts from sending.

The sessions PREFIX0, PREFIX1, ... are there already and take points of n entries. An observation
says its round and is decided by seed, session and round alone, so that a second one is the same;
a session's round goes on when its observation is answered with 200. All other answers are refusals.
first= is the round that all sessions stand at. idle= connections are opened, say nothing and stay open.
*/
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { DECISION, OBSERVATION, REFUSED, KINDS };
enum { CLOSED, CONNECTING, FREE, SENDING, READING };

static const char *kind_names[KINDS] = {"decisions", "observations", "refused"};

static const char *mode = "open", *host = "127.0.0.1", *prefix = "s", *token = "";
static int port = 8000, sessions = 1, n = 100, connections = 32, first = 1, decisions = 1, idle = 0;
static double rate = 500, seconds = 10, grace = 5;
static uint64_t seed = 0;

typedef struct {
    int socket, state, kind, session, round;
    double due;
    char *out;
    size_t room, length, sent;
    char in[65536];
    size_t read, head, body, dropped;
    int status, retry_after, closes;
} Connection;

static Connection *table;
static int *spare, spares;
static int *round_of;
static int poll_set, clock_fd;
static double began;

static float *latencies[KINDS];
static long answered[KINDS], sent[KINDS], room_for[KINDS];
static long by_status[600], with_retry_after, errors, reconnects;

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* --- what is said ----------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* n numbers from lowest up to lowest + 1, six digits each */
static char *numbers(char *to, uint64_t from, int lowest) {
    *to++ = '[';
    for (int i = 0; i < n; i++) {
        unsigned digits = mixed(from + i) % 1000000;
        *to++ = '0' + lowest;
        *to++ = '.';
        for (int place = 5; place >= 0; place--, digits /= 10) to[place] = '0' + digits % 10;
        to += 6;
        *to++ = ',';
    }
    to[-1] = ']';
    return to;
}

static void compose(Connection *c) {
    static char *body;
    size_t most = 40 * (size_t)n + 1024;
    if (!body && !(body = malloc(most))) fail("memory");
    char *end = body;
    if (c->kind == OBSERVATION) {
        c->round = round_of[c->session];
        uint64_t from = mixed(seed) ^ mixed(((uint64_t)c->session << 32) + c->round);
        end += sprintf(end, "{\"round\":%d,\"costs\":", c->round);
        end = numbers(end, from, 0);
        end += sprintf(end, ",\"capacities\":");
        end = numbers(end, mixed(from), 1);
        *end++ = '}';
    }
    size_t length = end - body;
    if (c->room < length + 1024) {
        c->room = most + 1024;
        if (!(c->out = realloc(c->out, c->room))) fail("memory");
    }
    c->length = sprintf(c->out,
                        "POST /v1/sessions/%s%d/%s HTTP/1.1\r\nHost: %s:%d\r\n%s%s%s"
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                        prefix, c->session, kind_names[c->kind], host, port,
                        *token ? "Authorization: Bearer " : "", token, *token ? "\r\n" : "", length);
    memcpy(c->out + c->length, body, length);
    c->length += length;
    c->sent = 0;
}

/* --- connections ------------------------------------------------------------------------------ */

static int dial(void) {
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
    if (s < 0) return -1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1) fail("host= takes an IPv4 address");
    if (connect(s, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) {
        close(s);
        return -1;
    }
    return s;
}

static void watch(Connection *c, uint32_t events, int how) {
    struct epoll_event e = {.events = events, .data.u32 = (uint32_t)(c - table)};
    if (epoll_ctl(poll_set, how, c->socket, &e)) fail("epoll_ctl");
}

static void hang_up(Connection *c) {
    if (c->socket >= 0) close(c->socket);
    c->socket = -1;
    c->state = CLOSED;
}

static int open_connection(Connection *c) {
    c->read = 0;
    if ((c->socket = dial()) < 0) return 0;
    c->state = CONNECTING;
    watch(c, EPOLLIN | EPOLLOUT | EPOLLET, EPOLL_CTL_ADD);
    return 1;
}

static void put_back(Connection *c) { spare[spares++] = (int)(c - table); }

/* --- one exchange ----------------------------------------------------------------------------- */

static void note_latency(int kind, double latency) {
    if (answered[kind] == room_for[kind]) {
        room_for[kind] = room_for[kind] ? 2 * room_for[kind] : 4096;
        latencies[kind] = realloc(latencies[kind], room_for[kind] * sizeof(float));
        if (!latencies[kind]) fail("memory");
    }
    latencies[kind][answered[kind]++] = (float)latency;
}

static void broken(Connection *c) {
    int was = c->state;
    hang_up(c);
    if (was == SENDING || was == READING || was == CONNECTING) errors++;
    put_back(c);
}

static void push(Connection *c) {
    while (c->sent < c->length) {
        ssize_t k = send(c->socket, c->out + c->sent, c->length - c->sent, MSG_NOSIGNAL);
        if (k < 0 && errno == EAGAIN) return;
        if (k < 0) {
            broken(c);
            return;
        }
        c->sent += k;
    }
    c->state = READING;
}

static void say(Connection *c, int kind, int session, double due) {
    c->kind = kind, c->session = session, c->due = due;
    c->read = c->head = c->body = c->dropped = 0;
    c->status = c->retry_after = c->closes = 0;
    compose(c);
    sent[kind]++;
    if (c->state == CLOSED) {
        reconnects++;
        if (!open_connection(c)) {
            errors++;
            put_back(c);
        }
        return;
    }
    c->state = SENDING;
    push(c);
}

/* 1 where the head is whole, 0 where more must come, -1 where it is none */
static int read_head(Connection *c) {
    c->in[c->read < sizeof c->in ? c->read : sizeof c->in - 1] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return c->read >= sizeof c->in - 1 ? -1 : 0;
    if (sscanf(c->in, "HTTP/1.%*d %d", &c->status) != 1 || c->status < 100 || c->status > 599)
        return -1;
    *end = 0;
    char *length = strcasestr(c->in, "\r\ncontent-length:");
    c->retry_after = strcasestr(c->in, "\r\nretry-after:") != NULL;
    c->closes = strcasestr(c->in, "\r\nconnection: close") != NULL;
    *end = '\r';
    if (!length) return -1;
    c->body = strtoul(length + 17, NULL, 10);
    c->head = end + 4 - c->in;
    return 1;
}

static void finish(Connection *c) {
    note_latency(c->status == 200 ? c->kind : REFUSED, now() - c->due);
    by_status[c->status]++;
    with_retry_after += c->retry_after;
    if (c->kind == OBSERVATION && c->status == 200 && c->round == round_of[c->session])
        round_of[c->session]++;
    if (c->closes || c->sent < c->length) hang_up(c);
    else c->state = FREE;
    put_back(c);
}

/* Bodies are counted, not kept. */
static void take(Connection *c) {
    while (c->state == READING || c->state == SENDING || c->state == FREE) {
        size_t room = sizeof c->in - 1 - c->read;
        ssize_t k = recv(c->socket, c->in + c->read, room, 0);
        if (k < 0 && errno == EAGAIN) return;
        if (k <= 0) {
            if (c->state == FREE) hang_up(c); /* it waits among the spare */
            else broken(c);
            return;
        }
        if (c->state == FREE) continue;
        c->read += k;
        if (!c->head) {
            int whole = read_head(c);
            if (whole < 0) {
                broken(c);
                return;
            }
            if (!whole) continue;
        }
        if (c->dropped + c->read >= c->head + c->body) {
            finish(c);
            return;
        }
        if (c->read > sizeof c->in / 2) c->dropped += c->read - c->head, c->read = c->head;
    }
}

static void ready(Connection *c, uint32_t events) {
    if (c->state == CLOSED) return;
    if (c->state == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->socket, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) {
            broken(c);
            return;
        }
        if (!(events & EPOLLOUT)) return;
        c->state = SENDING;
    }
    if (c->state == SENDING && (events & EPOLLOUT)) push(c);
    if (c->state != CLOSED && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) take(c);
}

/* --- when ------------------------------------------------------------------------------------- */

static void wake_at(double when) {
    struct itimerspec at = {.it_value = {(time_t)when, (long)(1e9 * (when - (time_t)when))}};
    if (timerfd_settime(clock_fd, TFD_TIMER_ABSTIME, &at, NULL)) fail("timerfd");
}

static void turn(void) {
    struct epoll_event found[256];
    int k = epoll_wait(poll_set, found, 256, 1000);
    for (int i = 0; i < k; i++) {
        if (found[i].data.u32 == UINT32_MAX) {
            uint64_t times;
            if (read(clock_fd, &times, sizeof times) < 0 && errno != EAGAIN) fail("timerfd");
        } else ready(&table[found[i].data.u32], found[i].events);
    }
}

static long open_loop(void) {
    long total = (long)(rate * seconds), next = 0;
    double last = began + seconds + grace;
    while (now() < last && (next < total || spares < connections)) {
        double t = now();
        while (next < total && spares && began + next / rate <= t) {
            Connection *c = &table[spare[--spares]];
            say(c, next & 1, (int)(next / 2 % sessions), began + next / rate);
            next++;
        }
        double due = began + next / rate;
        wake_at(next < total && spares && due < last ? due : last);
        turn();
    }
    return total - next;
}

static void closed_loop(void) {
    double last = began + seconds;
    char *observes = calloc(connections, 1);
    while (now() < last + grace && (now() < last || spares < connections)) {
        while (spares && now() < last) {
            int i = spare[--spares], kind = decisions ? observes[i] : OBSERVATION;
            observes[i] ^= 1;
            say(&table[i], kind, i % sessions, now());
        }
        wake_at(now() < last ? last : last + grace);
        turn();
    }
    free(observes);
}

/* --- what came of it -------------------------------------------------------------------------- */

static int rising(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void say_latencies(const char *name, float *all, long count) {
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 1.0};
    static const char *names[] = {"p50", "p90", "p99", "p999", "max"};
    qsort(all, count, sizeof(float), rising);
    printf("\"%s\":{\"answered\":%ld", name, count);
    for (int i = 0; i < 5 && count; i++) {
        long at = (long)(shares[i] * count);
        printf(",\"%s\":%.3f", names[i], 1e3 * all[at < count ? at : count - 1]);
    }
    printf("}");
}

static void report(double lasted, long unsent) {
    long count = answered[0] + answered[1] + answered[2];
    float *all = malloc((count + 1) * sizeof(float));
    if (!all) fail("memory");
    for (int kind = 0, at = 0; kind < KINDS; at += answered[kind++])
        if (answered[kind]) memcpy(all + at, latencies[kind], answered[kind] * sizeof(float));
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    printf("{\"sent\":%ld,\"unsent\":%ld,\"unanswered\":%ld,", sent[0] + sent[1], unsent,
           sent[0] + sent[1] - count - errors);
    printf("\"errors\":%ld,\"reconnects\":%ld,\"retry_after\":%ld,\"status\":{", errors, reconnects,
           with_retry_after);
    for (int status = 0, any = 0; status < 600; status++)
        if (by_status[status]) printf("%s\"%d\":%ld", any++ ? "," : "", status, by_status[status]);
    printf("},\"seconds\":%.4f,\"rate\":%.2f,\"cpu\":%.4f,", lasted, count / lasted,
           own.ru_utime.tv_sec + own.ru_stime.tv_sec +
               1e-6 * (own.ru_utime.tv_usec + own.ru_stime.tv_usec));
    say_latencies("all", all, count);
    for (int kind = 0; kind < KINDS; kind++) {
        printf(",");
        say_latencies(kind_names[kind], latencies[kind], answered[kind]);
    }
    printf("}\n");
}

static void read_arguments(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) errno = EINVAL, fail(argv[i]);
        *value++ = 0;
        struct { const char *name; const char **text; int *whole; double *real; } known[] = {
            {"mode", &mode, 0, 0}, {"host", &host, 0, 0}, {"prefix", &prefix, 0, 0},
            {"token", &token, 0, 0}, {"port", 0, &port, 0}, {"sessions", 0, &sessions, 0},
            {"n", 0, &n, 0}, {"connections", 0, &connections, 0}, {"first", 0, &first, 0},
            {"decisions", 0, &decisions, 0}, {"idle", 0, &idle, 0}, {"rate", 0, 0, &rate},
            {"seconds", 0, 0, &seconds}, {"grace", 0, 0, &grace},
        };
        size_t k = 0, count = sizeof known / sizeof *known;
        if (!strcmp(argv[i], "seed")) {
            seed = strtoull(value, NULL, 10);
            continue;
        }
        while (k < count && strcmp(known[k].name, argv[i])) k++;
        if (k == count) errno = EINVAL, fail(argv[i]);
        if (known[k].text) *known[k].text = value;
        if (known[k].whole) *known[k].whole = atoi(value);
        if (known[k].real) *known[k].real = atof(value);
    }
}

static void allow_many_files(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv) {
    read_arguments(argc, argv);
    allow_many_files();
    poll_set = epoll_create1(0);
    clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event tick = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
    if (poll_set < 0 || clock_fd < 0 || epoll_ctl(poll_set, EPOLL_CTL_ADD, clock_fd, &tick))
        fail("epoll");
    table = calloc(connections, sizeof *table);
    spare = calloc(connections, sizeof *spare);
    round_of = calloc(sessions, sizeof *round_of);
    if (!table || !spare || !round_of) fail("memory");
    for (int i = 0; i < sessions; i++) round_of[i] = first;
    for (int i = 0; i < idle; i++)
        if (dial() < 0) fail("an idle connection");
    for (int i = connections - 1; i >= 0; i--) {
        table[i].socket = -1;
        put_back(&table[i]);
    }
    began = now();
    long unsent = 0;
    if (!strcmp(mode, "open")) unsent = open_loop();
    else closed_loop();
    report(now() - began, unsent);
    return 0;
}
