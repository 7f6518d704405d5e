import { AccountsSlice } from "../../src/accounts/open.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { createLog } from "../../src/foundation/base/log.ts";
import type { Db } from "../../src/foundation/db/open.ts";
import { ClientAddresses } from "../../src/foundation/http/client-addresses.ts";
import { createApplications } from "../../src/service/applications.ts";
import { Service as InProcess } from "../../src/service/compose.ts";
import { systemPlatform } from "../../src/service/platform.ts";
import { createServer } from "../../src/service/server.ts";
import { inTurns } from "../harness/world.ts";
import { type CpuTimes, cpuMarks, startCpuMeter } from "./cpu.ts";
import { latenciesDuring } from "./latencies.ts";
import { type Mark, median, percentile } from "./marks.ts";
import { mailDomain, startNames, startSink } from "./servers.ts";
import {
  type Service,
  type Settings,
  type Stage,
  configOf,
  newDataDir,
  openData,
  signInOwner,
  startBinary,
} from "./stage.ts";

const PATH = "/v1/bulk-verifications";
const DOMAINS = 1_000;
const ADDRESSES = 100_000;
const LONE_ADDRESSES = 20_000;
const QUICK_PART = 0.5;
/** After a first one, which warms up. */
const ROUNDS = 5;
/** So long a list that it is still worked on when the last check has been made. */
const BUSY_TIMES = 8;
const CONNECTIONS = 100;
const END_MS_MAX = 600_000;
const CREDITS = 10_000_000;
/** Real-time checks one after the other, before and during a job. */
const CHECKS = 300;
const CHECKS_AT_ONCE = 2;

/** A service with an account that can pay, its live and test key, and the test key of another account. */
export interface BulkService {
  readonly service: Service;
  readonly ask: Ask;
  readonly live: string;
  readonly test: string;
  readonly other: string;
  /** Of the owner. */
  readonly session: string;
}

const prepare = (db: Db, slice: AccountsSlice) => {
  const { accounts, keys } = slice;
  const created = accounts.create("bench", "scale");
  if (!created.ok) throw new Error("the account could not be made");
  accounts.grantCredits("bench", CREDITS, "bench");
  accounts.create("other", "scale");
  const keyOf = (account: string, mode: "live" | "test"): string => {
    const issued = keys.create({ account, mode });
    if (!issued.ok) throw new Error(`no key: ${issued.error}`);
    return issued.value.key;
  };
  return {
    live: keyOf("bench", "live"),
    test: keyOf("bench", "test"),
    other: keyOf("other", "test"),
    session: signInOwner(db, slice, created.value.id),
  };
};

/** Starts the binary for lists. The caller stops it. */
export const startForLists = async (stage: Stage, name: string, settings: Settings = {}): Promise<BulkService> => {
  const dataDir = await newDataDir(stage, name);
  const db = openData(dataDir);
  const keys = prepare(db, new AccountsSlice({ db, clock: systemClock }));
  db.close();
  const service = await startBinary(stage, dataDir, settings);
  return { service, ask: overSocket(service), ...keys };
};

/** Answers requests: the binary over its socket, or a service in this process. */
export type Ask = (path: string, request: RequestInit) => Promise<Response>;

const overSocket =
  ({ url }: Service): Ask =>
  (path, request) =>
    fetch(url + path, request);

/** Posts a list as CSV and answers the id of its job. */
export const postList = async (ask: Ask, key: string, list: string | Blob): Promise<string> => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "text/csv" };
  const answer = await ask(PATH, { method: "POST", headers, body: list });
  const { id } = (await answer.json()) as { id?: string };
  if (answer.status !== 202 || id === undefined) throw new Error(`the list was answered with ${answer.status}`);
  return id;
};

/** Waits until a job has ended, and answers its counts by sub_status. */
export const untilEnded = async (
  ask: Ask,
  key: string,
  id: string,
  mostMs = END_MS_MAX,
): Promise<Record<string, number>> => {
  const headers = { authorization: `Bearer ${key}` };
  for (const endsAtMs = performance.now() + mostMs; performance.now() < endsAtMs; await Bun.sleep(50)) {
    const job = (await (await ask(`${PATH}/${id}`, { headers })).json()) as {
      completed_at: string | null;
      sub_statuses: Record<string, number>;
    };
    if (job.completed_at !== null) return job.sub_statuses;
  }
  throw new Error("the job did not end");
};

const listOf = (count: number, label: string): string =>
  `email\n${Array.from({ length: count }, (_, n) => `${label}${n}@bulk${n % DOMAINS}.test\n`).join("")}`;

const settingsWith = (names: string, smtpPort: number): Settings => ({
  POSTWARDEN_DNS_SERVERS: names,
  POSTWARDEN_SMTP_PORT: String(smtpPort),
  POSTWARDEN_MAX_CONNECTIONS_PER_HOST: String(CONNECTIONS),
});

/** The same service in this process, but with a connection for each address: no setting allows that. */
const startLone = async (stage: Stage, settings: Settings) => {
  const config = { ...configOf(settings), rcptPerConnectionMax: 1, dataDir: await newDataDir(stage, "bulk-lone") };
  const db = openData(config.dataDir);
  const platform = systemPlatform(config);
  const log = createLog("warn", systemClock, (line) => console.error(line));
  const options = { config, db, log, platform, baseUrl: "http://127.0.0.1" };
  const service = new InProcess(options);
  const clients = new ClientAddresses([]);
  const applicationOf = createApplications(service, options, clients);
  const server = createServer({ log, clock: systemClock, clients, applicationOf });
  const ask: Ask = async (path, request) => server.handle(new Request(`http://127.0.0.1${path}`, request));
  const stop = async (): Promise<void> => {
    await Promise.all([service.engine.drain(), service.bulk.jobs.stop()]);
    platform.close();
    db.close();
  };
  return { ask, pid: process.pid, live: prepare(db, service.accounts).live, stop };
};

interface Worked extends CpuTimes {
  readonly perSecond: number;
  readonly wrong: number;
}

/** Who verifies lists: the process and a key. */
interface Lister extends Pick<BulkService, "ask" | "live"> {
  readonly pid: number;
}

/** From the first byte of the upload to the end of the job. */
const workOff = async (
  { ask, live, pid }: Lister,
  { count, label }: { count: number; label: string },
): Promise<Worked> => {
  const list = listOf(count, label);
  const used = startCpuMeter(pid);
  const startedMs = performance.now();
  const { catch_all: accepted = 0 } = await untilEnded(ask, live, await postList(ask, live, list));
  return {
    ...used(count),
    perSecond: count / ((performance.now() - startedMs) / 1000),
    wrong: count - accepted,
  };
};

/** How long real-time checks take, in milliseconds. */
const timeChecks = async ({ service, live }: BulkService, label: string): Promise<number[]> => {
  const headers = { authorization: `Bearer ${live}` };
  const times: number[] = [];
  await inTurns(Array(CHECKS).keys(), CHECKS_AT_ONCE, async (n) => {
    const body = JSON.stringify({ email: `${label}${n}@bulk${n % DOMAINS}.test` });
    const startedMs = performance.now();
    const answer = await fetch(`${service.url}/v1/email-verifications?timeout=30`, { method: "POST", headers, body });
    await answer.text();
    if (answer.status === 200) times.push(performance.now() - startedMs);
    // The rate limit of the plan is 25 a second.
    await Bun.sleep(80);
  });
  return times;
};

const finishedOf = async ({ ask, live }: BulkService, id: string): Promise<number> => {
  const answer = await ask(`${PATH}/${id}`, { headers: { authorization: `Bearer ${live}` } });
  return ((await answer.json()) as { addresses: { finished: number } }).addresses.finished;
};

const rateOf = (rounds: readonly Worked[]): number => median(rounds.map(({ perSecond }) => perSecond));
const wrongIn = (rounds: readonly Worked[]): number => rounds.reduce((sum, { wrong }) => sum + wrong, 0);

const LOOKED_MS = 8_000;
const LOOKED_MS_MAX = 5;

/** How long `/healthz` and a page take for a while. */
const timeLooks = ({ service: { url }, session }: BulkService) => {
  const headers = { cookie: `pw_session=${session}`, accept: "text/html" };
  const requests = {
    "/healthz": () => fetch(`${url}/healthz`),
    "the page of verifications": () => fetch(`${url}/verify`, { headers, redirect: "manual" }),
  };
  return latenciesDuring(requests, Bun.sleep(LOOKED_MS));
};

type Looks = Awaited<ReturnType<typeof timeLooks>>;

const lookMarks = (idle: Looks, busy: Looks): Mark[] =>
  [["/healthz", "p99", 0.99] as const, ["the page of verifications", "p95", 0.95] as const].flatMap(
    ([what, of, share]): Mark[] => {
      const valueIn = (looks: Looks) => percentile(looks.get(what) ?? [], share);
      const [idleMs, busyMs] = [valueIn(idle), valueIn(busy)];
      const mark = { group: "bulk", what: `${what} during a list, ${of}` };
      const note = `idle ${idleMs.toFixed(1)} ms; ${busy.get(what)?.length ?? 0} requests`;
      return [
        { ...mark, value: busyMs, unit: "ms", limit: { most: LOOKED_MS_MAX }, note },
        { ...mark, what: `${mark.what} over idle`, value: busyMs / idleMs, unit: "", limit: { most: 2 } },
      ];
    },
  );

/** Real-time checks, `/healthz` and a page, without and during a list. */
const measureMeanwhile = async (shared: BulkService): Promise<Mark[]> => {
  const idle = { checks: await timeChecks(shared, "idle"), looks: await timeLooks(shared) };
  const count = ADDRESSES * BUSY_TIMES;
  const job = await postList(shared.ask, shared.live, listOf(count, "meanwhile"));
  const before = await finishedOf(shared, job);
  const startedMs = performance.now();
  const busy = { looks: await timeLooks(shared), checks: await timeChecks(shared, "busy") };
  const finished = await finishedOf(shared, job);
  if (finished === count) throw new Error("the list ended before what was measured during it");
  const meanwhile = (finished - before) / ((performance.now() - startedMs) / 1000);
  const [idleMs, busyMs] = [percentile(idle.checks, 0.95), percentile(busy.checks, 0.95)];
  const note = `medians: ${median(idle.checks).toFixed(1)} ms idle, ${median(busy.checks).toFixed(1)} ms during a list`;
  const group = "bulk";
  return [
    ...lookMarks(idle.looks, busy.looks),
    { group, what: "real-time p95, idle", value: idleMs, unit: "ms" },
    { group, what: "real-time p95, during a list", value: busyMs, unit: "ms" },
    { group, what: "that list meanwhile", value: Math.round(meanwhile), unit: "/s" },
    {
      group,
      what: "real-time p95 during a list over idle",
      value: busyMs / idleMs,
      unit: "",
      limit: { most: 2 },
      note,
    },
  ];
};

const rateMarks = (what: string, rounds: readonly Worked[], least: number): Mark[] => {
  const note = `median of ${rounds.length} lists`;
  const value = Math.round(rateOf(rounds));
  return [
    { group: "bulk", what, value, unit: "/s", limit: { least }, note },
    ...cpuMarks({ group: "bulk", what }, rounds),
  ];
};

/** A list against smtp-sink: connections shared, a connection for each, and what else is asked meanwhile. */
export const measureBulk = async (stage: Stage): Promise<Mark[]> => {
  const port = await startSink(stage, "bulk-sink");
  const zone = Array.from({ length: DOMAINS }, (_, n) => mailDomain(`bulk${n}.test`, "127.0.0.1")).flat();
  const names = await startNames(stage, "bulk-names", zone);
  const shared = await startForLists(stage, "bulk-shared", settingsWith(names.setting, port));
  const lone = await startLone(stage, settingsWith(names.setting, port));
  const [all, allLone]: [Worked[], Worked[]] = [[], []];
  try {
    const part = stage.isQuick ? QUICK_PART : 1;
    for (let round = 0; round <= ROUNDS; round++) {
      allLone.push(await workOff(lone, { count: LONE_ADDRESSES * part, label: `l${round}x` }));
      all.push(await workOff({ ...shared, pid: shared.service.pid }, { count: ADDRESSES * part, label: `s${round}x` }));
    }
    const [rounds, loneRounds] = [all.slice(1), allLone.slice(1)];
    const wrong = wrongIn([...all, ...allLone]);
    return [
      ...rateMarks("a list, a connection each", loneRounds, 5_000),
      ...rateMarks("a list, connections shared", rounds, 12_000),
      { group: "bulk", what: "results that are wrong", value: wrong, unit: "", limit: { most: 0 } },
      ...(await measureMeanwhile(shared)),
    ];
  } finally {
    await shared.service.stop();
    await lone.stop();
  }
};
