import { readFileSync } from "node:fs";
import { newId } from "../../src/foundation/base/secrets.ts";
import { openData } from "../bench/stage.ts";
import { ask, keyOf, LISTS } from "./api.ts";
import { type Attack, type AttackContext, type Finding, flood, type SeedContext, pause, tallyOf } from "./attack.ts";
import { withoutGroup } from "./cgroup.ts";
import { type Held, requestHead, statusHeard } from "./connections.ts";
import { startService } from "./service.ts";

const MB = 1_000_000;
const CHECKS = "/v1/email-verifications";
const TARGETS = "/v1/blacklist/targets";
const DELIVERIES = "/v1/webhooks/deliveries";

type Cell = string | number | null;
type Rows = Readonly<Record<string, Cell>>;

/** Copies the only row of a table `count` times, with these columns changed: rows in the service's own form. */
const multiply = (
  db: ReturnType<typeof openData>["sqlite"],
  table: string,
  count: number,
  changes: (n: number) => Rows,
): void => {
  const row = db.query<Rows, []>(`SELECT * FROM ${table} LIMIT 1`).get();
  if (row === null) throw new Error(`${table} is empty`);
  const columns = Object.keys(row);
  const insert = db.query(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`);
  db.transaction(() => {
    for (let n = 0; n < count; n++) {
      const changed: Rows = { ...row, id: newId(), ...changes(n) };
      insert.run(...columns.map((column) => changed[column] ?? null));
    }
  })();
};

const STORED = { checks: 300_000, deliveries: 200_000, targets: 100_000 };
const SEED_MS_MAX = 10_000;

const post = async (url: string, key: string, body: object): Promise<void> => {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${await response.text()}`);
};

/** Lets the service itself write one row of each kind, and copies them while it is not running. */
const seedHistory = async (context: SeedContext): Promise<void> => {
  const { dataDir, keys } = context;
  const group = withoutGroup("prepares data");
  const key = keyOf(keys.attacker.test, 0);
  const service = await startService({ ...context, group });
  try {
    await post(`${service.url}${CHECKS}`, key, { email: "deliverable@example.com" });
    await post(`${service.url}${TARGETS}`, key, { target: "owner-siege.com", monitoring_enabled: false });
    await post(`${service.url}${LISTS}`, key, { emails: ["a@example.com"], webhook_url: "http://127.0.0.1:1025/hook" });
    const written = openData(dataDir);
    const count = written.sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM webhook_deliveries");
    for (const endsAtMs = Date.now() + SEED_MS_MAX; Date.now() < endsAtMs && count.get()?.n === 0;) await Bun.sleep(50);
    written.close();
  } finally {
    await service.stop();
  }
  const db = openData(dataDir);
  multiply(db.sqlite, "verifications", STORED.checks, (n) => ({
    email: `ada${n}@example.com`,
    normalized_email: `ada${n}@example.com`,
  }));
  const ended = { status: "failed", due_at_ms: null, finished_at_ms: Date.now() };
  multiply(db.sqlite, "webhook_deliveries", STORED.deliveries, () => ended);
  multiply(db.sqlite, "blocklist_targets", STORED.targets, (n) => ({ value: `target${n}-siege.com` }));
  db.close();
};

const FILTERED = [
  `${CHECKS}?source=x`,
  `${CHECKS}?email=nobody@example.com`,
  `${CHECKS}?verdict=risky`,
  `${CHECKS}?status=pending`,
  `${CHECKS}?created_before=2020-01-01T00:00:00Z`,
  `${DELIVERIES}?status=delivered`,
  `${DELIVERIES}?type=bulk.failed`,
  `${DELIVERIES}?url=http%3A%2F%2F127.0.0.1%2Fnone`,
  `${TARGETS}?status=listed`,
  `${TARGETS}?kind=ipv6`,
];
const FILTERED_TIMES = 40;
const FILTERED_AT_ONCE = 20;

const runFilters = async (context: AttackContext): Promise<readonly Finding[]> => {
  const key = keyOf(context.keys.attacker.test, 0);
  const findings: Finding[] = [];
  for (const path of FILTERED) {
    const fromMs = performance.now();
    const statuses: number[] = [];
    await flood(context, { atOnce: FILTERED_AT_ONCE, times: FILTERED_TIMES }, async () => {
      statuses.push((await ask(context, path, { key })).status);
    });
    const value = (performance.now() - fromMs) / Math.max(1, statuses.length);
    findings.push({ what: path.replace("/v1/", ""), value, unit: "ms each", note: tallyOf(statuses) });
    if (context.signal.aborted) break;
  }
  return findings;
};

const filters: Attack = {
  name: "filters",
  about: `${FILTERED_TIMES} filtered lists of each kind over 300,000 checks, 200,000 deliveries, 100,000 targets`,
  isQuick: false,
  seconds: 60,
  seed: seedHistory,
  prepare: async (context) => () => runFilters(context),
};

const SILENT_CHECKS = 2_000;
const SILENT_MS = 12_000;

const silentHosts: Attack = {
  name: "silent-hosts",
  about: `${SILENT_CHECKS.toLocaleString("en")} checks of one account at mail hosts that never send a banner`,
  isQuick: false,
  seconds: 30,
  prepare: async (context) => async () => {
    const held: Held[] = [];
    await flood(context, { atOnce: 50, times: SILENT_CHECKS }, async (n) => {
      const body = JSON.stringify({ email: `ada${n}@silent${n}.test` });
      const key = keyOf(context.keys.attacker.live, n);
      const connection = await context.connections.open({ host: "127.0.0.1", port: context.service.port });
      connection.write(requestHead("POST", `${CHECKS}?timeout=1`, { key, length: body.length }) + body);
      held.push(connection);
    });
    await pause(context, SILENT_MS);
    return [{ what: "checks of silent hosts", value: held.length, unit: "", note: tallyOf(held.map(statusHeard)) }];
  },
};

const READYZ_MS = 10_000;
const READYZ_AT_ONCE = 50;
const WRITTEN_MB_MAX = 10;

/** Bytes that a process has caused to be written to disk. */
const writtenBytes = (pid: number): number => {
  try {
    return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
  } catch {
    // The process has ended.
    return Number.NaN;
  }
};

/** Megabytes that the service writes in `ms` while it does nothing but the checks of the other account. */
const writtenMeanwhile = async (context: AttackContext, ms: number): Promise<number> => {
  const before = writtenBytes(context.service.pid);
  await pause(context, ms);
  return (writtenBytes(context.service.pid) - before) / MB;
};

const readyzFlood: Attack = {
  name: "readyz-flood",
  about: `${READYZ_AT_ONCE} connections ask for /readyz`,
  isQuick: true,
  seconds: 20,
  prepare: async (context) => async () => {
    const ordinary = await writtenMeanwhile(context, READYZ_MS / 5);
    const statuses: number[] = [];
    const before = writtenBytes(context.service.pid);
    await flood(context, { atOnce: READYZ_AT_ONCE, forMs: READYZ_MS }, async () => {
      statuses.push((await ask(context, "/readyz", { key: "" })).status);
    });
    const value = (writtenBytes(context.service.pid) - before) / MB - 5 * ordinary;
    const note = `beyond ${(5 * ordinary).toFixed(1)} MB of the checks; answers: ${tallyOf(statuses)}`;
    return [{ what: "written to disk", value, unit: "MB", limit: { most: WRITTEN_MB_MAX }, note }];
  },
};

const WAVES = 10;
const WRITES = 300;
const REFUSED = 30;
/** More than a new account has credits for. */
const REFUSED_ADDRESSES = 200;

/** A list without the credits for it, or one under an Idempotency-Key that stands for another. */
const orderRefused = async ({ keys, ...context }: AttackContext, n: number): Promise<number> => {
  const emails = Array.from({ length: REFUSED_ADDRESSES }, (_, row) => `ada${row}@list${n}.test`);
  const order =
    n % 2 === 0
      ? { key: keys.withoutCredits, body: JSON.stringify({ emails }) }
      : {
          key: keyOf(keys.attacker.test, 0),
          idempotencyKey: "siege",
          body: JSON.stringify({ emails: emails.slice(0, 1) }),
        };
  return (await ask({ keys, ...context }, LISTS, order)).status;
};

const refusals: Attack = {
  name: "refusals",
  about: `${WRITES} checks a second with ${REFUSED} lists between them that are refused`,
  isQuick: false,
  seconds: 25,
  prepare: async (context) => async () => {
    const lists: number[] = [];
    const checks: number[] = [];
    for (let wave = 0; wave < WAVES && !context.signal.aborted; wave++) {
      const fromMs = performance.now();
      await flood(context, { atOnce: 110, times: WRITES + REFUSED }, async (n) => {
        if (n % 11 === 10) {
          lists.push(await orderRefused(context, wave * WRITES + n));
          return;
        }
        const body = JSON.stringify({ email: `ada${wave}x${n}@example.com` });
        checks.push((await ask(context, CHECKS, { key: keyOf(context.keys.attacker.test, n), body })).status);
      });
      await pause(context, 1_000 - (performance.now() - fromMs));
    }
    return [
      { what: "checks", value: checks.length, unit: "", note: tallyOf(checks) },
      { what: "lists refused", value: lists.length, unit: "", note: tallyOf(lists) },
    ];
  },
};

/** Attacks with many ordinary requests. */
export const requestAttacks: readonly Attack[] = [filters, silentHosts, readyzFlood, refusals];
