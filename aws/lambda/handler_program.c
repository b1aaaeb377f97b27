/* Runs a handler that is a program: the event on stdin, the response on stdout. */
#include "aws/lambda/lambda.h"

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The response may begin after so many lines at most. */
#define NOISE_LINES_MAX 100

/* The exit status by which a program reports that nothing happened: EX_TEMPFAIL of
 * sysexits.h, as for idem run. */
#define TRY_LATER 75

/* A running program. */
struct program {
    pid_t pid;
    int in;  /* Takes its event; negative: closed. */
    int out; /* Gives its response. */
    int end; /* Readable once it has ended; negative: there is no such
                descriptor. */
    struct idem_slice rest; /* Of the event. */
    bool stopped;           /* We stopped it before the deadline. */
    bool too_long;
};

/* ---- Starting it ------------------------------------------------------- */

/* Runs in the child of vfork(), which shares our memory until execve(). */
static void become(const char *path, char **env, int in, int out)
{
    char *argv[2] = {NULL, NULL};
    sigset_t none;

    memcpy(&argv[0], &path, sizeof(path));
    (void)setpgid(0, 0);
    idem__die_with_parent(SIGKILL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        (void)execve(path, argv, env);
    }
}

static pid_t spawn(const char *path, char **env, int in, int out)
{
    volatile int why = 0;
    pid_t pid = vfork();

    if (pid == 0) {
        become(path, env, in, out);
        why = errno;
        _exit(127);
    }
    if (pid > 0 && why != 0) {
        (void)waitpid(pid, NULL, 0);
        errno = why;
        return -1;
    }
    return pid;
}

/* Opens a socket for the event and a pipe for the answer. A write to a socket that nobody
 * reads can be made without SIGPIPE; one to a pipe cannot. */
static int open_ways(int event[2], int answer[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, event) != 0) {
        return -1;
    }
    if (pipe2(answer, O_CLOEXEC) != 0) {
        (void)close(event[0]);
        (void)close(event[1]);
        return -1;
    }
    (void)fcntl(event[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(answer[0], F_SETFL, O_NONBLOCK);
    (void)shutdown(event[0], SHUT_RD);
    return 0;
}

static int start(struct idem_lambda *lambda, struct program *program)
{
    int event[2];
    int answer[2];
    char **env;
    int why;

    env = idem__lambda_environment(lambda);
    if (env == NULL) {
        errno = ENOMEM;
        return -1;
    }
    if (open_ways(event, answer) != 0) {
        idem__lambda_environment_free(env);
        return -1;
    }
    program->pid = spawn(lambda->program, env, event[1], answer[1]);
    why = errno;
    idem__lambda_environment_free(env);
    (void)close(event[1]);
    (void)close(answer[1]);
    program->in = event[0];
    program->out = answer[0];
    if (program->pid < 0) {
        (void)close(program->in);
        (void)close(program->out);
        errno = why;
        return -1;
    }
    program->end = idem__child_open(program->pid);
    program->rest = lambda->work.call.event;
    return 0;
}

/* ---- While it works ---------------------------------------------------- */

static void end_input(struct program *program)
{
    (void)close(program->in);
    program->in = -1;
}

static void feed(struct program *program)
{
    ssize_t n =
        send(program->in, program->rest.base, program->rest.len, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end_input(program); /* The program does not read all of it. */
        return;
    }
    if (n > 0) {
        program->rest.base = (const char *)program->rest.base + n;
        program->rest.len -= (size_t)n;
    }
    if (program->rest.len == 0) {
        end_input(program);
    }
}

/* Reads some of the response. False: there will be no more. */
static bool take(struct program *program, struct idem__lambda_run *run)
{
    uint8_t *room = idem__buffer_room(&run->answer, 65536);
    ssize_t n;

    if (room == NULL) {
        run->no_memory = true;
        return false;
    }
    n = read(program->out, room, 65536);
    if (n > 0 && run->answer.len + (size_t)n > IDEM_LAMBDA_RESPONSE_MAX + 1) {
        program->too_long = true; /* Read on, so that the program can end. */
        return true;
    }
    if (n > 0) {
        run->answer.len += (size_t)n;
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Returns how long the program may still work, in ms. */
static int left(const struct idem_lambda *lambda)
{
    int64_t ms = idem__lambda_left_ms(lambda->now) - IDEM__LAMBDA_STOP_MS;

    return ms < 0 ? 0 : ms > 900000 ? 900000 : (int)ms;
}

/* Waits for the program and exchanges bytes with it. True while there is more to wait for.
 * The end of the program ends this, too: processes that it started may hold its output
 * open. */
static bool step(struct idem_lambda *lambda, struct program *program)
{
    struct pollfd fds[3] = {{program->out, POLLIN, 0},
                            {program->in, POLLOUT, 0},
                            {program->end, POLLIN, 0}};
    int ms = left(lambda);

    if (ms == 0) {
        program->stopped = true;
        return false;
    }
    if (poll(fds, 3, ms) <= 0) {
        return true;
    }
    if (program->in >= 0 && fds[1].revents != 0) {
        feed(program);
    }
    if (fds[0].revents != 0) {
        return take(program, &lambda->work);
    }
    return fds[2].revents == 0;
}

static bool has_ended(const struct program *program)
{
    siginfo_t info;

    memset(&info, 0, sizeof(info));
    (void)waitid(P_PID, (id_t)program->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
}

/* Waits for the end of the program, which has closed its output, until its time is up. */
static void wait_for(struct idem_lambda *lambda, struct program *program)
{
    struct pollfd end = {program->end, POLLIN, 0};

    while (!program->stopped && !has_ended(program)) {
        int ms = left(lambda);

        program->stopped = ms == 0;
        (void)poll(&end, 1, program->end < 0 && ms > 1 ? 1 : ms);
    }
}

/* Kills our children: processes of the program that left its group, and that we have
 * adopted (idem__adopt_orphans()). False: there were none. */
static bool kill_children(void)
{
    FILE *list = fopen("/proc/thread-self/children", "re");
    bool any = false;
    int pid;

    if (list == NULL) {
        return false;
    }
    while (fscanf(list, "%d", &pid) == 1) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        any = true;
    }
    (void)fclose(list);
    return any;
}

/* Kills all that still runs: Lambda freezes the process after the answer, and what
 * survived would go on with the next event. Returns how the program ended. */
static int end(struct program *program)
{
    int status = 0;

    (void)kill(-program->pid, SIGKILL);
    while (waitpid(program->pid, &status, 0) < 0 && errno == EINTR) {
    }
    while (kill_children()) {
    }
    if (program->in >= 0) {
        end_input(program);
    }
    if (program->end >= 0) {
        (void)close(program->end);
    }
    (void)close(program->out);
    return status;
}

/* ---- How it ended ------------------------------------------------------ */

/* Cuts output before the response, such as debugging lines: the response is the JSON value
 * at the end. */
static void skip_noise(struct idem__lambda_run *run)
{
    const char *base = (const char *)run->answer.base;
    size_t len = run->answer.len;
    size_t at = 0;
    int tries;

    for (tries = 0; tries < NOISE_LINES_MAX && at < len; tries++) {
        const char *end = memchr(base + at, '\n', len - at);
        struct idem_slice rest = {base + at, len - at};

        if (idem__lambda_is_json(rest)) {
            memmove(run->answer.base, base + at, rest.len);
            run->answer.len = rest.len;
            run->noise_len = at;
            return;
        }
        at = end == NULL ? len : (size_t)(end + 1 - base);
    }
}

/* Sets the error of a program that failed: {"errorType": "Declined", "errorMessage":
 * "..."} from its stdout, or else its exit status. */
static void fail(struct idem__lambda_run *run, int status)
{
    struct json_object *said =
        idem__lambda_parse(idem__buffer_slice(&run->answer));
    struct idem_slice type = idem__json_text_of(said, "errorType");
    struct idem_slice text = idem__json_text_of(said, "errorMessage");
    char plain_type[32];
    char plain_text[64];

    (void)snprintf(plain_type, sizeof(plain_type), "Exit.%d", status);
    (void)snprintf(plain_text, sizeof(plain_text),
                   "the handler ended with exit status %d", status);
    idem__lambda_run_error(run, IDEM__LAMBDA_ERROR,
                           type.len > 0 ? type : idem_str(plain_type),
                           text.len > 0 ? text : idem_str(plain_text));
    run->nothing = status == TRY_LATER;
    (void)json_object_put(said);
}

static bool wrote_nothing(const struct idem__lambda_run *run)
{
    size_t i = 0;

    while (i < run->answer.len &&
           memchr(" \t\r\n", run->answer.base[i], 4) != NULL) {
        i++;
    }
    return i == run->answer.len && !run->no_memory;
}

/* The program ended with success and wrote nothing. Either it did its work silently, or it
 * is a file that only defines a function for another runtime, and did nothing. We cannot
 * tell, so the effect is unknown. */
static void no_response(struct idem__lambda_run *run)
{
    idem__lambda_run_error(
        run, IDEM__LAMBDA_SILENT, idem_str("Idem.NoResponse"),
        idem_str(
            "the handler ended with exit status 0 and wrote no response: a "
            "handler is an executable that reads the event from standard "
            "input and writes its response to standard output, null if it "
            "has none; a function that its file defines is not called"));
}

static void judge(struct idem__lambda_run *run, const struct program *program,
                  int status)
{
    char text[80];

    if (program->stopped) {
        idem__lambda_run_error(run, IDEM__LAMBDA_STOPPED,
                               idem_str("Idem.TimedOut"),
                               idem_str("the handler was stopped at the "
                                        "deadline"));
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(text, sizeof(text),
                       "the handler was killed by signal %d", WTERMSIG(status));
        idem__lambda_run_error(run, IDEM__LAMBDA_STOPPED,
                               idem_str("Idem.Killed"), idem_str(text));
    } else if (WEXITSTATUS(status) != 0) {
        fail(run, WEXITSTATUS(status));
    } else if (wrote_nothing(run)) {
        no_response(run);
    } else {
        run->end = IDEM__LAMBDA_DONE;
        skip_noise(run);
    }
}

void idem__lambda_program_run(struct idem_lambda *lambda)
{
    struct idem__lambda_run *run = &lambda->work;
    struct program program = {.pid = -1};
    int status;

    if (start(lambda, &program) != 0) {
        idem__lambda_run_error(run, IDEM__LAMBDA_NOT_RUN,
                               idem_str("Idem.CannotExecute"),
                               idem_str(strerror(errno)));
        return;
    }
    while (step(lambda, &program)) {
    }
    wait_for(lambda, &program);
    status = end(&program);
    judge(run, &program, status);
    if (program.too_long) {
        run->answer.len = 0;
        run->too_long = true;
    }
}
