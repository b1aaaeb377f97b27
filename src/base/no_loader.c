/* For static programs. */
#include "base/loader.h"

bool idem__has_loader(void)
{
    return false;
}
