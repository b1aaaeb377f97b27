/* yaml.h: a JSON value as YAML, in its simplest form. */
#ifndef CLI_YAML_H
#define CLI_YAML_H

#include <json-c/json.h>
#include <stdio.h>

/* Writes @value, an object without empty objects and arrays in it. */
void cli_yaml(FILE *f, struct json_object *value);

#endif
