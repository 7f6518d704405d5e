import { join } from "node:path";
import { CUSTOM_RATE_MAX } from "../../src/accounts/billing/store.ts";
import { AccountsSlice } from "../../src/accounts/open.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { cpuSecondsOf } from "../harness/binary.ts";
import { type Mark, median } from "./marks.ts";
import { needTools } from "./servers.ts";
import { type Running, type Stage, keep, newDataDir, openData, startBinary } from "./stage.ts";

const CONNECTIONS = 64;
/** The rate limit is per key: so many keys with the highest rate take 80,000 requests a second together. */
const KEYS = 8;
const ROUNDS = 5;
const ROUND_S = 4;
/** Until the compiler of the runtime has seen the code: up to 9,000 requests it works beside each of them. */
const WARM_UP = 10_000;
const WARM_UP_TRIES_MAX = 10;
const LOAD = new URL("./http-load.lua", import.meta.url).pathname;
const BASELINE = new URL("./http-baseline.ts", import.meta.url).pathname;

interface Load {
  readonly answers: number;
  readonly seconds: number;
  readonly p99Ms: number;
  /** Answers with a status of 400 and above. */
  readonly refused: number;
  /** Failed connects, reads, writes, and timeouts. */
  readonly broken: number;
  /** Processor time of the server for each answer, in microseconds: what busy neighbours change least. */
  readonly cpuUs: number;
}

interface Side {
  readonly name: "product" | "bare";
  readonly running: Running;
  readonly rounds: Load[];
}

const prepareKeys = (dataDir: string): string[] => {
  const db = openData(dataDir);
  try {
    const { accounts, keys } = new AccountsSlice({ db, clock: systemClock });
    const rate = { ratePerSecond: CUSTOM_RATE_MAX, rateBurst: null };
    if (!accounts.create("bench", "scale").ok || !accounts.setPlan("bench", "scale", rate).ok)
      throw new Error("the account could not be made");
    return Array.from({ length: KEYS }, () => {
      const issued = keys.create({ account: "bench", mode: "test" });
      if (!issued.ok) throw new Error(`no key: ${issued.error}`);
      return issued.value.key;
    });
  } finally {
    // The bare server gets a copy of the file alone.
    db.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
  }
};

const startBaseline = async (stage: Stage, dataDir: string): Promise<Running> => {
  const child = Bun.spawn([process.execPath, "--no-env-file", BASELINE, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = keep(stage, child);
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  return { url: `http://127.0.0.1:${port}`, pid: child.pid, stop };
};

/** A side to load, and what the addresses of its requests begin with. */
interface Loaded extends Pick<Side, "running" | "name"> {
  readonly label: string;
}

const load = async ({ supervisor }: Stage, { running, name, label }: Loaded, keysPath: string): Promise<Load> => {
  const wrk = ["wrk", "-t1", `-c${CONNECTIONS}`, `-d${ROUND_S}s`, "--timeout", "5s", "-s", LOAD, running.url];
  const before = cpuSecondsOf(running.pid);
  const output = await supervisor.run([...wrk, "--", keysPath, `u${name}${label}n`]);
  const line = /^RESULT (.*)$/m.exec(output)?.[1];
  if (line === undefined) throw new Error(`wrk said nothing useful: ${output}`);
  const said = JSON.parse(line) as Omit<Load, "cpuUs">;
  return { ...said, cpuUs: ((cpuSecondsOf(running.pid) - before) * 1e6) / said.answers };
};

/** Every answer of the load is a row that is completed; a 202 would have left a pending one. */
const countRows = (dataDir: string): { completed: number; pending: number } => {
  const db = openData(dataDir);
  const count = (status: string) =>
    db.sqlite.query<{ n: number }, [string]>("SELECT count(*) AS n FROM verifications WHERE status = ?").get(status)?.n;
  const rows = { completed: count("completed") ?? 0, pending: count("pending") ?? 0 };
  db.close();
  return rows;
};

const answersOf = (loads: readonly Load[]): number => loads.reduce((sum, { answers }) => sum + answers, 0);
const perSecond = ({ rounds }: Side): number => median(rounds.map(({ answers, seconds }) => answers / seconds));
const p99 = ({ rounds }: Side): number => median(rounds.map(({ p99Ms }) => p99Ms));

const marksOf = (product: Side, bare: Side, wrong: number): Mark[] => {
  const group = "http";
  const rate = (side: Side, what: string, program: string): Mark => {
    const cpuUs = Math.round(median(side.rounds.map((round) => round.cpuUs)));
    const note = `${program}, synchronous=FULL with group commit; p99 ${p99(side).toFixed(1)} ms, ${cpuUs} µs of processor time each`;
    return { group, what, value: Math.round(perSecond(side)), unit: "/s", note };
  };
  const note = `medians of ${ROUNDS} rounds, ${CONNECTIONS} connections`;
  return [
    rate(product, "POST with a test key", "the binary"),
    rate(bare, "bare Bun.serve", "run by bun"),
    {
      group,
      what: "share of the bare server",
      value: perSecond(product) / perSecond(bare),
      unit: "",
      limit: { least: 0.62 },
      note,
    },
    {
      group,
      what: "p99, relative to the bare server",
      value: p99(product) / p99(bare),
      unit: "",
      limit: { most: 1.4 },
      note,
    },
    { group, what: "answers other than 200", value: wrong, unit: "", limit: { most: 0 } },
  ];
};

/** POST with a test key against a bare `Bun.serve` on the same tables, in turns. */
export const measureHttp = async (stage: Stage): Promise<Mark[]> => {
  await needTools(stage.supervisor, "wrk");
  const dirs = { product: await newDataDir(stage, "http-product"), base: await newDataDir(stage, "http-base") };
  const keysPath = join(stage.directory, "keys.txt");
  const started: Running[] = [];
  const begin = async (running: Promise<Running>): Promise<Running> => {
    started.push(await running);
    return running;
  };
  try {
    const keys = prepareKeys(dirs.product);
    await Bun.write(keysPath, keys.join("\n"));
    await Bun.write(join(dirs.base, "postwarden.db"), Bun.file(join(dirs.product, "postwarden.db")));
    const product: Side = { name: "product", running: await begin(startBinary(stage, dirs.product)), rounds: [] };
    const bare: Side = { name: "bare", running: await begin(startBaseline(stage, dirs.base)), rounds: [] };
    const sides = [product, bare];
    const warmUps: Load[] = [];
    for (let tries = 0; answersOf(warmUps) < WARM_UP && tries < WARM_UP_TRIES_MAX; tries++) {
      warmUps.push(await load(stage, { ...product, label: `warm${tries}` }, keysPath));
      await load(stage, { ...bare, label: `warm${tries}` }, keysPath);
    }
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of sides) side.rounds.push(await load(stage, { ...side, label: `round${round}` }, keysPath));
    }
    const all = [...product.rounds, ...warmUps];
    const answers = answersOf(all);
    const refused = all.reduce((sum, { refused: count, broken }) => sum + count + broken, 0);
    const { completed, pending } = countRows(dirs.product);
    const refusedByBare = bare.rounds.reduce((sum, { refused: count, broken }) => sum + count + broken, 0);
    return marksOf(product, bare, refusedByBare + refused + pending + Math.max(0, answers - refused - completed));
  } finally {
    for (const running of started) await running.stop();
  }
};
