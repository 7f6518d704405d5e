import { describe, expect, test } from "bun:test";
import { expressionsIn, expressionsOfSource, type SourceExpression } from "./source-expressions.ts";

interface CpuLimits {
  /** What a linear expression never takes for one text, and a quadratic one does for 100,000 characters. */
  readonly textMs: number;
  /** The kernel ends a process that takes longer: an expression in it hangs. */
  readonly processS: number;
}

/** All expressions of the source together take a part of `processS`. */
const OF_SOURCE: CpuLimits = { textMs: 500, processS: 20 };
/** For a few expressions and texts of up to 20,000 characters. */
const OF_FEW: CpuLimits = { textMs: 50, processS: 1 };
const RUNNER = new URL("./hostile-runs-process.ts", import.meta.url).pathname;

const runFrom = async (
  expressions: readonly SourceExpression[],
  { textMs, processS }: CpuLimits,
): Promise<string[]> => {
  const child = Bun.spawn(
    ["sh", "-c", `ulimit -t ${processS}; exec "$0" "$@"`, process.execPath, "--no-env-file", RUNNER, String(textMs)],
    {
      stdin: Buffer.from(JSON.stringify(expressions)),
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  const lines = (await new Response(child.stdout).text()).trim().split("\n");
  await child.exited;
  return lines;
};

/** The places of expressions that take too long for some text, with the beginning, the repeated part and the end of that text. */
const slowOnes = async (expressions: readonly SourceExpression[], limits = OF_FEW): Promise<string[]> => {
  const slow: string[] = [];
  for (let left = expressions; left.length > 0;) {
    const lines = await runFrom(left, limits);
    const begun = lines.filter((line) => line.startsWith("begin ")).length;
    for (const line of lines) {
      const [, at = "", text = ""] = /^slow (\d+) (.*)$/.exec(line) ?? [];
      if (at !== "") slow.push(`${left[Number(at)]?.place} ${text}`);
    }
    if (lines.at(-1) === "end") break;
    if (begun === 0) throw new Error(`no expression was run: ${lines.join()}`);
    slow.push(`${left[begun - 1]?.place} does not end`);
    left = left.slice(begun);
  }
  return slow;
};

describe("the regular expressions of the source", () => {
  test("take linear time, or their line states the limit of their input", async () => {
    const { expressions, unlimited } = await expressionsOfSource();
    expect(expressions.length).toBeGreaterThan(400);
    expect(unlimited).toEqual([]);
    expect(await slowOnes(expressions, OF_SOURCE)).toEqual([]);
  });
});

describe("the check can fail", () => {
  const found = (text: string) => expressionsIn("a.ts", text);

  test("for an expression that takes quadratic or exponential time, however it is used", async () => {
    // Shorter texts and a lower limit than those of the source prove it sooner.
    const lines = [
      'const a = (t: string) => t.replace(/"[^"]*"|\\[[^\\]]*\\]/g, "");',
      "const b = (t: string) => /x+$/.test(t);",
      "const c = { expression: /^(?:[a-z]+)*$/ };",
      "const d = (t: string) => t.split(/,+;/);",
      "const e = /^x+$/;",
    ];
    const limited = lines.map((line, at) => (at === 0 ? line : `${line} // input ≤ 20,000 characters`));
    const slow = await slowOnes(found(limited.join("\n")).expressions);
    expect(slow.map((one) => one.split(" ")[0])).toEqual(["a.ts:1", "a.ts:2", "a.ts:3", "a.ts:4"]);
  });

  test("for a stated limit that is too high, and not for a low one", async () => {
    const at = (limit: string) => found(`// input ≤ ${limit} characters\nconst a = /x+$/;`).expressions;
    expect(at("1,000")).toMatchObject([{ charactersMax: 1_000 }]);
    expect(await slowOnes(at("1,000"))).toEqual([]);
    expect(await slowOnes(at("20,000"))).toHaveLength(1);
  });

  test("for an expression of texts without a stated limit", () => {
    expect(found("const a = new RegExp(word);\nconst b = RegExp(word);").unlimited).toEqual(["a.ts:1", "a.ts:2"]);
    expect(found("const a = new RegExp(word); // input ≤ 255 characters").unlimited).toEqual([]);
  });
});
