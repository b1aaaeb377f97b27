#!/usr/bin/env node
// A transfer of money and the end of its attempt in one commit of PostgreSQL, from Node.js.
//
//     $ npm install pg
//     $ export IDEM_STORE=postgres:///bank        # made by: idem store create
//     $ node postgres.js postgres://localhost/bank order-42 ann bob 30
//     transfer 1: 30 from ann to bob
//     $ node postgres.js postgres://localhost/bank order-42 ann bob 30   # again
//     transfer 1: 30 from ann to bob
//
// The database has the tables of postgres.c, which is the same in C. idem claims the key,
// with a lease. "idem complete --as-sql" prints the statement that ends the attempt, and
// this program runs it with its own driver, beside its own changes. Whenever it is killed,
// both are there or neither is; once the lease is over, the next call does the rest.
//
// Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
// 65 the key is that of another transfer; 75 try again later.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { Client } = require('pg');

// A transfer takes milliseconds, and after a crash the next caller waits for this lease.
const CLAIM = ['--lease', '4s', '--on-expired-lease', 'rerun', '--max-attempts', '0'];
const CHECK_VIOLATION = '23514';

// Nothing was transferred.
class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

// Runs a command of idem. Answers its exit status and what it printed.
async function idem(...args) {
  const child = spawn('idem', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text) => { printed += text; });
  const [status] = await once(child, 'close');
  return { status, printed };
}

// Answers the token of an attempt, or the receipt of an earlier transfer.
async function claim({ key, payer, payee, amount }) {
  const { status, printed } = await idem('begin', '-k', key, ...CLAIM,
    '--retention', 'never', '--fingerprint', `${payer} ${payee} ${amount}`);
  switch (status) {
    case 0:
      return { token: printed.trim() };
    case 10:
      return { receipt: printed };
    default:
      throw new Refused(status === 65 ? 65 : 75, 'idem begin failed');
  }
}

// The effect. Answers the receipt.
async function moveMoney(db, { key, payer, payee, amount }) {
  for (const [name, change] of [[payer, -amount], [payee, amount]]) {
    const { rowCount } = await db.query(
      'UPDATE account SET balance = balance + $1 WHERE name = $2', [change, name]);
    if (rowCount !== 1) {
      throw new Refused(1, `there is no account ${name}`);
    }
  }
  const { rows } = await db.query(
    'INSERT INTO transfer (key, payer, payee, amount) VALUES ($1, $2, $3, $4)'
      + ' RETURNING id', [key, payer, payee, amount]);
  return `transfer ${rows[0].id}: ${amount} from ${payer} to ${payee}\n`;
}

// Completes the attempt in the transaction that is open.
async function end(db, token, receipt) {
  const { status, printed } = await idem(
    'complete', '--token', token, '--result', receipt, '--as-sql');
  if (status !== 0) {
    throw new Refused(75, 'idem complete failed');
  }
  // Not as one object: pg takes "rows" for the size of a page.
  const { text, values } = JSON.parse(printed);
  await db.query(text, values);
}

// Answers the receipt. What was not committed is rolled back when the connection ends.
async function moveMoneyAndEnd(url, t, token) {
  const db = new Client({ connectionString: url });
  db.on('error', () => {}); // If the connection is lost, the next query fails.
  try {
    await db.connect();
    await db.query('BEGIN');
    const receipt = await moveMoney(db, t);
    await end(db, token, receipt);
    await db.query('COMMIT');
    return receipt;
  } finally {
    await db.end();
  }
}

// Answers the receipt: that of the first transfer with this key.
async function transfer(url, t) {
  const { token, receipt } = await claim(t);
  if (token === undefined) {
    return receipt;
  }
  try {
    return await moveMoneyAndEnd(url, t, token);
  } catch (error) {
    if (error.status === 1 || error.code === CHECK_VIOLATION) {
      await idem('release', '--token', token);
      throw new Refused(1, 'there is no such account, or not enough in it');
    }
    throw error;
  }
}

async function main([url, key, payer, payee, amount, ...rest]) {
  if (!/^[0-9]+$/.test(amount) || rest.length > 0) {
    process.stderr.write('usage: postgres.js DB KEY FROM TO AMOUNT\n');
    return 64;
  }
  try {
    process.stdout.write(
      await transfer(url, { key, payer, payee, amount: Number(amount) }));
    return 0;
  } catch (error) {
    // Also where the answer to COMMIT was lost: the next call knows what came of it.
    const said = error instanceof Refused ? 'nothing was transferred' : 'try again';
    process.stderr.write(`${said}: ${error.message}\n`);
    return error.status ?? 75;
  }
}

main(process.argv.slice(2)).then((status) => { process.exitCode = status; });
