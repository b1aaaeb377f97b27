/* The key and the index of a table, as a CreateTable has them. */
#include "aws/dynamodb/table/table.h"

#include "aws/dynamodb/place.h"
#include "test.h"

/* The members for the table at @place are @text, with ' for ". */
static void is_made(const char *place, const char *text)
{
    static char made[2048];
    struct idem__place_conf conf;
    struct idem__schema schema;
    struct idem__buffer out = {.base = NULL};
    size_t i;

    assert_ok(idem__place_read(place, &conf, &why));
    idem__schema_of(&conf.table, &schema);
    idem__schema_put(&out, &schema);
    assert_false(out.failed);
    assert_true(out.len < sizeof(made));
    for (i = 0; i < out.len; i++) {
        made[i] = (char)(out.base[i] == '"' ? '\'' : out.base[i]);
    }
    made[out.len] = '\0';
    assert_string_equal(made, text);
    idem__buffer_free(&out);
}

/* A table of idem's own has the index of open records, unless its URL says no. */
TEST(schema, isThatOfIdem)
{
    is_made("//table",
            ",'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}],"
            "'AttributeDefinitions':[{'AttributeName':'id',"
            "'AttributeType':'S'},{'AttributeName':'open',"
            "'AttributeType':'S'},{'AttributeName':'since',"
            "'AttributeType':'N'}],"
            "'GlobalSecondaryIndexes':[{'IndexName':'open','KeySchema':["
            "{'AttributeName':'open','KeyType':'HASH'},"
            "{'AttributeName':'since','KeyType':'RANGE'}],"
            "'Projection':{'ProjectionType':'KEYS_ONLY'}}]");
    is_made("//table?index=off",
            ",'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}],"
            "'AttributeDefinitions':[{'AttributeName':'id',"
            "'AttributeType':'S'}]");
}

/* One of another library's has the names that its users chose, and their index. */
TEST(schema, isThatOfTheLayout)
{
    is_made("//table?layout=powertools-python&key-attr=pk&sort-key-attr=sk"
            "&static-pk-value=f",
            ",'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},"
            "{'AttributeName':'sk','KeyType':'RANGE'}],"
            "'AttributeDefinitions':[{'AttributeName':'pk',"
            "'AttributeType':'S'},{'AttributeName':'sk',"
            "'AttributeType':'S'}]");
    is_made("//table?layout=lock-token",
            ",'KeySchema':[{'AttributeName':'lockToken','KeyType':'HASH'}],"
            "'AttributeDefinitions':[{'AttributeName':'lockToken',"
            "'AttributeType':'S'},{'AttributeName':'status',"
            "'AttributeType':'S'}],"
            "'GlobalSecondaryIndexes':[{'IndexName':'byStatus','KeySchema':["
            "{'AttributeName':'status','KeyType':'HASH'},"
            "{'AttributeName':'lockToken','KeyType':'RANGE'}],"
            "'Projection':{'ProjectionType':'ALL'}}]");
}
