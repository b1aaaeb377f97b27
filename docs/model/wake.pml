/* wake.pml: who sleeps until another one wakes them, for the model checker Spin.
 *
 * Three pieces of the library share words that no mutex guards. Each has a part here,
 * chosen by -DPART=..., with its words and steps under their names in the source:
 *
 *     LINE   the line of processes before the lock of a SQLite store,
 *            src/store/sqlite/ticket_lock.c: take a ticket, sleep, be called
 *     QUEUE  a thread that sleeps in a queue until an answer is pushed,
 *            src/queue/queue.c: all words are under its mutex, but the sleep is not
 *     WAIT   a thread that waits in a client of AWS while another says that
 *            something is due earlier, aws/client/transport.c
 *
 * A waiter sleeps here for ever unless it is woken: the deadlines and looks of the
 * source are left out, so that a wake-up that is lost ends in a state in which nobody
 * can go on, which Spin reports. Left out too are those that leave the line or come to
 * its head; they may cost a waiter a look of a millisecond, as ticket_lock.c says.
 *
 * The steps are those of memory in which each access is seen by all at once and in
 * the order of the program. C promises this to words that are accessed only with
 * __ATOMIC_SEQ_CST, on every processor; the test holds the source to it. Each name
 * after an #ifdef is a mistake, and two are those of weaker accesses:
 *
 *     STORES_LATE   a store reaches the others after later steps of its thread (a
 *                   store buffer: what x86 and ARM do where the order is weaker)
 *     LOADS_SWAPPED two loads of a waiter are made in the other order (what ARM does)
 *     NO_WAKE       the sleeper is not woken
 *     LOOK_LATE     the word to sleep on is read when the reason to sleep is known
 *
 *     spin -a -DPART=LINE wake.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 */

#define LINE 1
#define QUEUE 2
#define WAIT 3

/* futex(2): sleeps if the word is still what was seen; the kernel looks and lies down
 * in one step. */
#define FUTEX_WAIT(word, seen, me)                                             \
    atomic {                                                                   \
        if                                                                     \
        :: word != seen                                                        \
        :: else -> asleep[me] = true                                           \
        fi                                                                     \
    }                                                                          \
    !asleep[me]

#if PART == LINE

#define PROCESSES 3
#define TICKETS 4 /* Ticket PROCESSES is given out to nobody. */

byte next;   /* The ticket that is given out next. */
byte served; /* The ticket whose turn it is, or was last. */
bool held;   /* The lock: fcntl(2), in the kernel. */
byte wake_words[TICKETS];
byte owner[TICKETS];
bool asleep[PROCESSES];
byte inside;

#ifdef STORES_LATE
byte late; /* The store of served that the others do not see yet; 0: none. */

active proctype buffer()
{
    end:
    do
    :: atomic { late != 0 -> served = late; late = 0 }
    od
}
#endif

active [PROCESSES] proctype process()
{
    byte me = _pid;
    byte ticket;
    byte heard;
    byte turn;

#ifdef STORES_LATE
    me = _pid - 1;
#endif
    atomic { ticket = next; owner[ticket] = me; next++ } /* take_ticket() */
    do                                                   /* wait_in_line() */
    ::
#ifdef LOADS_SWAPPED
        turn = served;
        heard = wake_words[ticket];
#else
        heard = wake_words[ticket];
        turn = served;
#endif
        if
        :: turn == ticket ->
            atomic {
                if
                :: !held -> held = true; goto taken
                :: else
                fi
            }
        :: else
        fi;
#ifdef LOOK_LATE
        heard = wake_words[ticket];
#endif
        FUTEX_WAIT(wake_words[ticket], heard, me)
    od;
taken:
    inside++;
    assert(inside == 1);
    inside--;
    /* idem__ticket_lock_pass() */
#ifdef STORES_LATE
    late = ticket + 1;
#else
    served = ticket + 1;
#endif
    held = false;
    if /* ring() */
    :: next != ticket + 1 ->
        wake_words[ticket + 1]++;
#ifndef NO_WAKE
        asleep[owner[ticket + 1]] = false
#endif
    :: else
    fi
}

#elif PART == QUEUE

bool mutex;
byte answered;
byte sleepers;
byte wake_word;
bool asleep[2];

#define LOCK atomic { !mutex -> mutex = true }
#define UNLOCK mutex = false

/* idem__queue_sleep(), and the pop() after it. */
active [2] proctype sleeper()
{
    byte seen;

    LOCK;
    sleepers++;
    do
    :: answered == 0 ->
#ifdef LOOK_LATE
        UNLOCK;
        seen = wake_word;
#else
        seen = wake_word;
        UNLOCK;
#endif
        FUTEX_WAIT(wake_word, seen, _pid);
        LOCK
    :: else -> break
    od;
    sleepers--;
    answered--;
    UNLOCK
}

/* idem_queue_push(), twice. */
active proctype pusher()
{
    byte n;
    bool wake;

    do
    :: n < 2 ->
        LOCK;
        answered++;
        wake = sleepers > 0;
        if
        :: wake -> wake_word++
        :: else
        fi;
        UNLOCK;
        if
#ifndef NO_WAKE
        :: wake -> atomic { asleep[0] = false; asleep[1] = false }
#endif
        :: else
        fi;
        n++
    :: else -> break
    od
}

#elif PART == WAIT

#define LONG 9

byte due = LONG;   /* When work is needed. */
byte sleep_until;  /* The end of the wait under way; 0: nobody waits. */
bool woken;        /* The event is set. */

#ifdef STORES_LATE
byte late; /* The store of due that the waiter does not see yet; 0: none. */

active proctype buffer()
{
    end:
    do
    :: atomic { late != 0 -> due = late; late = 0 }
    od
}
#endif

/* begin_wait() and idem__aws_wait(), which here waits for ever and not until LONG. */
active proctype waiter()
{
    byte until = LONG;

#ifdef LOADS_SWAPPED
    byte seen = due;

    sleep_until = until;
#else
    byte seen;

    sleep_until = until;
    seen = due;
#endif
    if
    :: seen < until -> sleep_until = seen
    :: else -> woken
    fi
}

/* say_due() */
active proctype sayer()
{
#ifdef STORES_LATE
    late = 1;
#else
    due = 1;
#endif
#ifndef NO_WAKE
    if
    :: 1 < sleep_until -> woken = true
    :: else
    fi
#endif
}

#endif
