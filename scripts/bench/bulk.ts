import { AccountsSlice } from "../../src/accounts/open.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { createLog } from "../../src/foundation/base/log.ts";
import { ClientAddresses } from "../../src/foundation/http/client-addresses.ts";
import { createApplications } from "../../src/service/applications.ts";
import { Service as InProcess } from "../../src/service/compose.ts";
import { systemPlatform } from "../../src/service/platform.ts";
import { createServer } from "../../src/service/server.ts";
import { inTurns } from "../harness/world.ts";
import { type Mark, median } from "./marks.ts";
import { mailDomain, startNames, startSink } from "./servers.ts";
import { type Service, type Settings, type Stage, configOf, newDataDir, openData, startBinary } from "./stage.ts";

const PATH = "/v1/bulk-verifications";
const DOMAINS = 1_000;
const ADDRESSES = 100_000;
const LONE_ADDRESSES = 20_000;
const ROUNDS = 2;
/** So long a list that it is still worked on when the last check has been made. */
const BUSY_TIMES = 5;
const CONNECTIONS = 100;
const END_MS_MAX = 120_000;
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
}

const prepare = ({ accounts, keys }: Pick<AccountsSlice, "accounts" | "keys">) => {
  accounts.create("bench", "scale");
  accounts.grantCredits("bench", CREDITS, "bench");
  accounts.create("other", "scale");
  const keyOf = (account: string, mode: "live" | "test"): string => {
    const issued = keys.create({ account, mode });
    if (!issued.ok) throw new Error(`no key: ${issued.error}`);
    return issued.value.key;
  };
  return { live: keyOf("bench", "live"), test: keyOf("bench", "test"), other: keyOf("other", "test") };
};

/** Starts the binary for lists. The caller stops it. */
export const startForLists = async (stage: Stage, name: string, settings: Settings = {}): Promise<BulkService> => {
  const dataDir = await newDataDir(stage, name);
  const db = openData(dataDir);
  const keys = prepare(new AccountsSlice({ db, clock: systemClock }));
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
    await Promise.all([service.engine.smtp.pool.drain(), service.bulk.jobs.stop()]);
    platform.close();
    db.close();
  };
  return { ask, live: prepare(service.accounts).live, stop };
};

interface Worked {
  readonly perSecond: number;
  readonly wrong: number;
}

/** From the first byte of the upload to the end of the job. */
const workOff = async (ask: Ask, key: string, { count, label }: { count: number; label: string }): Promise<Worked> => {
  const list = listOf(count, label);
  const startedMs = performance.now();
  const { catch_all: accepted = 0 } = await untilEnded(ask, key, await postList(ask, key, list));
  return {
    perSecond: count / ((performance.now() - startedMs) / 1000),
    wrong: count - accepted,
  };
};

const p95 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? Number.NaN;

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

/** A list against smtp-sink: connections shared, a connection for each, and real-time checks meanwhile. */
export const measureBulk = async (stage: Stage): Promise<Mark[]> => {
  const port = await startSink(stage, "bulk-sink");
  const zone = Array.from({ length: DOMAINS }, (_, n) => mailDomain(`bulk${n}.test`, "127.0.0.1")).flat();
  const names = await startNames(stage, "bulk-names", zone);
  const shared = await startForLists(stage, "bulk-shared", settingsWith(names.setting, port));
  const lone = await startLone(stage, settingsWith(names.setting, port));
  const [rounds, loneRounds]: [Worked[], Worked[]] = [[], []];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      loneRounds.push(await workOff(lone.ask, lone.live, { count: LONE_ADDRESSES, label: `l${round}x` }));
      rounds.push(await workOff(shared.ask, shared.live, { count: ADDRESSES, label: `s${round}x` }));
    }
    const idle = await timeChecks(shared, "idle");
    const job = await postList(shared.ask, shared.live, listOf(ADDRESSES * BUSY_TIMES, "meanwhile"));
    const before = await finishedOf(shared, job);
    const startedMs = performance.now();
    const busy = await timeChecks(shared, "busy");
    const meanwhile = ((await finishedOf(shared, job)) - before) / ((performance.now() - startedMs) / 1000);
    const group = "bulk";
    const note = `medians: ${median(idle).toFixed(1)} ms idle, ${median(busy).toFixed(1)} ms during a list`;
    const figure = (what: string, value: number, unit: string): Mark => ({ group, what, value, unit });
    const least = (limit: number) => ({ limit: { least: limit } });
    const most = (limit: number) => ({ limit: { most: limit } });
    return [
      figure("a list worked off, a connection each", Math.round(rateOf(loneRounds)), "/s"),
      { ...figure("a list worked off, connections shared", Math.round(rateOf(rounds)), "/s"), ...least(5_000) },
      { ...figure("shared over a connection each", rateOf(rounds) / rateOf(loneRounds), ""), ...least(2) },
      { ...figure("results that are wrong", wrongIn([...rounds, ...loneRounds]), ""), ...most(0) },
      figure("real-time p95, idle", p95(idle), "ms"),
      figure("real-time p95, during a list", p95(busy), "ms"),
      figure("that list meanwhile", Math.round(meanwhile), "/s"),
      { ...figure("real-time p95 during a list over idle", p95(busy) / p95(idle), ""), ...most(2), note },
    ];
  } finally {
    await shared.service.stop();
    await lone.stop();
  }
};
