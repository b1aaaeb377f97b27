'use strict';

/* The errors. None of them has a token or a result in its text. */

/* All errors of idem, with the name of the C library in `code` where it has one. */
class IdemError extends Error {
    get name() {
        return this.constructor.name;
    }
}

class NoProgram extends IdemError {}
class MissingKey extends IdemError {}
class Invalid extends IdemError {}
class Unavailable extends IdemError {}
class Lost extends IdemError {}
class StoreError extends IdemError {}

/* The work is over, and that is not on record; `result` has what it returned. */
class NotRecorded extends IdemError {}

/* The work is done, and its result is not on record; `result` has it where this process
 * did the work. */
class NotKept extends IdemError {}

/* ---- Verdicts: the work was not started; `record` has why ---- */

class NotStarted extends IdemError {}
class Busy extends NotStarted {}
class Mismatch extends NotStarted {}
class Unknown extends NotStarted {}
class Released extends NotStarted {}

/* The work failed, and a person must look. A function throws it to record that. */
class Failed extends NotStarted {
    constructor(message, result) {
        super(message);
        this.result = result;
    }
}

/* A function throws it, or a subclass: nothing happened, and another may try. */
class NothingHappened extends Error {
    get name() {
        return this.constructor.name;
    }
}

module.exports = {
    IdemError,
    NoProgram,
    MissingKey,
    Invalid,
    Unavailable,
    Lost,
    StoreError,
    NotRecorded,
    NotKept,
    NotStarted,
    Busy,
    Mismatch,
    Unknown,
    Released,
    Failed,
    NothingHappened,
};
