import { expect, test } from "bun:test";
import { nearestName } from "./nearest.ts";

const NAMES = ["PORT", "HOST", "TLS_KEY", "TLS_CERT", "DATA_DIR"];

test.each([
  ["PROT", "PORT"],
  ["POTR", "PORT"],
  ["DATADIR", "DATA_DIR"],
  ["TLS_KEYS", "TLS_KEY"],
  ["METRICS_TOKEN", null],
  ["X", null],
  ["", null],
  ["x".repeat(100_000), null],
])("%p means %p", (word, name) => {
  expect(nearestName(word, NAMES)).toBe(name);
});
