#!/usr/bin/env node
// The control of transfer.js: the same with a table of keys, and two commits.
//
// The transfer is committed, and then its key. Killed in between, this program leaves a
// transfer without a key, and the next try transfers again.
'use strict';

const Database = require('better-sqlite3');

const [path, key, payer, payee, amount] = process.argv.slice(2);
const db = new Database(path, { fileMustExist: true, timeout: 20000 });

const moveMoney = db.transaction(() => {
  const pay = db.prepare('UPDATE account SET balance = balance + ? WHERE name = ?');
  pay.run(-amount, payer);
  pay.run(amount, payee);
  const { lastInsertRowid } = db.prepare(
    'INSERT INTO transfer (key, payer, payee, amount) VALUES (?, ?, ?, ?)',
  ).run(key, payer, payee, amount);
  return `transfer ${lastInsertRowid}: ${amount} from ${payer} to ${payee}\n`;
});

db.exec('CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, receipt TEXT)');
let receipt = db.prepare('SELECT receipt FROM done WHERE key = ?').pluck().get(key);
if (receipt === undefined) {
  receipt = moveMoney.immediate();
  db.prepare('INSERT INTO done VALUES (?, ?)').run(key, receipt);
}
process.stdout.write(receipt);
