/* For programs that can load libraries. */
#include "base/loader.h"

bool idem__has_loader(void)
{
    return true;
}
