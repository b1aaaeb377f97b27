/** A duration in milliseconds; null or Infinity: it does not end. */
export type Duration = number | null;
export type Key = string | readonly (string | number | boolean)[];

/** What a claim may say beside its key; docs/serve.json has each. */
export interface Claim {
    scope?: string;
    /** JSON that a request with the same key must have in common. */
    fingerprint?: string | number | boolean | object | null;
    /** "hold", the default: a person looks; or "rerun". */
    onExpiredLease?: 'hold' | 'rerun';
    /** A minute. */
    lease?: Duration;
    /** A day. */
    retention?: Duration;
    expect?: number;
    /** For the attempt of another. */
    wait?: number;
    waitThenRun?: boolean;
    attemptsMax?: number;
    /** "now": the work dies with this process. */
    onDeath?: 'lease' | 'now';
    /** 15 minutes: how long heartbeats renew the lease. */
    maxTime?: number;
    owner?: string;
    /** The caller's place in a trace (W3C Trace Context), kept with the record. */
    traceparent?: string;
    /** Cancels a begin that waits: nothing is claimed then. */
    signal?: AbortSignal;
}

/** What it may say where a request gives the rest. */
export type Terms = Omit<Claim, 'scope' | 'fingerprint' | 'waitThenRun' | 'traceparent'>;

export interface Limit {
    max: number;
    /** The length of the window. */
    per: number;
    cost?: number;
    atMs?: number;
    startMs?: number;
    late?: number;
}

export interface Decision {
    admitted: boolean;
    repeated: boolean;
    remaining: number;
    startMs: number;
    endMs: number;
}

/** The record of a key, as `idem show --json` prints it. */
export type Record = Readonly<globalThis.Record<string, unknown>>;

export interface Attempt<T = unknown> {
    readonly key: Key;
    readonly scope: string;
    /** The work is done; `result` is what it gave. */
    readonly replayed: boolean;
    readonly result: T;
    readonly record: Record;
    readonly fence: bigint;
    readonly attempts: number;
    /** An attempt before this one was left without an end. */
    readonly takeover: boolean;
    /** Fires when the lease is lost. */
    readonly signal: AbortSignal;
    readonly hasEnded: boolean;
    /** The work is done. Gives the result as a replay has it. */
    complete<R>(result?: R, more?: { text?: string }): Promise<R>;
    /** The work failed, and a person must look. */
    fail(text?: string, more?: { result?: unknown }): Promise<void>;
    /** Nothing happened, and another may try. */
    release(text?: string): Promise<void>;
    /** It failed and may have had effects; the next caller runs it again. */
    retry(text?: string, more?: { failuresMax?: number; after?: number }): Promise<void>;
    /** It may have happened. */
    unknown(text?: string): Promise<void>;
    /** The SQL that completes it in your own transaction on PostgreSQL; then call recorded. */
    statement(result?: unknown): Promise<{ text: string; values: (string | null)[]; rows: number }>;
    /** The transaction with the statement was committed. */
    recorded(): Promise<void>;
    /** For middleware: the response, as http.end has it. False: it is not on record. */
    respond(response: HttpResponse): Promise<boolean>;
    /** Extend the lease, by default by its length; gives what is left of it. */
    renew(lease?: Duration): Promise<number>;
    /** Rejects with Lost where the lease is over: call it before each effect. */
    check(): Promise<void>;
}

/** Without the attempt at their end. */
type Arguments<P extends unknown[]> = P extends [...infer A, infer Last]
    ? unknown extends Last ? P : Last extends Attempt ? A : P
    : P;

type OfArguments<A extends unknown[]> = {
    [W in keyof Claim]?: Claim[W] | ((...args: A) => Claim[W]);
};

export interface Store {
    readonly program: string;
    /** Claim a key: an attempt that must be ended, or a replay. */
    begin<T = unknown>(key: Key, claim?: Claim): Promise<Attempt<T>>;
    /** Gives what the work gives, now or when it ran. */
    once<T>(key: Key, work: (attempt: Attempt) => T | Promise<T>, claim?: Claim): Promise<T>;
    /** The function with once() around it; the options may be functions of its arguments. Where
     * it has a parameter more than there are arguments, the last one is the attempt; those from
     * the first that has a default do not count. */
    idempotent<P extends unknown[], T>(
        work: (...parameters: P) => T | Promise<T>,
        options: { key: (...args: Arguments<P>) => Key | null | undefined } & OfArguments<Arguments<P>>,
    ): (...args: Arguments<P>) => Promise<T>;
    /** For middleware: a request, as http.begin has it; its answer, or the attempt to run it. */
    http(
        request: HttpRequest,
        claim?: Terms,
    ): Promise<{ answer: Answer; attempt?: undefined } | { answer?: undefined; attempt: Attempt }>;
    /** Count a request against a limit, once for each `request`. */
    limit(name: string, subject: string, request: string, limit: Limit): Promise<Decision>;
    /** For tests: move the time of a `memory:` store forward by milliseconds. */
    advance(time: number): Promise<void>;
    /** End the child. Refused while attempts are open. */
    close(): Promise<void>;
}

/** A store; its child starts with the first call. */
export function open(url: string, options?: { program?: string }): Store;

/** Names and values, as they came. */
export type Headers = readonly (readonly [string, string])[];

interface HttpRules {
    /** What a status means: "500=retry 4xx=fail". */
    outcome?: string;
    /** Names with commas between them. */
    replay_headers?: string;
}

export interface HttpRequest extends HttpRules {
    method: string;
    target: string;
    headers: Headers;
    /** In base64. */
    body?: string;
    scope?: string;
}

export interface HttpResponse extends HttpRules {
    http_status: number;
    headers: Headers;
    /** In base64. */
    body?: string;
    /** It is too large to be kept. */
    not_kept?: boolean;
}

/** What is sent instead of running a request. */
export interface Answer {
    status: number;
    headers: Headers;
    body: Uint8Array;
}

/** The options of a middleware; the others are those of the claim. */
export interface Guarded<Request> extends Omit<Terms, 'signal'> {
    store: Store;
    /** The client, whose keys are its own. */
    scope: string | ((request: Request) => string | undefined | Promise<string | undefined>);
    /** Refuse a POST or PATCH that has no key. */
    required?: boolean;
    /** What a replay has besides Location and what describes the body. */
    replayHeaders?: readonly string[];
    outcome?: string;
}

/** Each comes after a parser of the body. The handler finds its attempt as
 * `request.idempotency`, in Koa as `ctx.state.idempotency`. */
export function express(options: Guarded<any>): (req: any, res: any, next: (error?: unknown) => void) => Promise<void>;
export function fastify(options: Guarded<any>): (app: any) => Promise<void>;
export function koa(options: Guarded<any>): (ctx: any, next: () => Promise<any>) => Promise<void>;

export interface LambdaOptions extends Omit<Guarded<any>, 'scope'> {
    /** For events of HTTP: the client, whose keys are its own. */
    scope?: string | ((event: any) => string | undefined | Promise<string | undefined>);
    /** A selector of the key, where the source has none. */
    key?: string;
    /** The source of the events, a name of `idem lambda sources`; else each says so. */
    source?: string;
}

/** A handler of AWS Lambda, called once for each unit: the event, or a record of a batch. */
export function lambdaHandler<Event, Context>(
    handler: (event: Event, context: Context, attempt?: Attempt) => unknown,
    options: LambdaOptions,
): (event: Event, context: Context) => Promise<unknown>;

/** All errors of idem, with the name of the C library where it has one. */
export class IdemError extends Error {
    code?: string;
}
/** There is no idem program to start. */
export class NoProgram extends IdemError {}
/** A key is missing; the work was not started. */
export class MissingKey extends IdemError {}
/** The request is not valid. */
export class Invalid extends IdemError {}
/** The store is away or busy: ask again later. */
export class Unavailable extends IdemError {}
/** The attempt is not the caller's any more: start no further effect. */
export class Lost extends IdemError {}
/** A person must look after the store. */
export class StoreError extends IdemError {}
/** The work is over, and that is not on record. */
export class NotRecorded extends IdemError {
    /** What it returned. */
    result?: unknown;
}
/** The work is done, and its result is not on record: it was too long, or not JSON. */
export class NotKept extends IdemError {
    /** Where this process did the work. */
    result?: unknown;
}
/** The record of the key decides against a start. */
export class NotStarted extends IdemError {
    record: Record;
}
/** Another attempt is in progress. */
export class Busy extends NotStarted {
    /** Milliseconds of its lease, or Infinity. */
    leaseLeft: number;
}
/** The key was used for another request. */
export class Mismatch extends NotStarted {}
/** It may have happened: a person must look. */
export class Unknown extends NotStarted {}
/** The attempt that was waited for did nothing. */
export class Released extends NotStarted {}
/** The work failed, and a person must look. A function throws it to record that. */
export class Failed extends NotStarted {
    constructor(message?: string, result?: unknown);
    result?: unknown;
}
/** A function throws it, or a subclass: nothing happened, and another may try. */
export class NothingHappened extends Error {}
