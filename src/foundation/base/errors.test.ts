import { expect, test } from "bun:test";
import { isDatabaseState } from "./errors.ts";

const failure = (code: unknown): Error => Object.assign(new Error("x"), { code });

test.each([
  "SQLITE_FULL",
  "SQLITE_IOERR_WRITE",
  "SQLITE_BUSY_SNAPSHOT",
  "SQLITE_CANTOPEN",
  "SQLITE_READONLY_DBMOVED",
  "SQLITE_NOMEM",
])("%s may pass: the same write is repeated later", (code) => {
  expect(isDatabaseState(failure(code))).toBe(true);
});

test.each([
  "SQLITE_CORRUPT",
  "SQLITE_NOTADB",
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_ERROR",
  "SQLITE_TOOBIG",
  "ENOSPC",
  7,
  undefined,
])("%p does not pass by waiting", (code) => {
  expect(isDatabaseState(failure(code))).toBe(false);
  expect(isDatabaseState({ code: "SQLITE_FULL" })).toBe(false);
});
