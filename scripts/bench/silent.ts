import { AccountsSlice } from "../../src/accounts/open.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { newId } from "../../src/foundation/base/secrets.ts";
import { VerificationStore } from "../../src/verify/store.ts";
import { anonymousMbOf, residentMbOf } from "../harness/binary.ts";
import { inTurns } from "../harness/world.ts";
import { type Mark, median } from "./marks.ts";
import { mailDomain, startNames, startSink } from "./servers.ts";
import { type Settings, type Stage, newDataDir, openData, startBinary } from "./stage.ts";

const PENDING = 10_000;
const CHECKS = 100;
const ROUNDS = 7;
const AT_ONCE = 10;
/** Enough for all rounds at the rate limit of one key. */
const KEYS = 40;
/** The part of the connections that one account may have for single verifications. */
const ACCOUNT_SHARE = 0.8;
/** The silent server stands on several addresses, because the connections to one are limited whatever is set. */
const SILENT_HOSTS = 20;
const silentAddress = (host: number): string => `127.0.1.${host + 1}`;
const HEALTHY = "127.0.0.1";
const SETTLE_TRIES_MAX = 200;
const SETTLE_PAUSE_MS = 100;
const SETTLE_MS = 3_000;

/** An account with keys and credits and, if so wanted, checks that wait for the service to start. */
const prepare = (dataDir: string, pending: number): string[] => {
  const db = openData(dataDir);
  const { accounts, keys, ledger } = new AccountsSlice({ db, clock: systemClock });
  const store = new VerificationStore(db);
  accounts.create("bench", "scale");
  accounts.grantCredits("bench", 1_000_000, "bench");
  const issued = Array.from({ length: KEYS }, () => {
    const key = keys.create({ account: "bench", mode: "live" });
    if (!key.ok) throw new Error(`no key: ${key.error}`);
    return key.value;
  });
  const { id: keyId = "", accountId = "" } = issued[0] ?? {};
  const atMs = systemClock.nowMs();
  const nothing = { source: null, verdict: null, subStatus: null, result: null, completedAtMs: null, attempts: 0 };
  db.transact((tx) => {
    for (let n = 0; n < pending; n++) {
      const email = `user${n}@silent${n % SILENT_HOSTS}.test`;
      const row = { id: newId(), accountId, keyId, mode: "live", status: "pending", ...nothing } as const;
      store.insert(tx, { ...row, email, normalizedEmail: email, createdAtMs: atMs, dueAtMs: atMs });
      ledger.hold(tx, { accountId, reference: row.id, atMs });
    }
  });
  db.close();
  return issued.map(({ key }) => key);
};

const countPending = (dataDir: string): number => {
  const db = openData(dataDir);
  const sql = "SELECT count(*) AS n FROM verifications WHERE status = 'pending' AND email LIKE '%@silent%'";
  const row = db.sqlite.query<{ n: number }, []>(sql).get();
  db.close();
  return row?.n ?? 0;
};

/** Accepts every connection and never says a word. */
const listenSilently = (port: number) => {
  const open = new Set<unknown>();
  const listeners = Array.from({ length: SILENT_HOSTS }, (_, host) =>
    Bun.listen({
      hostname: silentAddress(host),
      port,
      socket: {
        open: (socket) => void open.add(socket),
        close: (socket) => void open.delete(socket),
        data: () => undefined,
      },
    }),
  );
  return {
    open: () => open.size,
    stop: () => {
      for (const listener of listeners) listener.stop(true);
    },
  };
};

/** How long a hundred checks of the healthy server take, in milliseconds, each at a domain of its own. */
const timeChecks = async (url: string, keys: readonly string[], round: number): Promise<number> => {
  const startedMs = performance.now();
  await inTurns(Array(CHECKS).keys(), AT_ONCE, async (n) => {
    const response = await fetch(`${url}/v1/email-verifications?timeout=30`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys[n % keys.length]}` },
      body: JSON.stringify({ email: `user@healthy${round * CHECKS + n}.test` }),
    });
    const body = await response.text();
    if (response.status !== 200 || !body.includes('"catch_all"')) throw new Error(`${response.status} ${body}`);
  });
  return performance.now() - startedMs;
};

const timeRounds = async (url: string, keys: readonly string[]): Promise<number> => {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await timeChecks(url, keys, round));
  return median(times.slice(1));
};

interface Run {
  readonly healthyMs: number;
  readonly memoryMb: number;
  readonly anonymousMb: number;
  readonly pending: number;
  readonly connections: number;
}

/** How many checks wait, and how many of them hold a connection to the silent server once it has come to rest. */
interface Crowd {
  readonly name: string;
  readonly pending: number;
  readonly connections: number;
}

const run = async (stage: Stage, settings: Settings, { name, pending, connections }: Crowd): Promise<Run> => {
  const dataDir = await newDataDir(stage, `silent-${name}`);
  const keys = prepare(dataDir, pending);
  const silent = listenSilently(Number(settings.POSTWARDEN_SMTP_PORT));
  const service = await startBinary(stage, dataDir, settings);
  try {
    for (let tries = 0; silent.open() < connections && tries < SETTLE_TRIES_MAX; tries++) {
      await Bun.sleep(SETTLE_PAUSE_MS);
    }
    await Bun.sleep(SETTLE_MS);
    const healthyMs = await timeRounds(service.url, keys);
    const [memoryMb, anonymousMb] = [residentMbOf(service.pid), anonymousMbOf(service.pid)];
    return { healthyMs, memoryMb, anonymousMb, pending: countPending(dataDir), connections: silent.open() };
  } finally {
    await service.stop("SIGKILL");
    silent.stop();
  }
};

const marksOf = (idle: Run, busy: Run, mbMax: number): Mark[] => {
  const note = `${busy.connections} connections open, ${busy.pending} checks pending`;
  const took = `${Math.round(busy.healthyMs)} ms, idle ${Math.round(idle.healthyMs)} ms`;
  const how = { group: "silent", note };
  return [
    { ...how, what: "checks pending on a silent server", value: busy.pending, unit: "", limit: { least: PENDING } },
    { ...how, what: "memory meanwhile", value: busy.memoryMb, unit: "MB", limit: { most: mbMax } },
    { ...how, what: "of it anonymous", value: busy.anonymousMb, unit: "MB" },
    {
      ...{ group: "silent", what: `${CHECKS} checks of a healthy server, times their idle time`, unit: "" },
      ...{
        value: busy.healthyMs / idle.healthyMs,
        limit: { most: 2 },
        note: `${took}; median of ${ROUNDS - 1} rounds`,
      },
    },
  ];
};

/**
 * Ten thousand checks that wait for a server that never says a word: with the default ceilings, where few of them hold
 * a connection, and with ceilings so high that each does. A hundred checks of a healthy server must hardly notice.
 */
export const measureSilent = async (stage: Stage): Promise<Mark[]> => {
  const smtpPort = await startSink(stage, "silent-sink");
  const healthy = Array.from({ length: ROUNDS * CHECKS }, (_, n) => mailDomain(`healthy${n}.test`, HEALTHY)).flat();
  const mute = Array.from({ length: SILENT_HOSTS }, (_, n) => mailDomain(`silent${n}.test`, silentAddress(n))).flat();
  const names = await startNames(stage, "silent-names", [...mute, ...healthy]);
  const settings = {
    POSTWARDEN_DNS_SERVERS: names.setting,
    POSTWARDEN_SMTP_PORT: String(smtpPort),
    POSTWARDEN_SMTP_REPLY_TIMEOUT_MS: "120000",
  };
  const ceilings = {
    POSTWARDEN_MAX_CONNECTIONS: String(Math.ceil((PENDING + CHECKS) / ACCOUNT_SHARE)),
    POSTWARDEN_MAX_CONNECTIONS_PER_HOST: String(1_000),
  };
  const idle = await run(stage, settings, { name: "idle", pending: 0, connections: 0 });
  const few = await run(stage, settings, { name: "few", pending: PENDING, connections: SILENT_HOSTS });
  const all = await run(stage, { ...settings, ...ceilings }, { name: "all", pending: PENDING, connections: PENDING });
  return [...marksOf(idle, few, 250), ...marksOf(idle, all, 250)];
};
