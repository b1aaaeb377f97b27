/* SIM_SANITIZED: the address sanitizer watches. gcc and clang each have their own
 * way to say it. */
#ifndef SIM_SANITIZED_H
#define SIM_SANITIZED_H

#ifdef __SANITIZE_ADDRESS__
#define SIM_SANITIZED
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SIM_SANITIZED
#endif
#endif

#endif
