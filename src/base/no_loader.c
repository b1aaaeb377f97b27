/* idem__has_loader() of static programs. */
#include "base/host.h"

bool idem__has_loader(void)
{
    return false;
}
