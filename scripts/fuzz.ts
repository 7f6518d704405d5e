/**
 * `npm run tool -- fuzz --minutes N [--executions N] [--only NAME]`: throws mutated inputs at every parser, each for the same time, until
 * the time or the number of executions is reached. An input that breaks what must hold, or takes longer than its limit, is
 * written to `fixtures/fuzz/NAME/`, where the tests replay it for ever. `--only properties` runs the property tests instead, each time
 * with values that no run had before; a failure prints the seed that repeats it.
 */
import { createHash, randomInt } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import type { FuzzTarget } from "../src/testing/fuzz-target.ts";
import { FUZZ_TARGETS } from "../src/testing/fuzz-targets.ts";
import { readOptions } from "./harness/options.ts";

const { values } = readOptions(import.meta.path, {
  options: {
    minutes: { type: "string", default: "1" },
    executions: { type: "string", default: "Infinity" },
    only: { type: "string" },
  },
});
const minutes = Number(values.minutes);
const executionsMax = Number(values.executions);
if (!(executionsMax > 0)) throw new Error("--executions takes a number from 1");
if (!(minutes > 0 && minutes <= 600)) throw new Error("--minutes takes a number from 0 to 600");

if (values.only === "properties") process.exit(fuzzProperties(Date.now() + minutes * 60_000));

const INPUT_BYTES_MAX = 8_192;
const SLOW_MS = 100;
/** How long one parser is fuzzed before it is the turn of the next. */
const TURN_MS = 200;
const INTERESTING = [0, 9, 10, 13, 32, 34, 40, 46, 60, 62, 64, 91, 92, 93, 127, 128, 192, 255];

const pick = <T>(items: readonly T[]): T => items[randomInt(items.length)] as T;

const mutate = (seed: Uint8Array, other: Uint8Array): Uint8Array => {
  let bytes: number[] = [...seed];
  for (let change = randomInt(1, 6); change > 0; change--) {
    const at = randomInt(bytes.length + 1);
    switch (randomInt(7)) {
      case 0:
        bytes[Math.min(at, Math.max(0, bytes.length - 1))] = randomInt(256);
        break;
      case 1:
        bytes.splice(at, 0, pick(INTERESTING));
        break;
      case 2:
        bytes.splice(at, randomInt(1, 8));
        break;
      case 3:
        bytes.splice(at, 0, ...other.subarray(randomInt(other.length + 1)));
        break;
      case 4:
        bytes.splice(at, 0, ...bytes.slice(at, at + randomInt(1, 64)));
        break;
      case 5:
        bytes = [...bytes, ...bytes];
        break;
      default:
        bytes.splice(at, 0, ...Buffer.from(String.fromCodePoint(randomInt(0x20, 0xd7ff))));
    }
  }
  return Uint8Array.from(bytes.slice(0, INPUT_BYTES_MAX));
};

/** The processor time of a check in milliseconds: on a busy machine it takes longer, and nothing is wrong. */
const timeOf = async ({ check }: FuzzTarget, input: Uint8Array): Promise<number> => {
  const before = process.cpuUsage();
  await check(input);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
};

const keep = async ({ name }: FuzzTarget, input: Uint8Array): Promise<string> => {
  const folder = new URL(`../fixtures/fuzz/${name}/`, import.meta.url).pathname;
  mkdirSync(folder, { recursive: true });
  const path = `${folder}${createHash("sha256").update(input).digest("hex").slice(0, 16)}.bin`;
  await Bun.write(path, input);
  return path;
};

function fuzzProperties(endsAtMs: number): number {
  const root = new URL("../src", import.meta.url).pathname;
  const files = [...new Bun.Glob("**/*.test.ts").scanSync({ cwd: root, absolute: true })].filter((file) =>
    readFileSync(file, "utf8").includes(' from "fast-check"'),
  );
  let rounds = 0;
  for (; Date.now() < endsAtMs && rounds < executionsMax; rounds++) {
    const seed = randomInt(2 ** 31);
    const command = [
      process.execPath,
      "--no-env-file",
      "test",
      "--only-failures",
      "--timeout",
      "300000",
      ...files.toSorted(),
    ];
    const { exitCode } = Bun.spawnSync(command, {
      env: { ...process.env, SEED: `${seed}` },
      stdout: "inherit",
      stderr: "inherit",
    });
    if (exitCode === 0) continue;
    console.log(`A property does not hold: SEED=${seed} npm test repeats it.`);
    return 1;
  }
  console.log(`${rounds} rounds of ${files.length} files, no failure`);
  return 0;
}

const targets = FUZZ_TARGETS.filter(({ name }) => values.only === undefined || name === values.only);
if (targets.length === 0) throw new Error(`--only takes one of ${FUZZ_TARGETS.map(({ name }) => name).join(", ")}`);

let findings = 0;
const endsAtMs = Date.now() + minutes * 60_000;
const runs = new Map<string, number>();
const corpus = new Map(targets.map((target) => [target.name, [...target.seeds]]));

const fuzzOnce = async (target: FuzzTarget, inputs: Uint8Array[]): Promise<void> => {
  const input = mutate(pick(inputs), pick(inputs));
  try {
    // Slow but once: memory was collected, or code compiled.
    const tookMs = (await timeOf(target, input)) > SLOW_MS ? await timeOf(target, input) : 0;
    if (tookMs > SLOW_MS) throw new Error(`took ${Math.round(tookMs)} ms`);
    // A mutation now and then becomes a seed itself, so that changes add up.
    if (randomInt(200) === 0 && inputs.length < 5_000) inputs.push(input);
  } catch (error) {
    findings++;
    const message = error instanceof Error ? error.message : String(error);
    console.log(`${target.name}: ${message}\n  kept in ${await keep(target, input)}`);
  }
};

const total = (): number => runs.values().reduce((sum, count) => sum + count, 0);
const isOver = (): boolean => Date.now() >= endsAtMs || findings >= 20 || total() >= executionsMax;

while (!isOver()) {
  for (const target of targets) {
    const turnEndsMs = performance.now() + TURN_MS;
    let count = runs.get(target.name) ?? 0;
    for (; performance.now() < turnEndsMs; count++) await fuzzOnce(target, corpus.get(target.name) ?? []);
    runs.set(target.name, count);
  }
}

for (const [name, count] of runs) console.log(`${name}: ${count.toLocaleString("en")} inputs`);
console.log(`${total().toLocaleString("en")} executions, ${findings} findings`);
process.exit(findings === 0 ? 0 : 1);
