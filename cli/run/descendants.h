/* descendants.h: all descendants of this process, also those that left their group,
 * their session and their parents.
 *
 * The caller of descendants_adopt() becomes the parent of every descendant whose own
 * parent dies, so none can leave the family. They are found in /proc: without
 * it, or with that of another PID namespace, only a process group can be
 * signalled. */
#ifndef IDEM_CLI_RUN_DESCENDANTS_H
#define IDEM_CLI_RUN_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SURVIVOR_TEXT_MAX 256 /* Of descendants_describe(). */

/* A descendant that could not be ended. */
struct descendants_survivor {
    pid_t pid; /* 0: /proc shows none. */
    uid_t uid;
    char state;    /* As in /proc/PID/stat; 'D': uninterruptible. */
    bool denied;   /* It may not be signalled by this user. */
    char name[16]; /* Of its program, NUL-terminated; any other bytes. */
};

/* False with errno if this kernel has no subreapers. */
bool descendants_can_be_adopted(void);

/* Become a subreaper. 0, or -1 with errno: a descendant could get away. */
int descendants_adopt(void);

/* Sends @signo to each descendant once; @group (0: none) is for hosts where
 * they cannot be found. */
void descendants_signal(int signo, pid_t group);

/* Reaps every child that has ended, except @spared (0: none). True if no child is
 * left; an unreaped @spared counts as one. */
bool descendants_reap(pid_t spared);

/* Kills until none is left, for at most @ms. False: some are alive, and
 * @ret_survivor is one of them. */
bool descendants_end(pid_t group, int ms,
                     struct descendants_survivor *ret_survivor);

/* Finds a live descendant, for a message only: finding none proves nothing. Only
 * descendants_reap() proves that none is left. */
void descendants_find_survivor(struct descendants_survivor *ret_survivor);

/* "process 4711 (cp) is in an uninterruptible sleep" */
void descendants_describe(const struct descendants_survivor *survivor,
                          char *buf, size_t size);

#endif
