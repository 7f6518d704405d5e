/**
 * Runs expressions over hostile texts, in a process of its own: one that never ends cannot be stopped otherwise. Reads a JSON
 * array of expressions; writes a line `begin N` before each, and `slow N REASON` when one takes more CPU time for a text than the
 * argument says, in milliseconds.
 */
import type { SourceExpression } from "./source-expressions.ts";
import { cached } from "../foundation/base/bounded-map.ts";
import { hostileRuns } from "./hostile-runs.ts";

/** A text grows by these lengths as long as its time may come near the limit at the full length, if it grows with the square. */
const LENGTHS = [2_000, 8_000, 32_000];
const CHARACTERS_MAX = 100_000;
const CPU_MS_MAX = Number(process.argv[2]);
const NEAR = 0.75;

const apply = (expression: RegExp, use: SourceExpression["use"], text: string): void => {
  expression.lastIndex = 0;
  if (use === "replace") text.replace(expression, "");
  else if (use === "split") text.split(expression);
  else expression.exec(text);
};

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** Whether a text of this kind takes too long. CPU time decides: other processes may take time meanwhile. */
const isSlow = (limit: number, run: (characters: number) => void): boolean => {
  for (const length of [...LENGTHS.filter((one) => one < limit), limit]) {
    const [from, cpuFrom] = [performance.now(), cpuMs()];
    run(length);
    if (performance.now() - from < NEAR * CPU_MS_MAX * (length / limit) ** 2) return false;
    if (cpuMs() - cpuFrom > CPU_MS_MAX) return true;
  }
  return false;
};

const findSlow = ({ pattern, flags, use, charactersMax }: SourceExpression): string | null => {
  const expression = new RegExp(pattern, flags);
  const limit = Math.min(charactersMax ?? CHARACTERS_MAX, CHARACTERS_MAX);
  const { units, prefixes, suffixes } = hostileRuns(pattern, flags);
  for (const unit of units) {
    const runs = cached(LENGTHS.length + 1, (length: string) => unit.repeat(Math.ceil(Number(length) / unit.length)));
    for (const prefix of prefixes) {
      for (const suffix of suffixes) {
        if (isSlow(limit, (length) => apply(expression, use, prefix + runs(String(length)) + suffix)))
          return JSON.stringify([prefix, unit, suffix]);
      }
    }
  }
  return null;
};

const input: SourceExpression[] = JSON.parse(await Bun.stdin.text());
for (const [at, expression] of input.entries()) {
  console.log(`begin ${at}`);
  const slow = findSlow(expression);
  if (slow !== null) console.log(`slow ${at} ${slow}`);
}
console.log("end");
