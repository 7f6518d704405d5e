import { expect, test } from "bun:test";
import { checkOpenFiles, hardOpenFilesOf, readOpenFiles } from "./open-files-check.ts";

const limitsOf = (hard: string) => `Limit                     Soft Limit           Hard Limit           Units
Max processes             96222                96222                processes
Max open files            1024                 ${hard}              files
Max locked memory         8388608              8388608              bytes
`;

test.each([
  ["524288", 524_288],
  ["unlimited", Number.POSITIVE_INFINITY],
])("the hard limit %s is read", (hard, limit) => {
  expect(hardOpenFilesOf(limitsOf(hard))).toBe(limit);
});

test("a system without limits has none that is known", () => {
  expect(hardOpenFilesOf("")).toBeNull();
});

test.each([
  [2_000, "ok", "2000 files can be open here"],
  [1_999, "warn", "Set LimitNOFILE=2048 in the systemd unit"],
  [Number.POSITIVE_INFINITY, "ok", "Any number of files"],
  [null, "warn", "is not known"],
])("500 SMTP sessions with a limit of %p open files: %s", (limit, state, message) => {
  const found = checkOpenFiles({ connectionsMax: 500 }, limit);
  expect([found.check, found.state]).toEqual(["open_files", state as "ok"]);
  expect(found.message).toContain(message);
});

test.if(process.platform === "linux")("the limit of this process is known", () => {
  expect(readOpenFiles()).toBeGreaterThan(0);
});
