import { expect, test } from "bun:test";
import { err } from "../../foundation/base/errors.ts";
import { createZoneResolver } from "../../testing/dns-zone.ts";
import type { Blocklist } from "./blocklist.ts";
import { noPacing, ListClient } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";

const [SOME_LIST] = readEmbeddedCatalogue().lists;
if (SOME_LIST === undefined) throw new Error("an empty catalogue");
const LIST: Blocklist = { ...SOME_LIST, id: "one", name: "One", zone: "bl.example" };
const PREFIX = "2.0.0.127";

test("a list that requires a key is not queried without it", async () => {
  const resolver = createZoneResolver({});
  const client = new ListClient(resolver, noPacing);
  const keyless: Blocklist = { ...LIST, zone: null };
  expect(await client.query(keyless, PREFIX)).toMatchObject({
    queryName: PREFIX,
    returnCodes: [],
    decoded: { outcome: "failed", reason: "One requires a key." },
  });
  expect(await client.queryPresence(keyless, PREFIX, "TXT")).toMatchObject({ kind: "unknown" });
  expect(await client.queryText(keyless, PREFIX)).toBeNull();
  expect(resolver.queries).toEqual([]);
});

test("a list whose budget is exhausted is not queried, and says why", async () => {
  const resolver = createZoneResolver({});
  const problem = "The daily budget of 2 queries to One is exhausted.";
  const client = new ListClient(resolver, {
    acquire: async () => err({ kind: "budget_spent", problem, retryAfterMs: 1 }),
  });
  expect((await client.query(LIST, PREFIX)).decoded).toMatchObject({ outcome: "failed", reason: problem });
  expect(await client.queryPresence(LIST, PREFIX, "TXT")).toMatchObject({ kind: "unknown" });
  expect(await client.queryText(LIST, PREFIX)).toBeNull();
  expect(resolver.queries).toEqual([]);
});
