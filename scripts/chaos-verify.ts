/**
 * `npm run chaos:verify -- [--kills N]`: kills the binary with SIGKILL at random moments under a load of real-time
 * checks, some greylisted, some never answered, and then proves from the database that every acknowledged check ended
 * once and that the credits add up.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { command, kill, startServer } from "./chaos/binary.ts";
import { startWorld, TEMPERAMENTS } from "./chaos/world.ts";

const { values } = parseArgs({ options: { kills: { type: "string", default: "50" } } });
const kills = Number(values.kills);
const KEYS = 8;
const REQUESTS_PER_ROUND = 60;
const UP_MS_MAX = 900;
const END_MS_MAX = 60_000;
const CREDITS = 100_000;

interface Acknowledged {
  readonly id: string;
  readonly email: string;
  readonly idempotencyKey: string | null;
  readonly key: string;
}

const folder = mkdtempSync(join(tmpdir(), "postwarden-chaos-"));
const world = await startWorld();
const env = {
  ...world.settings(folder),
  POSTWARDEN_MAX_CONNECTIONS_PER_HOST: "50",
};

const chance = (below: number): number => Math.floor(Math.random() * below);
let serial = 0;
const newEmail = (): string => {
  const temperament = TEMPERAMENTS[chance(TEMPERAMENTS.length)] ?? "good";
  return `${chance(2) === 0 ? "exists" : "nobody"}${serial++}@d${chance(40)}.${temperament}.chaos.test`;
};

const acknowledged: Acknowledged[] = [];
let repeats = 0;
let broken = 0;

const post = async (url: string, order: Omit<Acknowledged, "id">): Promise<string | null> => {
  const headers: Record<string, string> = { authorization: `Bearer ${order.key}` };
  if (order.idempotencyKey !== null) headers["idempotency-key"] = order.idempotencyKey;
  try {
    const body = JSON.stringify({ email: order.email });
    const response = await fetch(`${url}/v1/email-verifications?timeout=1`, { method: "POST", headers, body });
    const answer = (await response.json()) as { id?: string };
    return (response.status === 200 || response.status === 202) && answer.id !== undefined ? answer.id : null;
  } catch {
    // The connection died with the server: this check was never acknowledged.
    return null;
  }
};

const order = async (url: string, keys: readonly string[]): Promise<void> => {
  const before = acknowledged[chance(acknowledged.length)];
  if (before?.idempotencyKey != null && chance(5) === 0) {
    const again = await post(url, before);
    if (again === null) return;
    repeats++;
    if (again !== before.id) broken++;
    return;
  }
  const key = keys[chance(keys.length)] ?? "";
  const wanted = { email: newEmail(), idempotencyKey: chance(2) === 0 ? `k${serial}` : null, key };
  const id = await post(url, wanted);
  if (id !== null) acknowledged.push({ ...wanted, id });
};

const round = async (keys: readonly string[]): Promise<void> => {
  const server = await startServer(env);
  const load = Array.from({ length: REQUESTS_PER_ROUND }, async () => {
    await Bun.sleep(chance(UP_MS_MAX));
    await order(server.url, keys);
  });
  await Bun.sleep(chance(UP_MS_MAX));
  await kill(server, "SIGKILL");
  await Promise.all(load);
};

const untilNothingPends = async (): Promise<void> => {
  const server = await startServer(env);
  const db = new Database(join(folder, "postwarden.db"), { readonly: true });
  const pending = db.query("SELECT count(*) AS n FROM verifications WHERE status = 'pending'");
  for (const endsAtMs = Date.now() + END_MS_MAX; Date.now() < endsAtMs; await Bun.sleep(200)) {
    if ((pending.get() as { n: number }).n === 0) break;
  }
  db.close();
  await kill(server, "SIGTERM");
};

interface Row {
  readonly id: string;
  readonly status: string;
  readonly sub_status: string | null;
  readonly holds: number;
  readonly settles: number;
  readonly releases: number;
}

const FREE = new Set(["smtp_timeout", "smtp_unreachable", "dns_error", "internal_error"]);

const claims = (): Array<readonly [string, number]> => {
  const db = new Database(join(folder, "postwarden.db"), { readonly: true });
  const rows = db
    .query(
      `SELECT v.id, v.status, v.sub_status,
        (SELECT count(*) FROM ledger WHERE reference = v.id AND kind = 'hold') AS holds,
        (SELECT count(*) FROM ledger WHERE reference = v.id AND kind = 'settle') AS settles,
        (SELECT count(*) FROM ledger WHERE reference = v.id AND kind = 'release') AS releases
       FROM verifications v`,
    )
    .all() as Row[];
  const sum = db
    .query(
      "SELECT coalesce(sum(available), 0) AS available, coalesce(sum(held), 0) AS held FROM ledger WHERE account_id = (SELECT id FROM accounts WHERE name = 'chaos')",
    )
    .get() as { available: number; held: number };
  const balance = db
    .query("SELECT credits_available AS available, credits_held AS held FROM accounts WHERE name = 'chaos'")
    .get() as { available: number; held: number };
  const orphans = db
    .query(
      "SELECT count(*) AS n FROM ledger WHERE reference IS NOT NULL AND reference NOT IN (SELECT id FROM verifications)",
    )
    .get() as { n: number };
  db.close();
  const byId = new Map(rows.map((row) => [row.id, row]));
  const count = (isWrong: (row: Row) => boolean) => rows.filter(isWrong).length;
  const settled = rows.reduce((total, row) => total + row.settles, 0);
  const silent = new Set(acknowledged.filter(({ email }) => email.includes("silent.chaos")).map(({ id }) => id));
  return [
    ["acknowledged checks that are missing", acknowledged.filter(({ id }) => !byId.has(id)).length],
    ["checks that did not complete", count((row) => row.status !== "completed")],
    ["checks without exactly one hold", count((row) => row.holds !== 1)],
    ["checks without exactly one settlement or release", count((row) => row.settles + row.releases !== 1)],
    ["checks charged although no server responded", count((row) => row.settles > 0 && FREE.has(row.sub_status ?? ""))],
    ["checks of silent hosts that were charged", [...silent].filter((id) => byId.get(id)?.settles !== 0).length],
    ["ledger entries without a check", orphans.n],
    ["credits still held", sum.held + balance.held],
    ["difference between the ledger's sum and the balance", Math.abs(sum.available - balance.available)],
    [
      "difference between credits granted, less one a settled check, and the balance",
      Math.abs(CREDITS + 100 - settled - balance.available),
    ],
    ["repeats with an Idempotency-Key that found another check", broken],
  ];
};

try {
  command(["accounts", "create", "chaos", "--plan", "scale"], env);
  command(["credits", "grant", "chaos", String(CREDITS)], env);
  const keys = Array.from(
    { length: KEYS },
    () => command<{ key: string }>(["keys", "create", "--account", "chaos", "--mode", "live"], env).key,
  );
  for (let n = 1; n <= kills; n++) {
    await round(keys);
    if (n % 10 === 0) console.error(`${n} kills, ${acknowledged.length} checks acknowledged`);
  }
  await untilNothingPends();
  const found = claims();
  console.log(`${kills} kills, ${acknowledged.length} checks acknowledged, ${repeats} repeats with an Idempotency-Key`);
  for (const [what, wrong] of found) console.log(`${wrong === 0 ? "ok  " : "FAIL"} ${what}: ${wrong}`);
  const failed = found.filter(([, wrong]) => wrong !== 0).length;
  console.log(`${found.length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  world.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
