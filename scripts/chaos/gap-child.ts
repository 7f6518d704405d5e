/**
 * One of the processes that `gaps.ts` kills: inserts and deletes checks, and clears the gaps of pages, until it is killed. Prints what a
 * commit has made durable: `+ from to` and `- from to`.
 */
import { clearPageGaps } from "../../src/foundation/db/page-gaps.ts";
import { openDb } from "../../src/foundation/db/open.ts";
import { emailOf, evidenceOf } from "./gaps.ts";

const [path = "", prefix = "", first = "0"] = process.argv.slice(2);
const INSERTED_AT_ONCE = 300;
const DELETED_AT_ONCE = 200;
const STEPS_PER_CLEARING = 3;

const opened = openDb(path);
if (!opened.ok) throw new Error(opened.error.kind);
const db = opened.value;
const insert = db.sqlite.prepare<unknown, [string, string, string]>(
  "INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, status, created_at_ms) VALUES (?, 'a', 'k', 'live', ?, ?, 'completed', 0)",
);
const insertEvidence = db.sqlite.prepare<unknown, [string, string]>(
  "INSERT INTO verification_evidence (verification_id, body) VALUES (?, ?)",
);
const remove = ["verification_evidence WHERE verification_id = ?", "verifications WHERE id = ?"].map((from) =>
  db.sqlite.prepare<unknown, [string]>(`DELETE FROM ${from}`),
);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

for (let n = Number(first), step = 0; ; step++) {
  const begun = n;
  db.transact(() => {
    for (; n < begun + INSERTED_AT_ONCE; n++) {
      const email = emailOf(prefix, n);
      insert.run(`${prefix}-${n}`, email, email);
      insertEvidence.run(`${prefix}-${n}`, evidenceOf(prefix, n));
    }
  });
  say(`+ ${begun} ${n}`);
  // Every other row: SQLite then moves what is left to other pages.
  db.transact(() => {
    for (let at = begun; at < begun + DELETED_AT_ONCE; at++) for (const one of remove) one.run(`${prefix}-${at}`);
  });
  say(`- ${begun} ${begun + DELETED_AT_ONCE}`);
  if (step % STEPS_PER_CLEARING === 0) say(`= ${(await clearPageGaps(db)).outcome}`);
}
