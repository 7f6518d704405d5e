import { expect, test } from "bun:test";
import { createCommandLine } from "../testing/command-line.ts";

const { run } = createCommandLine();

test("inspect record has the fixed shape, from arguments or from standard input", async () => {
  const texts = ["v=DMARC1; p=none; rua=mailto:a@example.com", "v=dmarc1; p=none", ""];
  const given = await run(["inspect", "record", ...texts]);
  const piped = await run(["inspect", "record", "--json"], { stdin: texts });
  expect(given).toMatchObject({ status: 0, err: "", out: piped.out });
  const read: unknown[] = given.out.split("\n").map((line) => JSON.parse(line));
  expect(read).toEqual([
    { input: texts[0], valid: true, tags: { v: "DMARC1", p: "none", rua: "mailto:a@example.com" }, warnings: [] },
    {
      input: texts[1],
      valid: false,
      tags: { v: "dmarc1", p: "none" },
      warnings: [{ code: "version_value", message: expect.any(String) }],
    },
    { input: "", valid: false, tags: {}, warnings: [{ code: "version_missing", message: expect.any(String) }] },
  ]);
});
