/* Copies of ops. */
#ifndef TEST_CLONE_H
#define TEST_CLONE_H

#include "contract/store.h"

/* An independent copy in state IDLE, without answer, or NULL. */
struct idem_op *clone_op(const struct idem_op *op);

#endif
