import { join } from "node:path";
import { COMPILE_FLAGS } from "../compile-flags.ts";
import { anonymousMbOf, residentMbOf } from "../harness/binary.ts";
import { freePort } from "../harness/world.ts";
import { type Mark, median } from "./marks.ts";
import { type Running, type Stage, keep, newDataDir, startUnready, untilHealthy, untilReady } from "./stage.ts";

const STARTS = 7;
const IDLE_AFTER_MS = 5_000;
/** Of an empty directory, and of one that it knows as a multiple of an empty Elysia. */
const FRESH_MS_MAX = 60;
const TIMES_MAX = 3;
/** Anonymous: the pages of the executable are shared, and can be read again. */
const MEMORY_MB_MAX = 26;

/** The least that one can compare with: a compiled Elysia with one route and nothing else. */
const EMPTY_SOURCE = `import { Elysia } from "elysia";
new Elysia().get("/healthz", () => "ok").listen({ hostname: "127.0.0.1", port: Number(process.env.PORT) });
`;

/** Compiles the empty Elysia with the flags of the binary. */
const buildEmpty = async ({ directory }: Stage): Promise<string> => {
  const [source, outfile] = [join(directory, "empty.ts"), join(directory, "empty")];
  const root = join(import.meta.dir, "../..");
  await Bun.write(source, EMPTY_SOURCE);
  await Bun.$`ln -sfn ${join(root, "node_modules")} ${join(directory, "node_modules")}`.quiet();
  await Bun.$`${process.execPath} build ${COMPILE_FLAGS} ${source} --outfile=${outfile}`.cwd(directory).quiet();
  return outfile;
};

interface Started extends Running {
  readonly firstAnswerMs: number;
}

const startEmpty = async (stage: Stage, path: string): Promise<Started> => {
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { PORT: String(port) };
  const child = Bun.spawn([path], { cwd: stage.directory, env, stdio: ["ignore", "ignore", "inherit"] });
  return { url, pid: child.pid, stop: keep(stage, child), firstAnswerMs: await untilHealthy(url, child) };
};

interface Memory {
  readonly residentMb: number;
  readonly anonymousMb: number;
}

/** Waits until a process has settled, and ends it. */
const idleMemoryOf = async ({ pid, stop }: Running): Promise<Memory> => {
  await Bun.sleep(IDLE_AFTER_MS);
  const memory = { residentMb: residentMbOf(pid), anonymousMb: anonymousMbOf(pid) };
  await stop();
  return memory;
};

/** How long a request takes, until its response is read. */
const timed = async (url: string): Promise<number> => {
  const startedMs = performance.now();
  await (await fetch(url)).text();
  return performance.now() - startedMs;
};

/** The first requests of the API and the dashboard, which load them, and the memory afterwards. */
const measureLoads = async (stage: Stage) => {
  const { url, ...running } = await startUnready(stage, await newDataDir(stage, "loads"));
  // Long after the start.
  await Bun.sleep(IDLE_AFTER_MS);
  const apiMs = await timed(`${url}/v1/account`);
  const pageMs = await timed(`${url}/sign-in`);
  return { apiMs, pageMs, loaded: await idleMemoryOf({ url, ...running }) };
};

/** How soon the service behind the server responds, with the time to load the API: on a directory that it knows. */
const measureReady = async (stage: Stage): Promise<number> => {
  const times: number[] = [];
  const dataDir = await newDataDir(stage, "ready");
  for (let round = 0; round <= STARTS; round++) {
    const startedMs = performance.now();
    const service = await startUnready(stage, dataDir);
    await untilReady(service);
    times.push(performance.now() - startedMs);
    await service.stop();
  }
  return median(times.slice(1));
};

/** How soon the binary answers after its start, and how much memory it has when nobody asks anything, beside an empty Elysia. */
export const measureStart = async (stage: Stage): Promise<Mark[]> => {
  const emptyPath = await buildEmpty(stage);
  const times: Record<"empty" | "fresh" | "existing", number[]> = { empty: [], fresh: [], existing: [] };
  for (let round = 0; round < STARTS; round++) {
    const dataDir = await newDataDir(stage, `start-${round}`);
    for (const kind of ["empty", "fresh", "existing"] as const) {
      const service = await (kind === "empty" ? startEmpty(stage, emptyPath) : startUnready(stage, dataDir));
      times[kind].push(service.firstAnswerMs);
      await service.stop();
    }
  }
  const emptyMs = median(times.empty);
  const empty = await idleMemoryOf(await startEmpty(stage, emptyPath));
  const idle = await idleMemoryOf(await startUnready(stage, await newDataDir(stage, "idle")));
  const readyMs = await measureReady(stage);
  const { apiMs, pageMs, loaded } = await measureLoads(stage);

  const group = "start";
  const startNote = `median of ${STARTS}; an empty Elysia ${emptyMs.toFixed(0)} ms`;
  const first = (what: string, ms: number): Mark => ({ group, what, value: ms, unit: "ms", note: startNote });
  const memoryMarks = (what: string, { residentMb, anonymousMb }: Memory, limit: Pick<Mark, "limit">): Mark[] => [
    { group, what, value: residentMb, unit: "MB", note: "resident, after 5 s" },
    { group, what: `${what}, anonymous`, value: anonymousMb, unit: "MB", ...limit },
  ];
  const [freshMs, existingMs] = [median(times.fresh), median(times.existing)];
  return [
    { ...first("first response on an empty directory", freshMs), limit: { most: FRESH_MS_MAX } },
    first("first response on an existing one", existingMs),
    {
      ...{ group, what: "the same, times an empty Elysia", value: existingMs / emptyMs, unit: "" },
      limit: { most: TIMES_MAX },
    },
    {
      group,
      what: "first response of the API on an existing one",
      value: readyMs,
      unit: "ms",
      note: "it loads the API",
    },
    ...memoryMarks("memory when idle", idle, { limit: { most: MEMORY_MB_MAX } }),
    ...memoryMarks("memory of an empty Elysia", empty, {}),
    { group, what: "first request of the API", value: apiMs, unit: "ms", note: "it loads the API" },
    { group, what: "first page of the dashboard", value: pageMs, unit: "ms", note: "it loads the dashboard" },
    ...memoryMarks("memory when both are loaded", loaded, {}),
  ];
};
