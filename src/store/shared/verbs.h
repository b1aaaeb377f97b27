/* Verbs: from an op to its decision, and from the decision to its answer. */
#ifndef IDEM_STORE_SHARED_VERBS_H
#define IDEM_STORE_SHARED_VERBS_H

#include <idem/store.h>

/* Decides the op's verb for the record that was found (NULL: none). A get of a
 * record that is not there is refused with IDEM_ENOTFOUND. */
void idem__verb_decide(const struct idem_record *found,
                       const struct idem_op *op, const struct idem_now *now,
                       struct idem_decision *decision);

/* The record that the caller is given for @decision. True: the bytes of its
 * result and input are wanted, and not in it yet. */
bool idem__verb_given(const struct idem_op *op, const struct idem_record *found,
                      const struct idem_decision *decision,
                      struct idem_record *ret_record);

/* Puts them in, from a record that was loaded with its bodies. */
void idem__verb_take_bodies(const struct idem_decision *decision,
                            const struct idem_record *bodies,
                            struct idem_record *record);

/* Sets the op's answer, but does not give it back. */
void idem__verb_answer(struct idem_op *op, const struct idem_decision *decision,
                       const struct idem_record *record);

/* Verifies the bodies of a record that was loaded with them. 0 or a code. */
int idem__verb_check_bodies(const struct idem_record *record,
                            struct idem_error *error);

/* True if the list @op goes down from the newest record, in a store that has an
 * order and no index that serves the list. */
bool idem__verb_list_down(const struct idem_op *op);

/* Shows one record of a list to its caller if the filter lets it through.
 * @record has no bodies; with @code other than 0 only scope, key and id. False:
 * the list is to stop here. */
bool idem__verb_list_row(struct idem_op *op, int code,
                         const struct idem_record *record,
                         const struct idem_now *now);

/* A claim that was made after its caller had stopped waiting would block the key
 * for a lease, and under hold for a person. True: @op was one, and is now the
 * release of it, for the store to run. */
bool idem__verb_unwanted(struct idem_op *op);

#endif
