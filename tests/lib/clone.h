/* Copies of ops. */
#ifndef TEST_CLONE_H
#define TEST_CLONE_H

#include "contract/store.h"

/* Returns an independent copy, in state IDLE and without an answer; or NULL. */
struct idem_op *clone_op(const struct idem_op *op);

#endif
