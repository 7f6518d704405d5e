import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createCommandLine } from "../testing/command-line.ts";

const { run } = createCommandLine();
const folder = mkdtempSync(join(tmpdir(), "postwarden-targets-"));
afterAll(() => rmSync(folder, { recursive: true }));
const OF = ["--account", "anna", "--mode", "test"];
const targets = (...args: string[]) => run(["blocklist", "targets", ...args, ...OF]);
const targetsJson = async (...args: string[]) => (await targets(...args, "--json")).json;

beforeAll(async () => {
  await run(["accounts", "create", "anna"]);
});

describe("blocklist targets", () => {
  test("are added, and imported from CSV with what was wrong in it", async () => {
    const added = await targets("add", "listed.example", "1.2.3.0/29", "--label", "ours");
    expect(added).toMatchObject({ status: 0, out: "2 added, 0 already monitored, 0 invalid." });
    const file = join(folder, "targets.csv");
    writeFileSync(file, "target,label\nclean.example,web\n10.0.0.1,\nlisted.example,\n");
    const imported = await targets("import", file);
    expect(imported.status).toBe(1);
    expect(imported.out).toMatch(/^1 added, 1 already monitored, 1 invalid\.\n {2}row 2, 10\.0\.0\.1: .*public/);
    const piped = await run(["blocklist", "targets", "import", "-", ...OF], { stdin: ["8.8.8.8"] });
    expect(piped).toMatchObject({ status: 0, out: "1 added, 0 already monitored, 0 invalid." });
    expect((await targets("import", join(folder, "none.csv"))).status).toBe(1);
    expect((await targets("import", file, "--alert-severity-min", "bad")).status).toBe(2);
  });

  test("are checked, also as a range, and fail a script by severity with status 3", async () => {
    const checked = await targets("check", "listed.example", "clean.example");
    expect(checked.status).toBe(0);
    expect(checked.out).toMatch(
      /^SEVERITY +TARGET +STATUS +LISTED ON +SINCE +LABEL\nhigh +listed\.example +listed +test-list +\d{4}-/,
    );
    const range = await targets("check", "1.2.3.0-1.2.3.7", "--fail-on", "medium");
    expect(range).toMatchObject({ status: 3, err: expect.stringContaining("1.2.3.0/29") });
    expect((await targets("check", "listed.example", "--fail-on", "critical")).status).toBe(0);
    expect((await targets("check", "clean.example", "--fail-on", "info")).status).toBe(0);
    expect((await targets("check", "other.example")).status).toBe(1);
  });

  test("are shown in 80 columns, the worst first, and filtered", async () => {
    const { out } = await targets("list");
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(
      out
        .split("\n")
        .slice(1, 3)
        .every((line) => line.startsWith("high")),
    ).toBe(true);
    expect(await targetsJson("list", "--severity", "high", "--limit", "1")).toMatchObject({
      targets: [{ severity: "high", listings: [{ id: "test-list" }] }],
    });
    expect(await targetsJson("list", "--label", "web")).toMatchObject({ targets: [{ value: "clean.example" }] });
    expect(await targetsJson("list", "--status", "listed")).toMatchObject({ targets: [{}, {}] });
    expect((await targets("list", "--limit", "0")).status).toBe(2);
    const live = await run(["blocklist", "targets", "list", "--account", "anna"]);
    expect(live).toMatchObject({ status: 0, out: "No targets." });
    expect((await run(["blocklist", "targets", "list", "--account", "nobody"])).status).toBe(1);
  });

  test("are removed, a range with all its addresses", async () => {
    expect(await targetsJson("remove", "listed.example", "1.2.3.0/29")).toEqual({
      removed: ["listed.example", "1.2.3.0/29"],
    });
    expect((await targets("remove", "listed.example")).status).toBe(1);
    expect(await targetsJson("list", "--status", "listed")).toEqual({ targets: [] });
  });
});
