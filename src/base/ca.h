/* Where this system keeps the certificates that it trusts. */
#ifndef IDEM_BASE_CA_H
#define IDEM_BASE_CA_H

/* @given where it is not NULL; else NULL if the file that libcurl was built for,
 * @built_in, is there or nothing better is found; else the file of this system:
 * libcurl may have come from another one. */
const char *idem__ca_file(const char *given, const char *built_in);

#endif
