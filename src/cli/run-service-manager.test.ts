import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../foundation/base/log.ts";
import { createTestClock } from "../testing/clock.ts";
import { notifyReady } from "./run-service.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-notify-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const notify = async (environment: Record<string, string>, script?: string) => {
  const program = join(folder, "systemd-notify");
  rmSync(program, { force: true });
  if (script !== undefined) {
    writeFileSync(program, `#!/bin/sh\n${script}\n`);
    chmodSync(program, 0o755);
  }
  const lines: string[] = [];
  await notifyReady(
    { PATH: `${folder}`, SECRET: "x", ...environment },
    createLog("info", createTestClock(), (line) => void lines.push(line)),
  );
  return lines;
};

const SOCKET = { NOTIFY_SOCKET: "/run/systemd/notify" };

test("a unit of Type=notify hears that the service is ready, and gets no other variable", async () => {
  const seen = join(folder, "seen");
  expect(await notify(SOCKET, `echo "$@ $NOTIFY_SOCKET $SECRET" > ${seen}`)).toEqual([]);
  expect(readFileSync(seen, "utf8")).toBe("--ready /run/systemd/notify \n");
});

test("without systemd nothing is started", async () => {
  const seen = join(folder, "none");
  expect(await notify({}, `echo > ${seen}`)).toEqual([]);
  expect(() => readFileSync(seen)).toThrow("ENOENT");
});

test.each([
  ["fails", "echo no socket >&2; exit 3", "no socket"],
  ["is missing", undefined, "systemd-notify"],
])("a program that %s is logged", async (_, script, words) => {
  const [line, ...more] = await notify(SOCKET, script);
  expect(more).toEqual([]);
  expect(JSON.parse(line ?? "")).toMatchObject({ level: "warn" });
  expect(line).toContain(words);
});
