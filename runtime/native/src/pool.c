/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each worker has a mailbox: free, reserved by a caller, the seat it is offered, busy, or gone.
 * Callers compete for a free one by compare-and-swap, a worker and the caller that wants its seat
 * back likewise. Only the making of workers takes a lock.
 *
 * A child of fork has no workers and makes its own. It finds out by itself: handlers of
 * pthread_atfork are mixed up by glibc where a library that has some is unloaded while the process
 * forks, and clone knows none.
 */
#define _GNU_SOURCE
#include "pool.h"

#include "float_mode.h"
#include "internal.h"
#include "pace.h"
#include "waiting.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_WORKERS = 1024, PAGE_BYTES = 4096 };

/* In nanoseconds left. */
#define CALLER_SLEEPS 0x80000000u

/* Shorter than any time slice, longer than what the system itself does in between. */
#define SHORT_SLICE_NS 500000u

struct braid_worker {
  _Alignas(128) _Atomic(braid_seat *) mail;
  atomic_uint asleep; /* 1: to be woken; the futex */
  atomic_int caller_cpu;
  long preemptions; /* when it last looked */
  pthread_t thread;
};

/* Values of `mail` that are not seats. */
static braid_seat reserved, busy, gone;

static braid_worker workers[MAX_WORKERS];
static atomic_int worker_count;
static atomic_bool closing;

/* Held to make workers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A page for itself, which a child of fork finds empty (`is_wiped`) or with its parent's number. */
static _Alignas(PAGE_BYTES) struct {
  atomic_int owner; /* the process that all above is of, CLAIMED, or 0 */
  char rest[PAGE_BYTES - sizeof(atomic_int)];
} page;
static bool is_wiped;

enum { CLAIMED = -1 }; /* by a thread that makes it that of its process */

static atomic_int cpus; /* that the process may use; 0 before that is known */

/* When to ask the system again for one more, after it has refused: asking for every kernel would
 * cost too much. */
static _Atomic uint64_t asks_at;
#define PAUSE_NS 1000000000u

/* How often the calling thread lost its CPU though it wanted to go on. */
static long count_preemptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static bool was_preempted(braid_worker *worker) {
  long before = worker->preemptions;
  worker->preemptions = count_preemptions();
  return worker->preemptions != before;
}

static bool is_seat(const braid_seat *mail) {
  return mail != NULL && mail != &reserved && mail != &busy && mail != &gone;
}

static void sleep_until_mail(braid_worker *worker) {
  /* Sequentially consistent with the callers' accesses: they see that it sleeps, or it sees their
   * mail. */
  atomic_store(&worker->asleep, 1);
  while (atomic_load(&worker->asleep) == 1 && !is_seat(atomic_load(&worker->mail)) &&
         !atomic_load(&closing))
    braid_futex_wait(&worker->asleep, 1);
  atomic_store(&worker->asleep, 0);
  worker->preemptions = count_preemptions();
}

/* The next seat; NULL when the pool closes. */
static braid_seat *await_mail(braid_worker *worker) {
  for (braid_spin spin = {0};;) {
    braid_seat *mail = atomic_load_explicit(&worker->mail, memory_order_acquire);
    if (is_seat(mail))
      return mail;
    /* Who has reserved this one may never go on, when the process ends. */
    if (atomic_load_explicit(&closing, memory_order_relaxed) &&
        atomic_compare_exchange_strong(&worker->mail, &mail, &gone))
      return NULL;
    if (!braid_spin_on(&spin)) {
      sleep_until_mail(worker);
      spin = (braid_spin){0};
    }
  }
}

/* Moves the calling thread to another CPU that it may use, if it is on this one; returns whether it
 * was moved. A thread that wakes up while all CPUs are taken often finds itself on that of its
 * caller. */
static bool leave_cpu(int cpu) {
  cpu_set_t allowed, others;
  if (sched_getcpu() != cpu || cpu < 0 || cpu >= CPU_SETSIZE ||
      sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return false;
  others = allowed;
  CPU_CLR((size_t)cpu, &others);
  return CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0 &&
         sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

static void take_seat(braid_worker *worker, braid_seat *seat) {
  braid_team *team = seat->team;
  if (sched_getcpu() == team->cpu && !team->must_come) {
    /* The caller waits for this CPU, and is faster without help. */
    atomic_fetch_add_explicit(&team->homeless, 1, memory_order_relaxed);
  } else {
    braid_set_float_mode(team->float_mode);
    team->work(seat);
    /* Rarely does the caller have to sleep, so that looking is not expensive. */
    if (atomic_load_explicit(&team->left, memory_order_relaxed) & CALLER_SLEEPS &&
        was_preempted(worker))
      atomic_fetch_add_explicit(&team->preempted, 1, memory_order_relaxed);
  }
  /* Free before the caller goes on, so that its next team finds this worker. */
  atomic_store_explicit(&worker->mail, NULL, memory_order_release);
  if (atomic_fetch_sub(&team->left, 1) == (CALLER_SLEEPS | 1))
    braid_futex_wake(&team->left, 1); /* the team may have gone: its address is all that counts */
}

static void *serve(void *argument) {
  braid_worker *worker = argument;
  worker->preemptions = count_preemptions();
  for (braid_seat *seat; (seat = await_mail(worker)) != NULL;) {
    /* Moving may take long, so that the seat is not taken before. */
    if (leave_cpu(atomic_load_explicit(&worker->caller_cpu, memory_order_relaxed)))
      worker->preemptions = count_preemptions(); /* the move is one to the system */
    if (atomic_compare_exchange_strong(&worker->mail, &seat, &busy))
      take_seat(worker, seat);
  }
  return NULL;
}

/* ---- fork ---- */

__attribute__((constructor)) static void open_pool(void) {
  is_wiped =
      sysconf(_SC_PAGESIZE) == PAGE_BYTES && madvise(&page, PAGE_BYTES, MADV_WIPEONFORK) == 0;
}

static bool is_of_this_process(int owner) { return owner > 0 && (is_wiped || owner == getpid()); }

/* Forgets the workers of a parent, in the only thread that is at the pool. */
static void forget_workers(void) {
  pthread_mutex_init(&lock, NULL);
  for (int i = 0; i < atomic_load(&worker_count); ++i) {
    atomic_store(&workers[i].mail, NULL);
    atomic_store(&workers[i].asleep, 0);
  }
  atomic_store(&worker_count, 0);
  atomic_store(&cpus, 0);
  atomic_store(&asks_at, 0);
  braid_pace_reset();
}

/* Whether the pool belongs to this process; false while another thread resets it. */
static bool claim_pool(void) {
  int owner = atomic_load_explicit(&page.owner, memory_order_acquire);
  if (is_of_this_process(owner))
    return true;
  if (owner == CLAIMED || !atomic_compare_exchange_strong(&page.owner, &owner, CLAIMED))
    return false;
  forget_workers();
  atomic_store_explicit(&page.owner, getpid(), memory_order_release);
  return true;
}

/* ---- Making workers, and ending them ---- */

/* Whether a team of `wanted` may add to so many workers. All callers together have so many that one
 * CPU is left to one of them, or as many as one team asks for. */
static bool may_add(int64_t wanted, int count) {
  int known = atomic_load(&cpus);
  return count < MAX_WORKERS && !atomic_load(&closing) &&
         (known == 0 || count < known - 1 || count < wanted - 1) &&
         braid_now() >= atomic_load(&asks_at);
}

static bool start_thread(braid_worker *worker) {
  bool started = pthread_create(&worker->thread, NULL, serve, worker) == 0;
  if (started)
    pthread_setname_np(worker->thread, "braid");
  return started;
}

/* With the lock: one more worker, reserved for the caller; NULL where there may be none. */
static braid_worker *make_worker(int64_t wanted) {
  if (atomic_load(&cpus) == 0)
    atomic_store(&cpus, (int)braid_available_cpus());
  int count = atomic_load(&worker_count);
  if (!may_add(wanted, count))
    return NULL;
  braid_worker *worker = &workers[count];
  atomic_store(&worker->mail, &reserved);
  if (!start_thread(worker)) {
    atomic_store(&worker->mail, NULL);
    atomic_store(&asks_at, braid_now() + PAUSE_NS);
    return NULL;
  }
  atomic_store(&worker_count, count + 1);
  return worker;
}

static braid_worker *add_worker(int64_t wanted) {
  if (!may_add(wanted, atomic_load(&worker_count)))
    return NULL;
  /* Handlers of the program run in threads of the program; and one that ends the process must not
   * interrupt who has the lock. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&lock);
  braid_worker *worker = make_worker(wanted);
  pthread_mutex_unlock(&lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return worker;
}

static void wake(braid_worker *worker) {
  if (atomic_load(&worker->asleep) == 1 && atomic_exchange(&worker->asleep, 0) == 1)
    braid_futex_wake(&worker->asleep, 1);
}

/* When the process ends, and when the library leaves it, whose code the workers run. Then no run is
 * in progress and all of them are free; but a process may also end during runs, for example in a
 * signal handler that interrupted one, and then the system ends the busy threads. */
__attribute__((destructor)) static void close_pool(void) {
  if (!is_of_this_process(atomic_load(&page.owner)))
    return;
  pthread_mutex_lock(&lock);
  atomic_store(&closing, true);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < atomic_load(&worker_count); ++i) {
    wake(&workers[i]);
    braid_seat *mail = atomic_load(&workers[i].mail);
    if (mail == NULL || mail == &gone)
      pthread_join(workers[i].thread, NULL);
  }
}

/* ---- Teams ---- */

void braid_team_gather(braid_team *team, int64_t wanted) {
  if (wanted > BRAID_MAX_TEAM)
    wanted = BRAID_MAX_TEAM;
  if (wanted > 1)
    wanted = claim_pool() ? 1 + braid_pace_allowed((int)wanted - 1) : 1;
  int count = wanted > 1 ? atomic_load(&worker_count) : 0;
  team->seats[0].worker = NULL;
  team->size = 1;
  for (int i = 0; i < count && team->size < wanted; ++i) {
    braid_seat *mail = NULL;
    if (atomic_load_explicit(&workers[i].mail, memory_order_relaxed) == NULL &&
        atomic_compare_exchange_strong(&workers[i].mail, &mail, &reserved))
      team->seats[team->size++].worker = &workers[i];
  }
  for (braid_worker *added; team->size < wanted && (added = add_worker(wanted)) != NULL;)
    team->seats[team->size++].worker = added;
}

void braid_team_start(braid_team *team) {
  team->cpu = sched_getcpu();
  team->float_mode = braid_float_mode();
  atomic_init(&team->left, (unsigned)team->size - 1);
  atomic_init(&team->homeless, 0);
  atomic_init(&team->preempted, 0);
  for (int i = 0; i < team->size; ++i)
    team->seats[i].team = team;
  for (int i = 1; i < team->size; ++i) {
    braid_worker *worker = team->seats[i].worker;
    atomic_store_explicit(&worker->caller_cpu, team->cpu, memory_order_relaxed);
    atomic_store(&worker->mail, &team->seats[i]);
    wake(worker);
  }
}

static void take_seats_back(braid_team *team) {
  unsigned free = 0;
  for (int i = 1; i < team->size; ++i) {
    braid_seat *mail = &team->seats[i];
    free += atomic_compare_exchange_strong(&team->seats[i].worker->mail, &mail, NULL);
  }
  atomic_fetch_sub(&team->left, free);
}

/* Waits asleep; true if for so long that another process had a worker's CPU meanwhile, rather than
 * the system for a moment. */
static bool sleep_until_done(braid_team *team) {
  uint64_t start = braid_now();
  unsigned left = atomic_fetch_or(&team->left, CALLER_SLEEPS) | CALLER_SLEEPS;
  for (; left != CALLER_SLEEPS; left = atomic_load(&team->left))
    braid_futex_wait(&team->left, left);
  return braid_now() - start > SHORT_SLICE_NS;
}

void braid_team_finish(braid_team *team) {
  if (!team->must_come)
    take_seats_back(team);
  braid_spin spin = {0};
  while (atomic_load_explicit(&team->left, memory_order_acquire) != 0 && braid_spin_on(&spin))
    ;
  bool late = atomic_load(&team->left) != 0 && sleep_until_done(team);
  int crowded = atomic_load_explicit(&team->homeless, memory_order_relaxed);
  if (late)
    crowded += atomic_load_explicit(&team->preempted, memory_order_relaxed);
  if (crowded > 0)
    braid_pace_crowded(team->size - 1, crowded);
}
