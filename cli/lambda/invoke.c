/* A function that has a runtime of its own, invoked here: what Lambda does with it. */
#include "lambda/lambda.h"
#include "lambda/runtime_api.h"
#include "process/clock.h"
#include "process/spawn.h"
#include "process/stop.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    LOOK_MS = 20,
    INIT_MS = 10000, /* To ask for the event; as on Lambda. */
    END_MS = 1000,   /* To come back for the next one, after its answer. */
    STOPPED = 130,
};

/* ---- The process ------------------------------------------------------- */

struct process {
    pid_t pid; /* 0: it has ended. */
    int status;
};

struct environment {
    char **list;
    size_t own; /* Those that are ours to free, at its beginning. */
};

static bool is_named(const char *entry, const char *named)
{
    size_t len = strcspn(named, "=") + 1;

    return strncmp(entry, named, len) == 0;
}

static bool is_own(const struct environment *env, const char *entry)
{
    size_t i;

    for (i = 0; i < env->own; i++) {
        if (is_named(entry, env->list[i])) {
            return true;
        }
    }
    return false;
}

static bool add(struct environment *env, const char *name, const char *value)
{
    if (asprintf(&env->list[env->own], "%s=%s", name, value) < 0) {
        return false;
    }
    env->own++;
    return true;
}

/* Unless it is there, which Lambda would not have set otherwise. */
static bool add_usual(struct environment *env, const char *name,
                      const char *value)
{
    return getenv(name) != NULL || add(env, name, value);
}

static bool fill(struct environment *env, const struct lambda_program *program,
                 unsigned port)
{
    const char *slash = strrchr(program->path, '/');
    const char *name = slash == NULL ? program->path : slash + 1;
    char address[32];
    char here[4096];

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    return add(env, "AWS_LAMBDA_RUNTIME_API", address) &&
           add(env, "IDEM_STORE", program->store) &&
           (program->handler == NULL
                ? add_usual(env, "_HANDLER", name)
                : add(env, "_HANDLER", program->handler)) &&
           add_usual(env, "AWS_LAMBDA_FUNCTION_NAME", "local") &&
           (getcwd(here, sizeof(here)) == NULL ||
            add_usual(env, "LAMBDA_TASK_ROOT", here));
}

static void environment_free(struct environment *env)
{
    size_t i;

    for (i = 0; i < env->own; i++) {
        free(env->list[i]);
    }
    free(env->list);
}

static bool environment_init(struct environment *env,
                             const struct lambda_program *program,
                             unsigned port)
{
    size_t len = 0;
    size_t n;
    size_t i;

    while (environ[len] != NULL) {
        len++;
    }
    env->own = 0;
    env->list = calloc(len + 8, sizeof(*env->list));
    if (env->list == NULL || !fill(env, program, port)) {
        environment_free(env);
        return false;
    }
    n = env->own;
    for (i = 0; i < len; i++) {
        if (!is_own(env, environ[i])) {
            env->list[n++] = environ[i];
        }
    }
    return true;
}

static int start(const struct lambda_program *program, unsigned port,
                 struct process *process)
{
    char *argv[2] = {NULL, NULL};
    struct environment env;
    int rc;

    if (!environment_init(&env, program, port)) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    memcpy(&argv[0], &program->path, sizeof(argv[0]));
    /* Its output is its log; our output is what it answers. */
    rc = cli_spawn(program->path, argv, env.list, /* input= */ -1,
                   &process->pid);
    environment_free(&env);
    if (rc != 0) {
        cli_say("--program: cannot execute %s: %s", program->path,
                strerror(rc));
        return rc == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    }
    return 0;
}

static bool has_ended(struct process *process)
{
    if (process->pid != 0 &&
        waitpid(process->pid, &process->status, WNOHANG) == process->pid) {
        process->pid = 0;
    }
    return process->pid == 0;
}

static void kill_process(struct process *process, pid_t group)
{
    (void)kill(-group, SIGKILL);
    if (process->pid != 0) {
        (void)waitpid(process->pid, &process->status, 0);
        process->pid = 0;
    }
}

/* ---- Until it has answered --------------------------------------------- */

enum wait_end {
    WAIT_ANSWERED = 1,
    WAIT_ENDED,   /* The process, without an answer. */
    WAIT_TIMEOUT, /* Of the function. */
    WAIT_SILENT,  /* It has not asked for the event. */
    WAIT_STOP,    /* We are to stop. */
};

static bool pause_for(const struct lambda_api *api, int stop)
{
    struct pollfd fds[] = {{.fd = lambda_api_fd(api), .events = POLLIN},
                           {.fd = stop, .events = POLLIN}};

    (void)poll(fds, 2, LOOK_MS);
    return fds[1].revents == 0;
}

static enum wait_end await(struct lambda_api *api, struct process *process,
                           int stop, struct lambda_answer *answer)
{
    int64_t silent_ms = cli_mono_ms() + INIT_MS;

    while (pause_for(api, stop)) {
        bool ended = has_ended(process);

        /* The answer that it gave before it ended is there by now. */
        lambda_api_look(api, answer);
        if (answer->end != LAMBDA_OPEN) {
            return WAIT_ANSWERED;
        }
        if (ended) {
            return WAIT_ENDED;
        }
        if (answer->deadline_ms == 0 ? cli_mono_ms() >= silent_ms
                                     : cli_now_ms() >= answer->deadline_ms) {
            return answer->deadline_ms == 0 ? WAIT_SILENT : WAIT_TIMEOUT;
        }
    }
    return WAIT_STOP;
}

/* It may have something to do after its answer, as on Lambda before it is frozen. */
static void let_finish(struct lambda_api *api, struct process *process,
                       int stop)
{
    int64_t until_ms = cli_mono_ms() + END_MS;
    struct lambda_answer answer = {.asked_again = false};

    while (!answer.asked_again && !has_ended(process) &&
           cli_mono_ms() < until_ms && pause_for(api, stop)) {
        lambda_api_look(api, &answer);
    }
}

/* ---- What is said of it ------------------------------------------------ */

/* As Lambda words it. */
static int print_error(const char *type, const char *text)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_text(&json, "errorType", type);
    cli_json_text(&json, "errorMessage", text);
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status == 0 ? CLI_NO_RECORD : status;
}

static int print_ended(const struct process *process)
{
    char text[64];

    if (WIFSIGNALED(process->status)) {
        (void)snprintf(text, sizeof(text),
                       "Runtime exited with error: signal: %s",
                       strsignal(WTERMSIG(process->status)));
    } else {
        (void)snprintf(text, sizeof(text),
                       "Runtime exited with error: exit status %d",
                       WEXITSTATUS(process->status));
    }
    return print_error("Runtime.ExitError", text);
}

static int print_timeout(const struct lambda_event *event)
{
    char text[64];

    (void)snprintf(text, sizeof(text),
                   "Task timed out after %lld.%02lld seconds",
                   (long long)(event->time_ms / 1000),
                   (long long)(event->time_ms % 1000 / 10));
    return print_error("Sandbox.Timedout", text);
}

static int say_init(const struct lambda_answer *answer)
{
    struct json_object *body =
        json_tokener_parse(answer->body.len == 0 ? "" : answer->body.base);
    struct json_object *text;
    char shown[1024];

    if (json_object_object_get_ex(body, "errorMessage", &text)) {
        cli_say("the function cannot be set up: %s",
                cli_escape(idem_str(json_object_get_string(text)), shown,
                           sizeof(shown)));
    } else {
        cli_say("the function cannot be set up; its log says why");
    }
    (void)json_object_put(body);
    return CLI_CONFIG;
}

static int print_answer(const struct lambda_answer *answer)
{
    const char *text = answer->body.base;
    size_t len = answer->body.len;

    (void)fwrite(text, 1, len, stdout);
    if (len == 0 || text[len - 1] != '\n') {
        (void)putchar('\n');
    }
    return answer->end == LAMBDA_RESPONSE ? CLI_OK : CLI_NO_RECORD;
}

static int conclude(enum wait_end end, const struct process *process,
                    const struct lambda_event *event,
                    const struct lambda_answer *answer)
{
    switch (end) {
    case WAIT_ANSWERED:
        return answer->end == LAMBDA_INIT_ERROR ? say_init(answer)
                                                : print_answer(answer);
    case WAIT_ENDED:
        return print_ended(process);
    case WAIT_TIMEOUT:
        return print_timeout(event);
    case WAIT_SILENT:
        cli_say("--program: it has not asked the Runtime API for an event in "
                "%d seconds: an executable that is a handler goes to --handler",
                INIT_MS / 1000);
        return CLI_CONFIG;
    case WAIT_STOP:
        break;
    }
    return STOPPED;
}

int lambda_invoke(const struct lambda_program *program,
                  const struct lambda_event *event)
{
    struct lambda_answer answer = {.end = LAMBDA_OPEN};
    struct process process = {.pid = 0};
    int stop = cli_stop_fd(); /* Before there is a thread, which inherits it. */
    struct lambda_api *api;
    enum wait_end end;
    unsigned port;
    pid_t group;
    int status;

    status = lambda_api_start(event, &api, &port);
    if (status != 0) {
        return status;
    }
    status = start(program, port, &process);
    if (status == 0) {
        group = process.pid;
        end = await(api, &process, stop, &answer);
        if (end == WAIT_ANSWERED) {
            let_finish(api, &process, stop);
        }
        kill_process(&process, group);
        status = conclude(end, &process, event, &answer);
    }
    lambda_api_stop(api);
    return status;
}
