/* Fetches credentials from the sources, on a thread, and renews them in time. */
#include "aws/client/credentials.h"
#include "aws/client/curl.h"
#include "aws/client/source.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/wait.h"
#include "core/error.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum {
    AHEAD_MS = 300000, /* A renewal begins this long before the end, */
    SPREAD_MS = 60000, /* or up to this much earlier. */
    /* Credentials that end sooner, or have ended by our clock, which may be wrong, are
     * used this long: the service decides. */
    GRACE_MS = 60000,
    PAUSE_MS = 1000,        /* Between two fetches. */
    CALM_PAUSE_MS = 30000,  /* After a failed renewal, while we have some, */
    CALM_SPREAD_MS = 30000, /* and up to this much more. */
};

struct chain {
    struct idem__aws_provider base;
    struct idem__aws_env_copy *variables;
    struct idem__aws_env env;
    char region[64];

    struct idem__aws_credentials current; /* serial 0: none yet. */
    bool have;
    int64_t until_ms; /* Since 1970. */
    int64_t renew_ms;

    int64_t ended_ms;        /* The end of the last fetch; CLOCK_MONOTONIC. */
    int64_t calm_ms;         /* No renewal for this long after it. */
    struct idem_error error; /* Of the last fetch; code 0: it succeeded. */

    /* The fetch in progress. Only its thread uses these while it runs. */
    bool running;
    pthread_t thread;
    bool done;         /* Atomic. */
    const char *asked; /* Atomic: the source being asked. */
    struct idem__aws_ask *ask;
    struct idem__aws_credentials fetched;
    struct idem_error fetch_error;
    bool had; /* There were credentials before. */
};

static struct chain *of(struct idem__aws_provider *provider)
{
    return (struct chain *)(void *)provider;
}

/* Returns a random number from 0 to @max - 1. */
static int64_t jitter(int64_t max)
{
    struct idem_host host = {.ctx = NULL};
    uint64_t random = 0;

    idem__host_default(&host);
    (void)host.random(host.ctx, &random, sizeof(random));
    return (int64_t)(random % (uint64_t)max);
}

/* ---- The fetch, on its thread ------------------------------------------ */

/* No source has credentials: names the sources, and what to do. */
static int say_none(const struct idem__aws_ask *ask, const char *instance,
                    struct idem_error *error)
{
    const char *profile = idem__aws_env_value(ask->env, "AWS_PROFILE");

    return idem__error(
        error, IDEM_ECONFIG,
        "no AWS credentials in the environment, the profile \"%.20s\" or a "
        "container; %.107s; set "
        "AWS_PROFILE, or run \"aws configure\"",
        profile == NULL ? "default" : profile, instance);
}

static int ask_all(struct chain *chain, struct idem__aws_credentials *ret,
                   struct idem_error *error)
{
    static const struct {
        const char *name;
        int (*get)(struct idem__aws_ask *, struct idem__aws_credentials *,
                   struct idem_error *);
    } sources[] = {
        {"the web identity's role", idem__aws_source_web},
        {"the profile", idem__aws_source_profile},
        {"the container's endpoint", idem__aws_source_container},
        {"the instance metadata service", idem__aws_source_instance},
    };
    enum {
        LAST = sizeof(sources) / sizeof(sources[0]) - 1
    };
    struct idem_error why = {.code = 0};
    int rc = 1;
    int i;

    for (i = 0; i <= LAST && rc == 1; i++) {
        __atomic_store_n(&chain->asked, sources[i].name, __ATOMIC_RELAXED);
        rc = sources[i].get(chain->ask, ret, &why);
    }
    if (rc == 1) {
        return say_none(chain->ask, "AWS_EC2_METADATA_DISABLED is set", error);
    }
    /* The metadata service does not answer, and it gave us no credentials before: this is
     * probably not an instance. */
    if (rc == IDEM_EUNAVAILABLE && i > LAST && !chain->had) {
        return say_none(chain->ask, why.text, error);
    }
    return rc == 0 ? 0 : idem__error(error, rc, "%s", why.text);
}

static void *fetch(void *ctx)
{
    struct chain *chain = ctx;

    (void)ask_all(chain, &chain->fetched, &chain->fetch_error);
    idem__aws_fetch_wipe(&chain->ask->fetch);
    chain->ended_ms = idem__mono_ms();
    __atomic_store_n(&chain->done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* ---- Its beginning and end --------------------------------------------- */

static int start(struct chain *chain, struct idem_error *error)
{
    struct idem__quiet quiet;
    int rc;

    chain->had = chain->current.serial > 0;
    chain->fetch_error.code = 0;
    chain->done = false;
    idem__quiet_begin(&quiet);
    rc = pthread_create(&chain->thread, NULL, fetch, chain);
    idem__quiet_end(&quiet);
    if (rc != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    chain->running = true;
    return 0;
}

/* Sets when the credentials fetched at @now_ms end, and when they are renewed. */
static void set_times(struct chain *chain, int64_t now_ms)
{
    int64_t expires_ms = chain->current.expires_ms;
    int64_t left_ms = expires_ms - now_ms;

    if (expires_ms == IDEM_NEVER) {
        chain->until_ms = IDEM_NEVER;
        chain->renew_ms = IDEM_NEVER;
        return;
    }
    if (left_ms < GRACE_MS) {
        left_ms = GRACE_MS;
    }
    chain->until_ms = now_ms + left_ms;
    chain->renew_ms = left_ms > 2 * (AHEAD_MS + SPREAD_MS)
                          ? chain->until_ms - AHEAD_MS - jitter(SPREAD_MS)
                          : now_ms + left_ms / 2;
}

/* Takes the credentials or the error of a fetch that has ended. */
static void take(struct chain *chain, int64_t now_ms)
{
    uint64_t serial = chain->current.serial;

    if (!chain->running || !__atomic_load_n(&chain->done, __ATOMIC_ACQUIRE)) {
        return;
    }
    (void)pthread_join(chain->thread, NULL);
    chain->running = false;
    chain->error = chain->fetch_error;
    chain->calm_ms = PAUSE_MS;
    if (chain->error.code == 0) {
        chain->current = chain->fetched;
        chain->current.serial = serial + 1;
        chain->have = true;
        set_times(chain, now_ms);
    } else if (chain->have) {
        chain->calm_ms = CALM_PAUSE_MS + jitter(CALM_SPREAD_MS);
    }
    idem__aws_credentials_wipe(&chain->fetched);
}

/* ---- The provider ------------------------------------------------------ */

static int chain_get(struct idem__aws_provider *provider, int64_t now_ms,
                     const struct idem__aws_credentials **ret,
                     struct idem_error *ret_error)
{
    struct chain *chain = of(provider);
    bool usable, may_start;
    int rc;

    take(chain, now_ms);
    usable = chain->have && now_ms < chain->until_ms;
    may_start = !chain->running && idem__mono_ms() - chain->ended_ms >=
                                       (usable ? chain->calm_ms : PAUSE_MS);
    if (usable) {
        if (may_start && now_ms >= chain->renew_ms) {
            (void)start(chain, /* error= */ NULL);
        }
        *ret = &chain->current;
        return 0;
    }
    if (may_start) {
        chain->have = false;
        rc = start(chain, ret_error);
        return rc == 0 ? 1 : rc;
    }
    if (!chain->running && chain->error.code != 0) {
        return idem__error(ret_error, chain->error.code, "%s",
                           chain->error.text);
    }
    provider->name = __atomic_load_n(&chain->asked, __ATOMIC_RELAXED);
    return 1;
}

static bool chain_expired(struct idem__aws_provider *provider, uint64_t serial)
{
    struct chain *chain = of(provider);

    if (serial == chain->current.serial) {
        chain->have = false;
    }
    return true;
}

static void chain_close(struct idem__aws_provider *provider)
{
    struct chain *chain = of(provider);

    if (chain->running) {
        idem__event_set(chain->ask->stop);
        (void)pthread_join(chain->thread, NULL);
    }
    if (chain->ask != NULL) {
        if (chain->ask->stop >= 0) {
            (void)close(chain->ask->stop);
        }
        explicit_bzero(chain->ask, sizeof(*chain->ask));
        idem__free(chain->ask);
    }
    idem__aws_env_copy_free(chain->variables);
    explicit_bzero(chain, sizeof(*chain));
    idem__free(chain);
}

int idem__aws_provider_chain(const struct idem__aws_env *env,
                             const char *region,
                             struct idem__aws_provider **ret_provider,
                             struct idem_error *ret_error)
{
    struct chain *chain = idem__zalloc(sizeof(*chain));

    if (chain == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    chain->ended_ms = -CALM_PAUSE_MS;
    chain->asked = "the usual sources";
    chain->base.name = chain->asked;
    chain->base.get = chain_get;
    chain->base.expired = chain_expired;
    chain->base.close = chain_close;
    (void)snprintf(chain->region, sizeof(chain->region), "%s", region);
    chain->ask = idem__zalloc(sizeof(*chain->ask));
    if (chain->ask != NULL) {
        chain->ask->env = &chain->env;
        chain->ask->region = chain->region;
        chain->ask->stop = idem__event_open();
    }
    if (chain->ask == NULL || chain->ask->stop < 0 ||
        idem__aws_env_copy(env, &chain->variables) != 0) {
        chain_close(&chain->base);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    chain->env = idem__aws_env_of(chain->variables);
    *ret_provider = &chain->base;
    return 0;
}
