/**
 * `npm run chaos -- --only bulk [--kills N] [--rows N]`: kills the binary with SIGKILL at random moments while it takes in and
 * works off a list of addresses at good, greylisting, slow and silent hosts, and then proves from the database that every
 * row has exactly one result, that the credits add up, and that exactly one event tells of the end.
 */
import type { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createAccount, kill, type Server, startServer } from "../harness/binary.ts";
import { chance, type Claim, count, one, openDatabase, printFindings } from "./claims.ts";
import { startWorld, type Temperament } from "./world.ts";
import { unpackEvidence } from "../../src/verify/store.ts";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "40" }, rows: { type: "string", default: "20000" } },
});
const kills = Number(values.kills);
const rowsTotal = Number(values.rows);
/** Rounds in which the list is not yet accepted when the binary is killed. */
const KILLS_WHILE_RECEIVING = Math.ceil(kills / 5);
const UP_MS_MAX = 2_000;
const RECEIVING_MS_MAX = 250;
const END_MS_MAX = 120_000;
const CREDITS = 100_000;
const SIGN_UP_CREDITS = 100;
const EVERY_REPEATED = 20;
const PATH = "/v1/bulk-verifications";

const folder = mkdtempSync(join(tmpdir(), "postwarden-chaos-"));
const world = await startWorld();
const env = {
  ...world.settings(folder),
  POSTWARDEN_MAX_CONNECTIONS: "30",
  POSTWARDEN_MAX_CONNECTIONS_PER_HOST: "20",
  POSTWARDEN_DNSBL_SIGNAL: "off",
};

/** Of twenty rows: thirteen at good hosts, five at greylisting ones, one at a slow and one at a silent one. */
const TEMPERAMENT_OF: readonly Temperament[] = [
  ...Array<Temperament>(13).fill("good"),
  ...Array<Temperament>(5).fill("grey"),
  "slow",
  "silent",
];

const emailAt = (row: number): string => {
  const temperament = TEMPERAMENT_OF[row % TEMPERAMENT_OF.length] ?? "good";
  return `${row % 3 === 0 ? "nobody" : "exists"}${row}@d${row % 97}.${temperament}.chaos.test`;
};

/** Every twentieth row repeats an address that came before, in capitals. */
const rowAt = (row: number): string => {
  if (row === 0 || row % EVERY_REPEATED !== 0) return emailAt(row);
  const earlier = chance(row);
  return emailAt(earlier % EVERY_REPEATED === 0 ? earlier + 1 : earlier).toUpperCase();
};
const submitted = Array.from({ length: rowsTotal }, (_, row) => rowAt(row));
const distinct = new Set(submitted.map((email) => email.toLowerCase())).size;
const list = `name,email\n${submitted.map((email, row) => `Row ${row},${email}\n`).join("")}`;

/** Posts the list; null when the connection died with the server, so that nothing was acknowledged. */
const post = async (server: Server, key: string, idempotencyKey: string): Promise<string | null> => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "text/csv", "idempotency-key": idempotencyKey };
  try {
    const response = await fetch(server.url + PATH, { method: "POST", headers, body: list });
    const { id } = (await response.json()) as { id?: string };
    return response.status === 202 && id !== undefined ? id : null;
  } catch {
    return null;
  }
};

const killedWhileReceiving = async (key: string): Promise<string | null> => {
  const server = await startServer(env);
  const posted = post(server, key, "the list");
  await Bun.sleep(chance(RECEIVING_MS_MAX));
  await kill(server, "SIGKILL");
  return posted;
};

const killedAtWork = async (): Promise<void> => {
  const server = await startServer(env);
  await Bun.sleep(chance(UP_MS_MAX));
  await kill(server, "SIGKILL");
};

/** Lets the binary finish, and asks it once more for the list under the same key. */
const untilEnded = async (key: string, acknowledged: string): Promise<number> => {
  const server = await startServer(env);
  const repeated = await post(server, key, "the list");
  const db = openDatabase(folder);
  for (const endsAtMs = Date.now() + END_MS_MAX; Date.now() < endsAtMs; await Bun.sleep(200)) {
    if (count(db, "bulk_jobs WHERE completed_at_ms IS NULL") === 0) break;
  }
  db.close();
  await kill(server, "SIGTERM");
  return repeated === acknowledged ? 0 : 1;
};

const FREE = "('smtp_timeout', 'smtp_unreachable', 'dns_error', 'internal_error')";

/** Addresses whose result is not what their host said. */
const wrongResults = (db: Database, job: number): number => {
  const rows = db
    .query("SELECT normalized_email AS email, sub_status AS subStatus FROM bulk_addresses WHERE job = ?")
    .all(job) as Array<{ email: string; subStatus: string | null }>;
  return rows.filter(({ email, subStatus }) => {
    if (email.includes("silent.chaos")) return subStatus !== "smtp_timeout";
    return subStatus !== (email.startsWith("exists") ? "mailbox_exists" : "mailbox_not_found");
  }).length;
};

/** Evidence that cannot be unpacked, or that names another address than the one it is stored for. */
const wrongEvidence = (db: Database): number => {
  const rows = db.query(
    "SELECT a.normalized_email AS email, e.body FROM bulk_evidence e JOIN bulk_addresses a ON a.job = e.job AND a.position = e.position",
  );
  let wrong = 0;
  for (const { email, body } of rows.iterate() as Iterable<{ email: string; body: Uint8Array }>) {
    try {
      if (unpackEvidence(body).address.normalized_email !== email) wrong++;
    } catch {
      wrong++;
    }
  }
  return wrong;
};

const claimsOf = (id: string): readonly Claim[] => {
  const db = openDatabase(folder);
  const job = one<{ number: number; status: string; addresses: number; charged: number; released: number }>(
    db,
    "SELECT number, status, addresses_finished AS addresses, credits_charged AS charged, credits_released AS released FROM bulk_jobs WHERE id = ?",
    id,
  );
  const number = String(job.number);
  const sum = (of: string, kind: string) =>
    one<{ n: number }>(
      db,
      `SELECT coalesce(sum(${of}), 0) AS n FROM ledger WHERE kind = '${kind}' AND (reference = ? OR reference LIKE ? || '#%')`,
      id,
      id,
    ).n;
  const ledger = one<{ available: number; held: number }>(
    db,
    "SELECT coalesce(sum(available), 0) AS available, coalesce(sum(held), 0) AS held FROM ledger",
  );
  const balance = one<{ available: number; held: number }>(
    db,
    "SELECT sum(credits_available) AS available, sum(credits_held) AS held FROM accounts",
  );
  const addressesFree = count(db, `bulk_addresses WHERE job = ? AND sub_status IN ${FREE}`, number);
  const shown = one<{ n: number }>(db, "SELECT coalesce(sum(rows), 0) AS n FROM bulk_counts WHERE job = ?", number).n;
  const found: readonly Claim[] = [
    ["jobs besides the acknowledged one", count(db, "bulk_jobs") - 1],
    ["jobs that did not complete", job.status === "completed" ? 0 : 1],
    ["rows missing or too many", Math.abs(count(db, "bulk_rows WHERE job = ?", number) - rowsTotal)],
    ["addresses missing or too many", Math.abs(count(db, "bulk_addresses WHERE job = ?", number) - distinct)],
    ["addresses without a result", count(db, "bulk_addresses WHERE job = ? AND sub_status IS NULL", number)],
    [
      "rows whose address is not there",
      count(
        db,
        "bulk_rows r WHERE NOT EXISTS (SELECT 1 FROM bulk_addresses a WHERE a.job = r.job AND a.position = r.position)",
      ),
    ],
    ["wrong results", wrongResults(db, job.number)],
    ["difference between the rows and the counts shown", Math.abs(shown - rowsTotal)],
    ["difference between holds and addresses", Math.abs(sum("held", "hold") - distinct)],
    [
      "difference between addresses heard and credits charged",
      Math.abs(-sum("held", "settle") - (distinct - addressesFree)),
    ],
    [
      "difference between addresses not heard and credits given back",
      Math.abs(sum("available", "release") - addressesFree),
    ],
    ["difference between the ledger and the job's own count", Math.abs(job.charged + job.released - distinct)],
    ["credits still held", Math.abs(ledger.held) + Math.abs(balance.held)],
    ["difference between the ledger's sum and the balance", Math.abs(ledger.available - balance.available)],
    [
      "difference between credits granted, less those charged, and the balance",
      Math.abs(CREDITS + SIGN_UP_CREDITS - job.charged - balance.available),
    ],
    [
      "events but the one of the end",
      Math.abs(count(db, "outbox WHERE type = 'bulk.completed'") - 1) +
        count(db, "outbox WHERE type <> 'bulk.completed'"),
    ],
    [
      "finished addresses without their evidence",
      count(
        db,
        "bulk_addresses a WHERE sub_status IS NOT NULL AND NOT EXISTS (SELECT 1 FROM bulk_evidence e WHERE e.job = a.job AND e.position = a.position)",
      ),
    ],
    [
      "evidence without a finished address",
      count(
        db,
        "bulk_evidence e WHERE NOT EXISTS (SELECT 1 FROM bulk_addresses a WHERE a.job = e.job AND a.position = e.position AND a.sub_status IS NOT NULL)",
      ),
    ],
    ["evidence that is unreadable or of another address", wrongEvidence(db)],
  ];
  db.close();
  return found;
};

try {
  const key = createAccount("chaos", { env, credits: CREDITS });
  let acknowledged: string | null = null;
  let done = 0;
  for (; done < KILLS_WHILE_RECEIVING; done++) acknowledged = (await killedWhileReceiving(key)) ?? acknowledged;
  if (acknowledged === null) {
    const server = await startServer(env);
    acknowledged = await post(server, key, "the list");
    await kill(server, "SIGKILL");
    done++;
  }
  if (acknowledged === null) throw new Error("the list was not accepted");
  for (; done < kills; done++) {
    await killedAtWork();
    if (done % 10 === 0) {
      const db = openDatabase(folder);
      const finished = count(db, "bulk_addresses WHERE sub_status IS NOT NULL");
      db.close();
      console.error(
        `${done} kills, ${finished.toLocaleString("en")} of ${distinct.toLocaleString("en")} addresses finished`,
      );
    }
  }
  const otherJobs = await untilEnded(key, acknowledged);
  const failed = printFindings("bulk", {
    summary: `${kills} kills, ${rowsTotal.toLocaleString("en")} rows, ${distinct.toLocaleString("en")} addresses`,
    claims: [...claimsOf(acknowledged), ["repeats with the Idempotency-Key that found another job", otherJobs]],
  });
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  world.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
