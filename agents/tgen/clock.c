// SPDX-License-Identifier: Apache-2.0
/*
 * Absolute times, and what interrupts a blocked call.
 *
 * Each connection's thread owns one POSIX timer that sends it a signal at its
 * deadline, so that a blocked send() returns what it has queued by then.  A signal
 * that arrives between a look at the clock and the call would be lost: the timer
 * repeats every ALARM_REPEAT_NS until it is disarmed.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tgen.h"

#define ALARM_REPEAT_NS 1000000

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static atomic_bool stop_asked;
static __thread timer_t alarm_timer;
static __thread int64_t alarm_ns = FOREVER;
static __thread volatile sig_atomic_t interrupted;

struct timespec timespec_of(int64_t time_ns)
{
	return (struct timespec){ .tv_sec = time_ns / NS_PER_S,
				  .tv_nsec = time_ns % NS_PER_S };
}

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool stopping(void)
{
	return atomic_load(&stop_asked);
}

void stop_all(void)
{
	atomic_store(&stop_asked, true);
}

static void woken(int number)
{
	(void)number;
	interrupted = 1; /* and a blocked call returns */
}

/* Timers to the nanosecond, and a signal that interrupts calls and does no more. */
void clock_init(void)
{
	struct sigaction action = { .sa_handler = woken };
	sigset_t set;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	sigaction(WAKE_SIGNAL, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void wake_signal_unblock(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void alarm_init(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = WAKE_SIGNAL };

	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_REALTIME, &event, &alarm_timer) < 0) {
		perror("tgen: timer_create");
		abort(); /* without it nothing ends on time */
	}
}

void alarm_at(int64_t time_ns)
{
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (time_ns == alarm_ns)
		return;
	alarm_ns = time_ns;
	if (time_ns != FOREVER) {
		when.it_value = timespec_of(time_ns);
		when.it_interval = timespec_of(ALARM_REPEAT_NS);
	}
	timer_settime(alarm_timer, TIMER_ABSTIME, &when, NULL);
}

/* Reads the clock only after a signal. */
bool alarm_is_due(void)
{
	if (!interrupted || alarm_ns == FOREVER)
		return false;
	interrupted = 0;
	return now_ns() >= alarm_ns;
}

bool sleep_until(int64_t time_ns)
{
	struct timespec when = timespec_of(time_ns);

	while (!stopping())
		if (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &when, NULL) != EINTR)
			return true;
	return false;
}
