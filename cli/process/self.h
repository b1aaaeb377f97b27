/* self.h: this process: its name, its limits, the signals it gets, and the programs
 * that it starts. */
#ifndef IDEM_CLI_PROCESS_SELF_H
#define IDEM_CLI_PROCESS_SELF_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file of this program, even if its name belongs to another file by now. */
#define SELF_PROGRAM "/proc/self/exe"

/* A descriptor of the process that opens this, as a file. */
#define SELF_DESCRIPTOR "/proc/self/fd/%d"

/* The name that ps(1) and top(1) show, of which 15 bytes are kept. */
void self_set_name(const char *name);

/* To be called in a child of @parent after fork(): the kernel sends @signo when @parent
 * ends. If it has ended already, this process ends as if the signal had come. */
void self_end_with(pid_t parent, int signo);

/* ---- Limits -------------------------------------------------------------- */

/* From now on this process and its children leave no core file: it would hold keys,
 * results and tokens. */
void cli_cores_off(void);

/* To be called between fork and exec: gives the command the limit that this process was
 * started with. */
void cli_cores_back(void);

/* Ignores SIGXFSZ, so that a write past RLIMIT_FSIZE fails with EFBIG, like one to a
 * full disk, and does not kill this process. */
void cli_filesize_no_signal(void);

/* ---- Signals ------------------------------------------------------------- */

/* The first process of a PID namespace gets no signal whose action is the default:
 * SIGTERM would not end it, and a container would be killed after its grace period. If
 * this process is the first, SIGHUP, SIGINT, SIGQUIT and SIGTERM end it from now on
 * with exit status 128+N. A command may still install its own handlers. */
void cli_first_process(void);

/* A non-blocking descriptor, closed on exec, that is readable while a signal of @set is
 * pending. The caller has blocked those signals. -1 with errno. */
int signal_fd_open(const sigset_t *set);

/* Takes the next pending signal and returns its number; 0: none is pending. */
int signal_fd_next(int fd);

/* From now on SIGTERM, SIGINT and SIGHUP make the returned descriptor readable, for
 * good, and do not end this process. Threads that it starts later have them blocked
 * too. -1: no descriptor was left, and the signals act as before. */
int cli_stop_fd(void);

/* Waits for @ms milliseconds, IDEM_NEVER for ever. True: a signal to stop arrived. */
bool cli_stop_within(int fd, int64_t ms);

/* ---- Programs that are started ------------------------------------------- */

/* The environment of this process with the @len variables @own, "NAME=value", which
 * replace those of the same names. The caller frees the list, and nothing in it. NULL:
 * out of memory. */
char **cli_environment_with(char *const *own, size_t len);

struct cli_program {
    const char *path;
    char **argv;
    char **env;
    int input;        /* Becomes its standard input; negative: that is empty. */
    int from;         /* This descriptor ... */
    int to;           /* ... becomes that one. */
    sigset_t blocked; /* The signals that are blocked in it. */
};

/* Starts @program in a process group of its own, so that a signal to our group spares
 * it, and so that it can be killed with all that it starts. 0, or an errno. */
int cli_spawn(const struct cli_program *program, pid_t *ret_pid);

#endif
