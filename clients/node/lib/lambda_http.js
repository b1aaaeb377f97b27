'use strict';

/* Events of HTTP as requests, and answers as Lambda takes them: API Gateway, load balancers,
 * function URLs, VPC Lattice. */

function pairsOf(headers) {
    return Object.entries(headers ?? {}).flatMap(([name, value]) =>
        [value].flat().map((one) => [name, String(one)]),
    );
}

function bytesOf({ body, isBase64Encoded, is_base64_encoded: isToo }) {
    return Buffer.from(body ?? '', isBase64Encoded || isToo ? 'base64' : 'utf8');
}

function requestOf(event) {
    const pairs = pairsOf(event.multiValueHeaders ?? event.headers);
    const { method } = event.requestContext?.http ?? {};
    const { multiValueQueryStringParameters: many, queryStringParameters: one } = event;
    const parameters = many ?? one ?? event.query_string_parameters ?? {};
    const query = event.rawQueryString ?? JSON.stringify(parameters);
    return {
        method: method ?? event.httpMethod ?? event.method,
        target: `${event.rawPath ?? event.path ?? event.raw_path}?${query}`,
        headers: Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value])),
        rawHeaders: pairs.flat(),
        readableDidRead: true,
        body: bytesOf(event),
    };
}

function responseOf({ status, headers, body }, event) {
    const isText = Buffer.from(body.toString()).equals(body);
    const lists = headers.map(([name, value]) => [name, [value].flat()]);
    const joined = lists.map(([name, values]) => [name, values.join(', ')]);
    return {
        statusCode: status,
        ...(event.multiValueHeaders && !event.headers
            ? { multiValueHeaders: Object.fromEntries(lists) }
            : { headers: Object.fromEntries(joined) }),
        body: body.toString(isText ? 'utf8' : 'base64'),
        isBase64Encoded: !isText,
    };
}

module.exports = { bytesOf, pairsOf, requestOf, responseOf };
