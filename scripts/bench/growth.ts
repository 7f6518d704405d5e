import { stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { DAY_MS } from "../../src/foundation/base/days.ts";
import { writeBackup } from "../../src/foundation/db/backup.ts";
import type { Db } from "../../src/foundation/db/open.ts";
import { VerificationExpiry } from "../../src/verify/checks.ts";
import { VerificationExpiryStore } from "../../src/verify/store.ts";
import { checksBetween, createOwner, type Owner } from "./growth-data.ts";
import { type Mark, median } from "./marks.ts";
import { newDataDir, openData, type Service, type Stage, startBinary } from "./stage.ts";

const GROUP = "growth";
const SIZES = [10_000, 100_000, 1_000_000, 10_000_000] as const;
/** Twice a check's size: the largest data and its backup. */
const BYTES_PER_CHECK_MAX = 3_000;
const CALLS = 9;
const SINGLE_CHECKS = 50;
const PURGED = 2_000;
/** The last size over the first one: logarithmic growth, and the noise of a shared machine. */
const GROWTH_MAX = 3;
const METRICS_TOKEN = "0123456789abcdef0123456789abcdef";

/** What is measured at each size; each is to stay as it is while the history grows. */
type Figures = ReadonlyMap<string, { readonly value: number; readonly unit: string }>;

interface Request {
  readonly what: string;
  readonly path: string;
  readonly by: "key" | "session" | "metrics" | "nobody";
}

const API = "/v1/email-verifications";
const requests = ({ oldestEmail, newestDay }: Owner): readonly Request[] => [
  ...[
    ["newest checks", ""],
    ["status=pending", "?status=pending"],
    ["status=completed", "?status=completed"],
    ["a common verdict", "?verdict=deliverable"],
    ["a verdict without checks", "?verdict=risky"],
    ["a rare sub_status", "?sub_status=null_mx"],
    ["a sub_status without checks", "?sub_status=catch_all"],
    ["a source without checks", "?source=other"],
    ["the oldest address", `?email=${oldestEmail}`],
    ["the newest day", `?created_after=${newestDay}`],
    ["before the first day", "?created_before=2020-01-01T00:00:00Z"],
  ].map(([what = "", query = ""]) => ({ what: `checks: ${what}`, path: API + query, by: "key" as const })),
  ...[
    ["history", "/verify"],
    ["history, a verdict without checks", "/verify?verdict=risky"],
    ["history, pending", "/verify?status=pending"],
    ["history, text that is nowhere", "/verify?q=nobody-has-this"],
    ["usage", "/usage"],
    ["home", "/"],
  ].map(([what = "", path = ""]) => ({ what: `page: ${what}`, path, by: "session" as const })),
  { what: "usage of the API", path: "/v1/usage?by=sub_status", by: "key" },
  { what: "/metrics", path: "/metrics", by: "metrics" },
  { what: "/readyz", path: "/readyz", by: "nobody" },
];

const headersOf = (by: Request["by"], { key, session }: Owner): Record<string, string> => {
  if (by === "session") return { cookie: `pw_session=${session}`, accept: "text/html" };
  if (by === "nobody") return {};
  return { authorization: `Bearer ${by === "key" ? key : METRICS_TOKEN}` };
};

/** The median time of a request, in milliseconds, after a first one. */
const timeOf = async ({ url }: Service, owner: Owner, { path, by }: Request): Promise<number> => {
  const times: number[] = [];
  for (let call = 0; call <= CALLS; call++) {
    const startedMs = performance.now();
    const answer = await fetch(url + path, { headers: headersOf(by, owner), redirect: "manual" });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}: ${text.slice(0, 200)}`);
    if (call > 0) times.push(performance.now() - startedMs);
  }
  return median(times);
};

const timeSingle = async ({ url }: Service, { testKey }: Owner): Promise<number> => {
  const times: number[] = [];
  for (let n = 0; n < SINGLE_CHECKS; n++) {
    const headers = { authorization: `Bearer ${testKey}` };
    const startedMs = performance.now();
    const answer = await fetch(url + API, {
      method: "POST",
      headers,
      body: JSON.stringify({ email: `u${n}@x.example` }),
    });
    await answer.text();
    if (answer.status !== 200) throw new Error(`a check was answered with ${answer.status}`);
    times.push(performance.now() - startedMs);
    await Bun.sleep(60);
  }
  return median(times);
};

const overHttp = async (stage: Stage, dataDir: string, owner: Owner): Promise<Figures> => {
  const service = await startBinary(stage, dataDir, { POSTWARDEN_METRICS_TOKEN: METRICS_TOKEN });
  const figures = new Map<string, { value: number; unit: string }>();
  try {
    for (const request of requests(owner))
      figures.set(request.what, { value: await timeOf(service, owner, request), unit: "ms" });
    figures.set("a single check", { value: await timeSingle(service, owner), unit: "ms" });
    return figures;
  } finally {
    await service.stop();
  }
};

/** The purge of the oldest checks, per check. */
const timePurge = async (db: Db, owner: Owner): Promise<number> => {
  const nowMs = owner.timeOf(owner.oldest + PURGED) + DAY_MS + 60 * 60 * 1000;
  const clock = { ...systemClock, nowMs: () => nowMs };
  const retention = { verificationDays: 1, evidenceDays: 1 };
  const expiry = new VerificationExpiry({ db, clock }, new VerificationExpiryStore(db), retention);
  const startedMs = performance.now();
  const { verifications } = await expiry.run(() => false);
  if (verifications !== PURGED) throw new Error(`${verifications} checks were purged`);
  owner.oldest += PURGED;
  return ((performance.now() - startedMs) * 1_000) / PURGED;
};

const bytesOf = async (path: string): Promise<number> => (await stat(path)).size;

/** All figures of one size; the database has `count` checks. */
const figuresOf = async (stage: Stage, dataDir: string, { owner, count }: { owner: Owner; count: number }) => {
  const path = join(dataDir, "postwarden.db");
  const backup = join(stage.directory, `growth-${count}.db`);
  const db = openData(dataDir);
  db.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const bytes = (await bytesOf(path)) / count;
  const purge = await timePurge(db, owner);
  db.close();
  const requested = await overHttp(stage, dataDir, owner);
  const startedMs = performance.now();
  const written = writeBackup(path, backup);
  if (!written.ok) throw new Error(`the backup failed: ${written.error.kind}`);
  const backupUs = ((performance.now() - startedMs) * 1_000) / count;
  await Bun.file(backup).delete();
  return new Map([
    ["size of a check", { value: bytes, unit: "bytes" }],
    ...requested,
    ["purge of a check", { value: purge, unit: "µs" }],
    ["backup of a check", { value: backupUs, unit: "µs" }],
  ]);
};

const sizesFor = async ({ isQuick, directory }: Stage): Promise<readonly number[]> => {
  const { bavail, bsize } = await statfs(directory);
  const wanted = isQuick ? SIZES.slice(0, -1) : SIZES;
  return wanted.filter((count) => count * BYTES_PER_CHECK_MAX < bavail * bsize);
};

/** Compares the last size with the second: at the first one, what does not depend on the size is all there is. */
const markOf = (what: string, sizes: readonly number[], all: readonly Figures[]): Mark => {
  const values = all.map((figures) => figures.get(what)?.value ?? Number.NaN);
  const unit = all[0]?.get(what)?.unit ?? "";
  const ratio = (values.at(-1) ?? Number.NaN) / Math.max(values[1] ?? Number.NaN, unit === "ms" ? 1 : 0);
  const note = values.map(
    (value, at) => `${value.toFixed(value < 10 ? 1 : 0)} ${unit} at ${sizes[at]?.toExponential(0)}`,
  );
  return { group: GROUP, what, value: ratio, unit: "times", limit: { most: GROWTH_MAX }, note: note.join(", ") };
};

/** What a long history costs: the same requests at each size, the largest over the second. */
export const measureGrowth = async (stage: Stage): Promise<Mark[]> => {
  const dataDir = await newDataDir(stage, GROUP);
  const sizes = await sizesFor(stage);
  const all: Figures[] = [];
  const owner = createOwner(dataDir);
  for (const [at, count] of sizes.entries()) {
    checksBetween(dataDir, owner, { from: sizes[at - 1] ?? 0, to: count });
    const figures = await figuresOf(stage, dataDir, { owner, count });
    all.push(figures);
    const texts = [...figures].map(([what, { value, unit }]) => `${what} ${value.toFixed(1)} ${unit}`);
    process.stderr.write(`growth: ${count.toLocaleString("en")} checks: ${texts.join("; ")}\n`);
  }
  return [...(all[0]?.keys() ?? [])].map((what) => markOf(what, sizes, all));
};
