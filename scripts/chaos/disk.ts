/**
 * The disk becomes full, and later refuses every write, while clients use all features. The service must stay up, say so in
 * `/readyz`, refuse with 503 or 452 what it cannot store, and go on by itself when the disk takes writes again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Server, eventually } from "../harness/binary.ts";
import type { Claim, Findings } from "./claims.ts";
import { type ChaosRun, withChaosRun } from "./run.ts";
import { SmallDisk } from "./small-disk.ts";

const DISK_MEBIBYTES = 96;
const MAILS = 400;
const MAILS_PER_ROUND = 40;
const HARMED_MS = 10_000;
const HEALED_MS_MAX = 10_000;
const ROUNDS_BETWEEN = 4;
/** Lines of the log a second, at most, while nothing can be written. */
const LOG_LINES_PER_S_MAX = 50;

interface Harm {
  readonly name: string;
  readonly begin: () => void;
  readonly end: () => void;
}

const statusOf = (url: string): Promise<number> =>
  fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
    ({ status }) => status,
    () => 0,
  );

/** Clients work without a pause until `stop` is called. */
const keepWorking = (run: ChaosRun, url: string) => {
  let isOver = false;
  const work = async (): Promise<void> => {
    while (!isOver) {
      const sending = run.stream.send(MAILS_PER_ROUND);
      await run.load.round(url);
      sending.stop();
      await sending.done;
    }
  };
  const done = work();
  return {
    stop: () => {
      isOver = true;
      return done;
    },
  };
};

/** The most frequent messages of the log. */
const frequentOf = (server: Server): string => {
  const messages = [...server.log().matchAll(/"level":"(?:warn|error)","message":"([^"]+)"/g)].map(
    ([, message = ""]) => message,
  );
  const counted = [...Map.groupBy(messages, (message) => message)].map(([message, { length }]) => ({
    message,
    length,
  }));
  const most = counted.toSorted((a, b) => b.length - a.length).slice(0, 3);
  return most.map(({ message, length }) => `${length} × "${message}"`).join(", ");
};

const linesOf = (server: Server): number => server.log().split("\n").length;

/** One harm under load, and how the service took it. */
const suffer = async (run: ChaosRun, server: Server, { name, begin, end }: Harm): Promise<readonly Claim[]> => {
  const clients = keepWorking(run, server.url);
  await Bun.sleep(ROUNDS_BETWEEN * 1_000);
  const linesBefore = linesOf(server);
  begin();
  const readyz = new Set<number>();
  let unhealthy = 0;
  let reason = "";
  const startedMs = performance.now();
  const isNoticed = await eventually(async () => (await statusOf(`${server.url}/readyz`)) === 503, HEALED_MS_MAX);
  const before = run.load.checks.length;
  while (performance.now() - startedMs < HARMED_MS) {
    if ((await statusOf(`${server.url}/healthz`)) !== 200) unhealthy++;
    const response = await fetch(`${server.url}/readyz`);
    readyz.add(response.status);
    reason = await response.text();
    await Bun.sleep(200);
  }
  const acknowledged = run.load.checks.length - before;
  const lines = linesOf(server) - linesBefore;
  end();
  const isHealed = await eventually(async () => (await statusOf(`${server.url}/readyz`)) === 200, HEALED_MS_MAX);
  const afterwards = run.load.checks.length;
  const works = await eventually(() => run.load.checks.length > afterwards, HEALED_MS_MAX);
  await clients.stop();
  console.error(
    `${name}: /readyz ${[...readyz].join()} ${reason}; ${acknowledged} checks meanwhile, ${lines} log lines (${frequentOf(server)})`,
  );
  return [
    [`${name}: /readyz did not become 503`, isNoticed ? 0 : 1],
    [`${name}: /readyz does not name the database`, reason.includes("database") ? 0 : 1],
    [`${name}: /healthz other than 200`, unhealthy],
    [
      `${name}: lines of the log beyond ${LOG_LINES_PER_S_MAX} a second`,
      Math.max(0, lines - (LOG_LINES_PER_S_MAX * HARMED_MS) / 1000),
    ],
    [`${name}: /readyz is not 200 within ${HEALED_MS_MAX / 1000} s afterwards`, isHealed ? 0 : 1],
    [`${name}: no check is accepted within ${HEALED_MS_MAX / 1000} s afterwards`, works ? 0 : 1],
    [`${name}: the process ended`, server.process.exitCode === null ? 0 : 1],
  ];
};

/** Makes the files of the database immutable: every write to them fails, open or not. Only on file systems that can. */
const immutable = (folder: string, flag: "+i" | "-i"): void => {
  const files = ["postwarden.db", "postwarden.db-wal"].map((name) => join(folder, name));
  const { exitCode, stderr } = Bun.spawnSync(["chattr", flag, ...files]);
  if (exitCode !== 0) throw new Error(`chattr ${flag}: ${stderr.toString()}`);
};

/** A full disk. */
export const runFullDisk = async (): Promise<Findings> => {
  const directory = mkdtempSync(join(tmpdir(), "postwarden-disk-"));
  const disk = new SmallDisk(join(directory, "disk"), DISK_MEBIBYTES);
  try {
    return await withChaosRun({ mails: MAILS, folder: join(disk.path, "data") }, async (run) => {
      const server = await run.start();
      const harm = { name: "disk full", begin: () => disk.fill(), end: () => disk.free() };
      const claims = await suffer(run, server, harm);
      return run.findings(`${HARMED_MS / 1000} s without space`, [...claims, ...(await run.finish(server))]);
    });
  } finally {
    disk.unmount();
    rmSync(directory, { recursive: true, force: true });
  }
};

/** A disk that refuses every write. */
export const runReadOnlyDisk = (): Promise<Findings> =>
  withChaosRun({ mails: MAILS }, async (run) => {
    const server = await run.start();
    const harm = {
      ...{ name: "read-only disk", begin: () => immutable(run.folder, "+i") },
      end: () => immutable(run.folder, "-i"),
    };
    try {
      const claims = await suffer(run, server, harm);
      return run.findings(`${HARMED_MS / 1000} s of refused writes`, [...claims, ...(await run.finish(server))]);
    } finally {
      immutable(run.folder, "-i");
    }
  });
