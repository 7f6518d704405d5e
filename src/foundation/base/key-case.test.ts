import { expect, test } from "bun:test";
import { camelKeys, snakeKeys } from "./key-case.ts";

test("keys of a JSON value are in snake case, those of nested objects and of lists too", () => {
  const value = { orgName: "a B", skippedRows: [{ rowCount: 1, reason: null }], p: "none", policy: { spfDns: true } };
  expect(snakeKeys(value)).toEqual({
    org_name: "a B",
    skipped_rows: [{ row_count: 1, reason: null }],
    p: "none",
    policy: { spf_dns: true },
  });
  expect([snakeKeys(null), snakeKeys("aB"), snakeKeys([1])]).toEqual([null, "aB", [1]]);
});

test("keys of an object are in camel case, those of nested objects are left alone", () => {
  expect(camelKeys({ webhook_url: null, alerts: { new_source: true } })).toEqual({
    webhookUrl: null,
    alerts: { new_source: true },
  });
});
