import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { FUZZ_TARGETS } from "./fuzz-targets.ts";

const folder = new URL("../../fixtures/fuzz/", import.meta.url).pathname;

describe("every input that once broke a parser, and every seed of the fuzzer, holds", () => {
  for (const { name, seeds, check } of FUZZ_TARGETS) {
    test(name, async () => {
      const found = [...new Glob(`${name}/*.bin`).scanSync(folder)];
      const inputs = await Promise.all(found.map((path) => Bun.file(folder + path).bytes()));
      for (const input of [...seeds, ...inputs]) {
        const checking = Promise.try(() => check(input));
        await expect(checking).resolves.toBeUndefined();
      }
    });
  }
});
