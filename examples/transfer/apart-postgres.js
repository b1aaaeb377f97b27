#!/usr/bin/env node
// The control of postgres.js: the same with a table of keys, and two commits.
//
// The transfer is committed, and then its key. Killed in between, this program leaves a
// transfer without a key, and the next try transfers again.
'use strict';

const { Client } = require('pg');

const PAY = 'UPDATE account SET balance = balance + $1 WHERE name = $2';
const WRITE_DOWN = 'INSERT INTO transfer (key, payer, payee, amount)'
  + ' VALUES ($1, $2, $3, $4) RETURNING id';

async function moveMoney(db, key, payer, payee, amount) {
  await db.query('BEGIN');
  await db.query(PAY, [-amount, payer]);
  await db.query(PAY, [amount, payee]);
  const { rows } = await db.query(WRITE_DOWN, [key, payer, payee, amount]);
  await db.query('COMMIT');
  return `transfer ${rows[0].id}: ${amount} from ${payer} to ${payee}\n`;
}

async function main([url, key, ...transfer]) {
  const db = new Client({ connectionString: url });
  await db.connect();
  const { rows } = await db.query('SELECT receipt FROM done WHERE key = $1', [key]);
  let receipt = rows[0]?.receipt;
  if (receipt === undefined) {
    receipt = await moveMoney(db, key, ...transfer);
    await db.query('INSERT INTO done VALUES ($1, $2)', [key, receipt]);
  }
  process.stdout.write(receipt);
  await db.end();
}

main(process.argv.slice(2));
