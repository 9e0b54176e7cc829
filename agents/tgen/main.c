// SPDX-License-Identifier: Apache-2.0
/* Subcommands, threads and signals. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tgen.h"

#define STACK_SIZE (256 * 1024)
#define RETRY_NS 1000000 /* between wake-ups of a thread that is to stop */

static atomic_int running;
static pthread_t main_thread;

static void finish(struct conn *conn)
{
	socket_inspect(conn);
	if (conn->poller >= 0)
		close(conn->poller);
	if (conn->fd >= 0)
		close(conn->fd);
	atomic_fetch_sub(&running, 1);
	pthread_kill(main_thread, SIGUSR2);
}

static void *run(void *argument)
{
	struct conn *conn = argument;
	const struct options *opt = conn->opt;

	wake_signal_unblock();
	alarm_init();
	if (opt->server ? socket_accept(conn) : socket_connect(conn)) {
		if (opt->server == (bool)opt->reverse)
			flow_send(conn);
		else
			flow_receive(conn);
	}
	finish(conn);
	return NULL;
}

/* SIGTERM and SIGINT stop; SIGUSR2 says that a connection has ended. */
static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR2);
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* One signal of the set, or 0 at limit_ns (0: no limit). */
static int next_signal(const sigset_t *set, int64_t limit_ns)
{
	int64_t left_ns = limit_ns - now_ns();
	struct timespec left = { .tv_sec = left_ns / NS_PER_S,
				 .tv_nsec = left_ns % NS_PER_S };
	int number;

	if (limit_ns && left_ns <= 0)
		return 0;
	number = sigtimedwait(set, NULL, limit_ns ? &left : NULL);
	return number < 0 && errno == EAGAIN ? 0 : number;
}

/* Waits for the threads; when asked to stop wakes each until it has seen that. */
static void supervise(const pthread_t *threads, int count, const sigset_t *set,
		      int64_t limit_ns)
{
	while (atomic_load(&running) > 0) {
		int64_t until_ns = stopping() ? now_ns() + RETRY_NS : limit_ns;
		int number = next_signal(set, until_ns);

		if (number == SIGTERM || number == SIGINT || number == 0)
			stop_all();
		for (int i = 0; stopping() && i < count; i++)
			pthread_kill(threads[i], WAKE_SIGNAL);
	}
}

static void start(struct conn *conns, pthread_t *threads, int count)
{
	pthread_attr_t attributes;

	main_thread = pthread_self();
	atomic_store(&running, count);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (int i = 0; i < count; i++) {
		int error = pthread_create(&threads[i], &attributes, run, &conns[i]);

		if (error) {
			fprintf(stderr, "tgen: can't start a thread: %s\n",
				strerror(error));
			exit(EXIT_FAILURE);
		}
	}
	pthread_attr_destroy(&attributes);
}

static int by_index(const void *a, const void *b)
{
	return ((const struct conn *)a)->index - ((const struct conn *)b)->index;
}

/* Every connection to its end; error is the first one's. */
static void run_all(const struct options *opt, struct conn *conns, int listener,
		    const sigset_t *set, char error[ERROR_SIZE])
{
	int count = (int)opt->parallel;
	pthread_t threads[PARALLEL_MAX];

	for (int i = 0; i < count; i++)
		conns[i] = (struct conn){
			.opt = opt,
			.listener = listener,
			.index = opt->server && opt->client_port ? -1 : i,
			.fd = -1,
			.poller = -1,
			.bad_offset = NO_OFFSET,
		};
	start(conns, threads, count);
	supervise(threads, count, set, (int64_t)opt->limit_ns);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	qsort(conns, (size_t)count, sizeof(*conns), by_index);
	for (int i = 0; i < count; i++)
		if (conns[i].error[0])
			fail(error, "connection %d: %.250s", conns[i].index,
			     conns[i].error);
}

int flow_main(int argc, char **argv, bool server)
{
	static struct options opt; /* large: the schedule */
	static struct conn conns[PARALLEL_MAX];
	const char *name = server ? "serve" : "send";
	char error[ERROR_SIZE] = "";
	int code = EXIT_FAILURE;
	int listener = -1;
	sigset_t set;

	block_signals(&set);
	if (!options_parse(argc, argv, server, &opt, error)) {
		result_write(&opt, NULL, error);
		fprintf(stderr, "tgen %s: %s\n", name, error);
		return EXIT_USAGE;
	}
	if (opt.requests)
		return workload_run(&opt, &set);
	if (server)
		listener = socket_listen(&opt, error);
	if (!error[0]) {
		if (server && (puts("ready") < 0 || fflush(stdout)))
			fail_errno(error, errno, "can't say ready");
		run_all(&opt, conns, listener, &set, error);
		code = EXIT_SUCCESS;
	}
	if (listener >= 0)
		close(listener);
	if (result_write(&opt, code == EXIT_SUCCESS ? conns : NULL, error) < 0 ||
	    error[0])
		code = EXIT_FAILURE;
	if (error[0])
		fprintf(stderr, "tgen %s: %s\n", name, error);
	return code;
}

/* Becomes a program at an absolute time. */
int at_main(int argc, char **argv)
{
	const char *key = "start_ns=";
	char name[80];
	uint64_t start_ns;

	if (argc < 2 || strncmp(argv[0], key, strlen(key)) ||
	    !parse_u64(argv[0] + strlen(key), 0, INT64_MAX / 2, &start_ns)) {
		fprintf(stderr, "tgen at: want start_ns=N and a program; got '%s'\n",
			argc ? argv[0] : "");
		return EXIT_USAGE;
	}
	sleep_until((int64_t)start_ns);
	execvp(argv[1], argv + 1);
	fprintf(stderr, "tgen at: can't start %s: %s\n", argv[1],
		errno_text(errno, name, sizeof(name)));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (!strcmp(word, "at")) /* its program gets no signal mask of ours */
		return at_main(argc - 2, argv + 2);
	clock_init();
	if (!strcmp(word, "serve") || !strcmp(word, "send"))
		return flow_main(argc - 2, argv + 2, !strcmp(word, "serve"));
	if (!strcmp(word, "sample"))
		return sample_main(argc - 2, argv + 2);
	if (!strcmp(word, "drain"))
		return drain_main(argc - 2, argv + 2);
	if (!strcmp(word, "help")) {
		usage(stdout);
		return EXIT_SUCCESS;
	}
	fprintf(stderr, "tgen: want serve, send, sample, drain, at or help; got '%s'\n",
		word);
	usage(stderr);
	return EXIT_USAGE;
}
