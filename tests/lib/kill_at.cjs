// Loaded before a program of Node.js: kills it between two statements of better-sqlite3.
// The beginning of each statement is counted, and what is printed in the end. At the
// step that KILL_AT names the process dies of SIGKILL.
'use strict';

const name = require.resolve('better-sqlite3', { paths: [process.env.NODE_PATH] });
const Database = require(name);
let left = Number(process.env.KILL_AT);

function count() {
  if (left > 0 && --left === 0) {
    process.kill(process.pid, 'SIGKILL');
  }
}

class Counted extends Database {
  constructor(path, options) {
    super(path, { ...options, verbose: count });
  }
}
require.cache[name].exports = Counted;

const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (...args) => {
  count();
  return write(...args);
};
