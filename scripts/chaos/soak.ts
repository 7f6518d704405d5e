/**
 * `npm run chaos -- --only soak --minutes 30`: clients use all features at a modest rate, while memory, descriptors, the write-ahead log and the
 * response time of `/healthz` are sampled. Flat means: the median of the last third is at most a tenth above that of the
 * second third. Afterwards everything that was acknowledged is checked as by `npm run chaos`. Needs `npm run build`.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Claim, type Findings, printFindings } from "./claims.ts";
import { descriptorsOf, residentMbOf } from "../harness/binary.ts";
import { type ChaosRun, withChaosRun } from "./run.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "30" } } });
const minutes = Number(values.minutes);
if (!(minutes >= 1 && minutes <= 24 * 60)) throw new Error("--minutes takes a number from 1 to 1440");

const SAMPLE_EVERY_MS = 1_000;
const ROUND_EVERY_MS = 2_000;
const MAILS_PER_ROUND = 4;
const GROWTH_MAX = 0.1;
/** Differences below these are noise. */
const NOISE = { "memory (MB)": 10, descriptors: 10, "write-ahead log (MB)": 8, "/healthz (ms)": 20 };

type Figure = keyof typeof NOISE;
type Sample = Readonly<Record<Figure, number>>;

const healthzMs = async (url: string): Promise<number> => {
  const startedMs = performance.now();
  await (await fetch(`${url}/healthz`)).text();
  return performance.now() - startedMs;
};

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

const takeSample = async (run: ChaosRun, url: string, pid: number): Promise<Sample> => ({
  "memory (MB)": residentMbOf(pid),
  descriptors: descriptorsOf(pid),
  "write-ahead log (MB)": (statSync(join(run.folder, "postwarden.db-wal"), { throwIfNoEntry: false })?.size ?? 0) / 1e6,
  "/healthz (ms)": await healthzMs(url),
});

/** Compares the last third with the second; the first is the warm-up. */
const verdictOf = (samples: readonly Sample[], figure: Figure): Claim => {
  const third = Math.floor(samples.length / 3);
  const part = (n: number) => samples.slice(n * third, (n + 1) * third).map((sample) => sample[figure]);
  const [second, last] = [median(part(1)), median(part(2))];
  const isFlat = last - second <= Math.max(second * GROWTH_MAX, NOISE[figure]);
  console.error(
    `${figure}: median ${second.toFixed(1)}, then ${last.toFixed(1)}; most ${Math.max(...samples.map((one) => one[figure])).toFixed(1)}`,
  );
  return [`${figure} grows from ${second.toFixed(1)} to ${last.toFixed(1)}`, isFlat ? 0 : 1];
};

const soak = (rounds: number): Promise<Findings> =>
  withChaosRun({ mails: rounds * MAILS_PER_ROUND }, async (run) => {
    const server = await run.start();
    const { pid } = server.process;
    const samples: Sample[] = [];
    const over = new AbortController();
    const sampling = (async () => {
      for (; !over.signal.aborted; await Bun.sleep(SAMPLE_EVERY_MS))
        samples.push(await takeSample(run, server.url, pid));
    })();
    const endsAtMs = performance.now() + minutes * 60_000;
    let done = 0;
    for (; performance.now() < endsAtMs; done++) {
      const nextMs = performance.now() + ROUND_EVERY_MS;
      const sending = run.stream.send(MAILS_PER_ROUND);
      await run.load.round(server.url);
      await sending.done;
      await Bun.sleep(Math.max(0, nextMs - performance.now()));
      if (done % 150 === 0) console.error(`${done} rounds, ${JSON.stringify(samples.at(-1))}`);
    }
    over.abort();
    await sampling;
    const figures = (Object.keys(NOISE) as Figure[]).map((figure) => verdictOf(samples, figure));
    const left = await run.finish(server);
    return run.findings(`${minutes} minutes, ${samples.length} samples`, [...figures, ...left]);
  });

const failed = printFindings("soak", await soak(Math.ceil((minutes * 60_000) / ROUND_EVERY_MS)));
process.exit(failed === 0 ? 0 : 1);
