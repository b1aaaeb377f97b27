/* A model of the life of one key. */
#include "model.h"

enum {
    RELEASED_MS = 24 * 3600 * 1000,
    MARGIN_MS = 5000 /* Of an end that must be over by every clock. */
};

static int64_t later(int64_t ms, int64_t by_ms)
{
    return ms > IDEM_NEVER - by_ms ? IDEM_NEVER : ms + by_ms;
}

bool model_counts(const struct model *m, int64_t now_ms)
{
    return m->stored && (m->expires_ms == IDEM_NEVER || now_ms < m->expires_ms);
}

static bool lease_is_over(const struct model *m, int64_t now_ms)
{
    return m->lease_end_ms != IDEM_NEVER && now_ms >= m->lease_end_ms;
}

static int64_t open_expiry(const struct model *m, int64_t from_ms)
{
    return m->policy == IDEM_RERUN ? later(from_ms, m->retention_ms)
                                   : IDEM_NEVER;
}

static void set_lease_end(struct model *m, int64_t end_ms)
{
    m->lease_end_ms = end_ms;
    m->expires_ms = open_expiry(m, end_ms);
}

/* An attempt that may have done the work is not forgotten before its time. */
static int64_t released_for(const struct model *m)
{
    return m->doubtful && m->retention_ms > RELEASED_MS ? m->retention_ms
                                                        : RELEASED_MS;
}

static void set_status(struct model *m, enum idem_status status, int content,
                       int64_t now_ms)
{
    m->status = status;
    m->content = content;
    m->by_lease = false;
    m->decided = false;
    m->expires_ms =
        status == IDEM_STATUS_COMPLETED  ? later(now_ms, m->retention_ms)
        : status == IDEM_STATUS_RELEASED ? later(now_ms, released_for(m))
                                         : IDEM_NEVER;
}

static void start(struct model *m, const struct claim *claim, int owner,
                  int64_t now_ms)
{
    m->stored = true;
    m->status = IDEM_STATUS_IN_PROGRESS;
    m->policy = claim->policy;
    m->owner = owner;
    m->by_lease = false;
    m->decided = false;
    m->content = -1;
    m->lease_ms = claim->lease_ms;
    if (m->attempts == 1 || m->retention_ms < claim->retention_ms) {
        m->retention_ms = claim->retention_ms; /* The longest of the life. */
    }
    set_lease_end(m, later(now_ms, claim->lease_ms));
}

static enum idem_verdict lease_ended(struct model *m, const struct claim *claim,
                                     int owner, int64_t now_ms,
                                     bool *ret_takeover)
{
    if (m->policy == IDEM_HOLD || claim->policy == IDEM_HOLD) {
        set_status(m, IDEM_STATUS_UNKNOWN, -1, now_ms);
        m->by_lease = true;
        return IDEM_UNKNOWN;
    }
    if (claim->attempts_max != 0 &&
        m->attempts - m->uncounted >= claim->attempts_max) {
        set_status(m, IDEM_STATUS_FAILED, -1, now_ms);
        m->by_lease = true;
        return IDEM_FAILED;
    }
    m->doubtful = true;
    m->attempts++;
    start(m, claim, owner, now_ms);
    *ret_takeover = true;
    return IDEM_STARTED;
}

/* The attempt that was released did nothing, and nor did any before it unless one may
 * have: a cap is for those that ended without a word. */
static void uncount(struct model *m)
{
    if (!m->doubtful) {
        m->uncounted = m->attempts;
    } else if (m->uncounted < m->attempts) {
        m->uncounted++;
    }
}

enum idem_verdict model_begin(struct model *m, const struct claim *claim,
                              int owner, int64_t now_ms, bool *ret_takeover)
{
    bool counts = model_counts(m, now_ms);

    if (!counts || m->status == IDEM_STATUS_RELEASED) {
        /* What was released a moment ago is the same operation. */
        if (counts) {
            uncount(m);
            m->attempts++;
        } else {
            m->attempts = 1;
            m->uncounted = 0;
        }
        m->doubtful = counts && m->doubtful;
        m->fingerprint = claim->fingerprint;
        start(m, claim, owner, now_ms);
        *ret_takeover = m->doubtful;
        return IDEM_STARTED;
    }
    if (m->fingerprint != 0 && claim->fingerprint != 0 &&
        m->fingerprint != claim->fingerprint) {
        return IDEM_MISMATCH;
    }
    if (m->status != IDEM_STATUS_IN_PROGRESS) {
        return (enum idem_verdict)m->status;
    }
    if (!lease_is_over(m, now_ms)) {
        return IDEM_BUSY;
    }
    return lease_ended(m, claim, owner, now_ms, ret_takeover);
}

bool model_started(struct model *m, uint64_t fence)
{
    bool grows = fence > m->fence_max;

    m->fence = fence;
    m->fence_max = fence;
    return grows;
}

int model_end(struct model *m, int owner, enum idem_status status, int content,
              int64_t now_ms)
{
    bool said = m->status == status && !m->by_lease &&
                (m->content == content || status == IDEM_STATUS_RELEASED ||
                 status == IDEM_STATUS_UNKNOWN);

    if (!m->stored || m->owner != owner) {
        return IDEM_ELOST;
    }
    if (said) {
        return 0;
    }
    if (m->status != IDEM_STATUS_IN_PROGRESS &&
        (!m->by_lease || status == IDEM_STATUS_RELEASED)) {
        return IDEM_ELOST;
    }
    set_status(m, status, content, now_ms);
    return 0;
}

static bool is_at_work(const struct model *m, int owner)
{
    return m->stored && m->owner == owner &&
           m->status == IDEM_STATUS_IN_PROGRESS;
}

int model_renew(struct model *m, int owner, int64_t lease_ms, int64_t now_ms)
{
    int64_t end_ms;

    if (!is_at_work(m, owner)) {
        return IDEM_ELOST;
    }
    if (lease_ms == 0) {
        lease_ms = m->lease_ms;
    }
    end_ms = later(now_ms, lease_ms);
    /* An end that stays was set by the longer lease, and is bounded by it. */
    if (end_ms > m->lease_end_ms || lease_ms > m->lease_ms) {
        m->lease_ms = lease_ms;
    }
    set_lease_end(m, end_ms > m->lease_end_ms ? end_ms : m->lease_end_ms);
    return 0;
}

int model_expire(struct model *m, int owner, int64_t now_ms)
{
    if (!is_at_work(m, owner)) {
        return IDEM_ELOST;
    }
    if (!lease_is_over(m, now_ms)) {
        set_lease_end(m, now_ms - MARGIN_MS);
        /* What was given up is kept from now on. */
        m->expires_ms = open_expiry(m, now_ms);
    }
    return 0;
}

int model_resolve(struct model *m, uint64_t fence, enum idem_status status,
                  int content, int64_t now_ms)
{
    if (!model_counts(m, now_ms)) {
        return IDEM_ENOTFOUND;
    }
    if (m->decided && m->fence == fence && m->status == status &&
        (m->content == content || status == IDEM_STATUS_RELEASED)) {
        return 0;
    }
    if (m->fence != fence) {
        return IDEM_ELOST;
    }
    if ((!m->decided && (m->status == IDEM_STATUS_COMPLETED ||
                         m->status == IDEM_STATUS_RELEASED)) ||
        (m->status == IDEM_STATUS_IN_PROGRESS && !lease_is_over(m, now_ms) &&
         m->lease_end_ms != IDEM_NEVER)) {
        return IDEM_EINVALID;
    }
    m->doubtful = false;
    m->fence += m->decided; /* A correction. */
    set_status(m, status, content, now_ms);
    m->decided = true;
    m->owner = NOBODY;
    return 0;
}
