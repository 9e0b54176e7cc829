/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgen: sends and receives TCP data on a schedule, samples tcp_info, drains a switch's
 * telemetry.
 *
 * One thread a connection, which sleeps in the kernel (blocking calls, absolute
 * timers) and never spins: in virtual time each wake-up of a user process is dear.
 * All times are CLOCK_REALTIME in nanoseconds; 0 means "not set" or "did not happen".
 */
#ifndef TGEN_H
#define TGEN_H

#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#define NS_PER_S INT64_C(1000000000)
#define ERROR_SIZE 320
#define PARALLEL_MAX 64
#define SCHEDULE_MAX 1024
#define PAUSES_MAX 64
#define UNLIMITED UINT64_MAX
#define NO_OFFSET INT64_C(-1)
#define FOREVER INT64_MAX
#define EXIT_USAGE 2
#define FILE_BUFFER (1 << 20)
#define READ_SIZE (16u << 20)
#define LOWAT_MOST (1u << 18) /* where more would not save anything */
#define LOWAT_SHARE 16	      /* the mark is this part of the receive buffer */

/* When the application writes. */
enum pattern_kind { GREEDY, ON_OFF, STALL_BYTES, STALL_TIME, SCHEDULE };

struct pattern {
	enum pattern_kind kind;
	int64_t a_ns;	/* ON_OFF: on; STALL_TIME: when */
	int64_t b_ns;	/* ON_OFF: off; STALL_*: for how long */
	uint64_t bytes; /* STALL_BYTES: after how much; SCHEDULE: the sum */
	int writes;	/* SCHEDULE */
	int64_t at_ns[SCHEDULE_MAX];
	uint64_t write_bytes[SCHEDULE_MAX];
};

/* A phase of a pattern: at most `bytes` are written between open and close. */
struct phase {
	int64_t open_ns;
	int64_t close_ns;
	uint64_t bytes;
};

/* How a connection failed: the name of an errno that TCP gave, or "incomplete". */
struct failure {
	const char *name; /* NULL: it did not */
	int64_t at_ns;
};

/* Times after the flow's start in which nothing is read. */
struct pauses {
	int count;
	int64_t from_ns[PAUSES_MAX];
	int64_t to_ns[PAUSES_MAX];
};

struct endpoint {
	struct sockaddr_storage at; /* its port is set by endpoint_port() */
	socklen_t length;
	char text[INET6_ADDRSTRLEN];
};

struct options {
	bool server;
	const char *out;
	struct endpoint address; /* serve: bind here; send: connect there */
	struct endpoint bind;	 /* send: the local address */
	uint64_t server_port;
	uint64_t client_port; /* of connection 0; 0: the kernel chooses */
	uint64_t parallel;
	uint64_t start_ns;
	uint64_t end_ns;   /* stop writing */
	uint64_t limit_ns; /* give up whatever has not ended */
	uint64_t seed;
	uint64_t bytes; /* per connection; 0: no limit */
	uint64_t send_buffer;
	uint64_t receive_buffer;
	uint64_t rate; /* bit/s per connection; 0: as fast as it goes */
	uint64_t burst;
	uint64_t write_size;
	uint64_t nodelay;
	uint64_t keepalive; /* ns */
	uint64_t keepalive_probes;
	uint64_t user_timeout; /* ns */
	uint64_t blocking;
	uint64_t reverse;
	uint64_t verify;
	uint64_t read_rate; /* bit/s per connection; 0: as it comes */
	struct pauses read_pause;
	uint64_t resize_ns; /* after the start; with resize_bytes */
	uint64_t resize_bytes;
	uint64_t lowat; /* 0: by the receive buffer */
	uint64_t notsent_lowat;
	const char *cc;
	const char *requests; /* the file of a workload's requests */
	const char *times;    /* the file that their times are written to */
	struct pattern pattern;
};

struct conn {
	const struct options *opt; /* not owned */
	int index;		   /* client port - client_port; -1 until known */
	int listener;		   /* not owned; -1 at a client */
	int fd;			   /* owned; -1 when there is none */
	int poller;		   /* owned; epoll of a non-blocking connection, or -1 */
	uint16_t local_port;
	uint16_t remote_port;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	uint64_t writes;
	uint64_t reads;
	uint64_t lowat; /* as set; 0: not yet */
	int pause;	/* the next one */
	bool resized;
	int64_t read_ns;    /* when a reader with a rate may read again */
	int64_t begin_ns;   /* when the client was to connect, if it woke on time */
	int64_t connect_ns; /* handshake done */
	int64_t first_byte_ns;
	int64_t last_byte_ns;
	int64_t closed_ns;  /* the peer's end of file was read */
	int64_t bad_offset; /* first wrong byte, or NO_OFFSET */
	bool complete;
	int send_buffer; /* as the kernel says, twice what was asked for */
	int receive_buffer;
	char cc[16];
	struct tcp_info info;
	struct failure failure;
	char error[ERROR_SIZE]; /* empty: none */
};

#define WAKE_SIGNAL SIGUSR1

/* clock.c: absolute times, and what interrupts a blocked call */
int64_t now_ns(void);
void clock_init(void);
bool stopping(void);
void stop_all(void);
struct timespec timespec_of(int64_t time_ns);
void alarm_init(void);
void alarm_at(int64_t time_ns); /* FOREVER disarms */
bool alarm_is_due(void);
void wake_signal_unblock(void);
bool sleep_until(int64_t time_ns); /* false: stopping */

/* text.c: numbers, errors, JSON */
bool parse_u64(const char *text, uint64_t least, uint64_t most, uint64_t *value);
const char *errno_text(int error, char *buffer, size_t size);
int cant_write(const char *path); /* says so, by errno; -1 */
/* The first failure counts; number 0: it did not end in time, or lacks bytes. */
void failed(struct failure *failure, int number);
void json_failure(FILE *to, const struct failure *failure);
void json_string(FILE *to, const char *text);
/* A file that appears under its name only when whole; NULL and -1 set errno. */
FILE *open_whole(const char *path);
int close_whole(FILE *file, const char *path);
void fail(char error[ERROR_SIZE], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void fail_errno(char error[ERROR_SIZE], int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* pattern.c */
bool pattern_parse(const char *text, struct pattern *pattern);
/* Phase n of a pattern whose flow began at start_ns; before_ns: when phase n-1 ended. */
bool pattern_phase(const struct pattern *pattern, int64_t start_ns, uint64_t n,
		   int64_t before_ns, struct phase *phase);

/* options.c */
bool options_parse(int argc, char **argv, bool server, struct options *opt,
		   char error[ERROR_SIZE]);
uint64_t options_expected(const struct options *opt); /* bytes, UNLIMITED if unknown */
bool endpoint_parse(const char *text, struct endpoint *endpoint);
void endpoint_port(struct endpoint *endpoint, uint16_t port);
uint16_t sockaddr_port(const struct sockaddr_storage *at);
void usage(FILE *to);

/* content.c: what the bytes are */
void content_fill(void *to, size_t length, uint64_t seed, int conn, uint64_t offset);
/* Index of the first wrong byte, or -1. */
int64_t content_check(const void *got, size_t length, uint64_t seed, int conn,
		      uint64_t offset);

/* socket.c: all false with conn->error set */
int socket_listen(const struct options *opt, char error[ERROR_SIZE]);
bool socket_accept(struct conn *conn);
bool socket_connect(struct conn *conn);
/* A bound socket of a client's connection, not connected; -1 with an error. */
int socket_client(const struct options *opt, int index, char error[ERROR_SIZE]);
void socket_inspect(struct conn *conn);
bool socket_wait(struct conn *conn); /* non-blocking: until ready or interrupted */
void socket_lowat(struct conn *conn, uint64_t bytes);
uint64_t socket_buffer(int fd); /* SO_RCVBUF */
void socket_resize(struct conn *conn, uint64_t bytes);

/* reader.c: a receiver that reads slowly, or not at all for a while */
bool pauses_parse(const char *text, struct pauses *pauses);
/* Waits until it may read; how much of `most` at once.  0: stopping. */
uint64_t reader_wait(struct conn *conn, uint64_t most);
void reader_has_read(struct conn *conn, uint64_t bytes);

/* flow.c */
void flow_send(struct conn *conn);
void flow_receive(struct conn *conn);

/* workload.c: one end of many requests; the exit code */
int workload_run(const struct options *opt, const sigset_t *set);

/* result.c: NULL connections when nothing ran */
void put_error(FILE *to, const char *error);
int result_write(const struct options *opt, const struct conn *conns,
		 const char error[ERROR_SIZE]);

/* subcommands; they return the exit code */
int flow_main(int argc, char **argv, bool server);
int sample_main(int argc, char **argv);
int drain_main(int argc, char **argv);
int at_main(int argc, char **argv);

#endif
