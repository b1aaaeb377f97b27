#!/usr/bin/env node
// A transfer of money and its record in one transaction, from Node.js.
//
//     $ node transfer.js bank.db order-42 ann bob 30
//     transfer 1: 30 from ann to bob
//     $ node transfer.js bank.db order-42 ann bob 30     # again, after a time-out
//     transfer 1: 30 from ann to bob
//
// The database is that of ../transaction.c, which is the same in C. better-sqlite3 has
// an SQLite of its own, and the extension mod_idem adds SQL functions to that one: the
// record is a row of the same database, and one COMMIT makes transfer and record
// durable. Whenever this program is killed, both are there or neither is.
//
// Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
// 65 the key is that of another transfer; 75 try again later.
'use strict';

const Database = require('better-sqlite3');

class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

function openBank(path) {
  const db = new Database(path, { fileMustExist: true, timeout: 20000 });
  db.loadExtension('mod_idem');
  return db;
}

// The effect. Answers the receipt.
function moveMoney(db, t) {
  const pay = db.prepare('UPDATE account SET balance = balance + ? WHERE name = ?');
  for (const [name, change] of [[t.payer, -t.amount], [t.payee, t.amount]]) {
    if (pay.run(change, name).changes !== 1) {
      throw new Refused(1, `there is no account ${name}`);
    }
  }
  const { lastInsertRowid } = db.prepare(
    'INSERT INTO transfer (key, payer, payee, amount)'
      + ' VALUES (:key, :payer, :payee, :amount)').run(t);
  return `transfer ${lastInsertRowid}: ${t.amount} from ${t.payer} to ${t.payee}\n`;
}

// Answers the receipt, inside the transaction that is open.
function claimAndTransfer(db, t) {
  const { verdict, token, result } = db.prepare(
    'SELECT verdict, token, result FROM idem_begin(:key)'
      + ' WHERE fingerprint = idem_fingerprint(:payer, :payee, :amount)'
      + " AND retention_ms = 'never'").get(t);
  switch (verdict) {
    case 'REPLAY':
      return result.toString();
    case 'STARTED':
      break;
    case 'MISMATCH':
      throw new Refused(65, 'this key is that of another transfer');
    default:
      throw new Refused(75, `the record says ${verdict}`);
  }
  const receipt = moveMoney(db, t);
  db.prepare("SELECT idem_complete(?, ?, 'text/plain')").get(token, receipt);
  return receipt;
}

function main([path, key, payer, payee, amount, ...rest]) {
  if (!/^[0-9]+$/.test(amount) || rest.length > 0) {
    process.stderr.write('usage: transfer.js DB KEY FROM TO AMOUNT\n');
    return 64;
  }
  try {
    const db = openBank(path);
    // BEGIN IMMEDIATE; COMMIT, or ROLLBACK where the function throws.
    const transfer = db.transaction(claimAndTransfer).immediate;
    process.stdout.write(transfer(db, { key, payer, payee, amount: Number(amount) }));
    return 0;
  } catch (error) {
    process.stderr.write(`nothing was transferred: ${error.message}\n`);
    return error.status ?? (String(error.code).startsWith('SQLITE_BUSY') ? 75 : 1);
  }
}

process.exitCode = main(process.argv.slice(2));
