/* The words that options of idem consume take; those of its workers are made of them. */
#include "consume/consume.h"

const char *const consume_policies[] = {"rerun", "hold", NULL};
const char *const consume_captures[] = {"none", "both", NULL};
