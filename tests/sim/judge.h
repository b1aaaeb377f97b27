/* A second opinion on every decision, written from the documentation.
 *
 * The judges know more than who decided: the truth about time. Where a decision
 * may fall either way, because the decider knew time only within an error, both
 * are right. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "world.h"

/* Judges what f->copy was answered and, if f->saved, what is to be written. */
void judge(struct world *w, const struct flight *f);

/* ---- Among the judges ---- */

struct judged {
    struct world *w;
    const struct flight *f;
    const struct idem_op *op;
    const struct view *before; /* before->exists: there was a record. */
    const struct view *after;  /* NULL: nothing is written. */
    int code;
};

void judge_begin(const struct judged *j);
void judge_end(const struct judged *j);
void judge_renew(const struct judged *j);
void judge_expire(const struct judged *j);
void judge_resolve(const struct judged *j);
void judge_import(const struct judged *j);
void judge_get(const struct judged *j);

/* Store time may be, or must be, past @ms for who decided. */
bool may_be_past(const struct judged *j, int64_t ms);
bool must_be_past(const struct judged *j, int64_t ms);

/* What was found is taken for gone: by true time, too, it may be. */
void judge_gone(const struct judged *j);

/* Likewise for the lease of the record that was found. */
bool lease_may_be_over(const struct judged *j);
bool lease_must_be_over(const struct judged *j);

/* True if the record that was found is the attempt that asks. */
bool is_own(const struct judged *j);

/* The lease that is written covers @lease_ms from now, and hardly more. */
void judge_lease(const struct judged *j, int64_t lease_ms);

/* When work that is in progress may be forgotten: under IDEM_HOLD never. */
void judge_open(const struct judged *j);

/* The record that is written is to be run again, as @said. */
void judge_again(const struct judged *j, const struct idem_outcome *said);

/* When work may be forgotten whose lease was given up: it is kept from now on. */
void judge_given_up(const struct judged *j);

/* The retention of what has ended as @status, and its content. */
void judge_outcome(const struct judged *j, const struct idem_outcome *outcome);

/* Holds unless @holds; then names @id and what is wrong. */
void expect(const struct judged *j, bool holds, const char *id,
            const char *what);

#endif
