/* idem__has_loader() of programs that can load libraries. */
#include "base/host.h"

bool idem__has_loader(void)
{
    return true;
}
