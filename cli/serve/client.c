/* The process of a client, and its requests hello, ping, cancel and bye. */
#include "serve/connection.h"

#include "base/process.h"
#include "process/host.h"
#include "request/request.h"
#include "serve/attempts.h"
#include "serve/calls.h"
#include "serve/methods.h"
#include "text/text.h"

#include "process/descriptors.h"

#include <sys/socket.h>
#include <unistd.h>

/* ---- The process at the other end ---------------------------------------- */

/* The parent may have ended, and its pid may have gone to another process, before the
 * descriptor was opened. If the parent is still the parent afterwards, the descriptor is
 * its own. */
void serve_client_is_parent(struct serve_conn *conn)
{
    conn->peer = getppid();
    conn->death = idem__child_open(conn->peer);
    conn->proved = conn->death >= 0 && getppid() == conn->peer;
}

void serve_client_is_peer(struct serve_conn *conn)
{
    struct ucred peer = {.pid = 0};
    socklen_t len = sizeof(peer);

    conn->death = -1;
    if (getsockopt(conn->in, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0) {
        conn->peer = peer.pid;
    }
}

/* The pid may have gone to another process before the descriptor was opened. If the
 * client answers the challenge, it was still alive afterwards, and so the descriptor is
 * its own. */
static void challenge(struct serve_conn *conn)
{
    uint8_t bytes[16];

    conn->death = idem__child_open(conn->peer);
    if (conn->death >= 0 && cli_random(bytes, sizeof(bytes)) == 0) {
        cli_hex(idem_bytes(bytes, sizeof(bytes)), conn->challenge);
    }
}

/* If the client gives another pid than the kernel, it means another process, or is in
 * another container. This process cannot watch that one, so its leases decide. */
static void meet(struct serve *serve, struct serve_conn *conn, pid_t pid,
                 const char *proof)
{
    if (proof != NULL) {
        conn->proved = conn->proved || (conn->challenge[0] != '\0' &&
                                        strcmp(proof, conn->challenge) == 0);
        return;
    }
    if (serve->is_socket && conn->death < 0 && pid != 0 && pid == conn->peer) {
        challenge(conn);
    } else if (!serve->is_socket && pid != 0 && pid != conn->peer) {
        conn->proved = false;
    }
}

static void reply_hello(struct serve_call *call)
{
    struct serve *serve = call->serve;
    struct serve_conn *conn = call->conn;
    struct cli_json *answer = serve_answer(call);
    char url[IDEM_STORE_URL_MAX];

    cli_json_count(answer, "protocol", SERVE_PROTOCOL);
    cli_json_text(answer, "version", IDEM_VERSION);
    if (idem_store_url(serve->store) != NULL) {
        cli_json_text(answer, "store",
                      idem_url_hide(idem_store_url(serve->store), url,
                                    sizeof(url)));
    }
    cli_json_ms(answer, "lease_min_ms", idem_store_lease_min_ms(serve->store));
    cli_json_count(answer, "line_max", SERVE_LINE_MAX);
    cli_json_count(answer, "result_max", SERVE_RESULT_MAX);
    cli_json_count(answer, "in_flight_max", SERVE_IN_FLIGHT_MAX);
    cli_json_bool(answer, "operator", serve->is_operator);
    cli_json_ms(answer, "boot_ms", io_now_ms());
    cli_json_text(answer, "death", conn->proved ? "process" : "lease");
    if (conn->challenge[0] != '\0' && !conn->proved) {
        cli_json_text(answer, "challenge", conn->challenge);
    }
    serve_reply(call);
}

void serve_hello(struct serve_call *call, struct serve_params *p)
{
    struct serve_conn *conn = call->conn;
    pid_t pid = (pid_t)p->pid;

    conn->greeted = true;
    cli_owner(p->owner, pid != 0 ? pid : conn->peer, conn->owner);
    meet(call->serve, conn, pid, p->challenge);
    reply_hello(call);
}

/* ---- Ping ---------------------------------------------------------------- */

void serve_ping(struct serve_call *call, struct serve_params *p)
{
    (void)p;
    cli_json_ms(serve_answer(call), "boot_ms", io_now_ms());
    serve_reply(call);
}

/* ---- Cancel and bye ------------------------------------------------------ */

/* The client promises to start nothing on the answer to that begin, whether it was sent
 * yet or not. So nobody has the claim, and it is released. */
void serve_cancel(struct serve_call *call, struct serve_params *p)
{
    struct serve *serve = call->serve;
    struct serve_call *other = serve_call_find(serve, call->conn, p->id);
    struct serve_attempt *a = serve_attempt_of_id(serve, call->conn, p->id);
    const char *was = "over";

    if (other != NULL && other->is_begin) {
        other->cancelled = true;
        serve_due(serve, 0); /* A begin that waits is answered now. */
        was = "in_flight";
    } else if (a != NULL && a->endings == 0) {
        serve_attempt_give_back(serve, a);
        was = "started";
    }
    cli_json_text(serve_answer(call), "was", was);
    serve_reply(call);
}

void serve_bye(struct serve_call *call, struct serve_params *p)
{
    struct serve_conn *conn = call->conn;

    (void)p;
    if (conn->attempts > 0 || conn->in_flight > 1) {
        p->m->error.code = IDEM_EINVALID;
        (void)snprintf(p->m->error.text, sizeof(p->m->error.text),
                       "%zu attempts were not ended, and %zu requests are "
                       "in flight",
                       conn->attempts, conn->in_flight - 1);
        return;
    }
    conn->bye = true;
    (void)serve_answer(call);
    serve_reply(call);
}
