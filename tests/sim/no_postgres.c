/* Without libpq there is no PostgreSQL store to simulate. */
#include "postgres.h"

#include <assert.h>

bool postgres_is_there(void)
{
    return false;
}

void postgres_open(struct world *w)
{
    (void)w;
    assert(!"it was built without libpq");
}

void postgres_close(void)
{
}

unsigned postgres_host(const struct world *w, unsigned no)
{
    (void)w;
    return no;
}

bool postgres_together(const struct client *a, const struct client *b)
{
    return a == b;
}

void postgres_born(struct client *c)
{
    (void)c;
}

void postgres_gone(struct client *c)
{
    (void)c;
}

void postgres_step(struct world *w, struct flight *f)
{
    (void)w;
    (void)f;
}

bool postgres_hand_over(const struct client *c, struct flight *f)
{
    (void)c;
    (void)f;
    return false;
}

void postgres_drop(struct flight *f)
{
    (void)f;
}

void postgres_strike(struct world *w)
{
    (void)w;
}

bool postgres_choose_flip(struct world *w, struct key *key)
{
    (void)w;
    (void)key;
    return false;
}

void postgres_flip(struct key *key)
{
    (void)key;
}

int64_t postgres_ms(const struct world *w)
{
    return w->now;
}

int64_t postgres_latest_ms(const struct world *w)
{
    return w->now;
}
