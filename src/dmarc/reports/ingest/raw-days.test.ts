import { expect, test } from "bun:test";
import { failureFinding, type IngestionFinding } from "./ingestion-finding.ts";
import { rawDaysOf } from "./retention.ts";

const UNASSIGNED = 60;

const retention = {
  unassigned: UNASSIGNED,
  byNumber: new Map([
    [1, 1],
    [2, 200],
  ]),
  byId: new Map([
    ["eager", 1],
    ["patient", 200],
  ]),
};
const about = (domain_id: string | null): IngestionFinding => ({ ...failureFinding("internal_error"), domain_id });

test.each<[string, number | null, (string | null)[], number]>([
  ["to an address, about its domain", 1, ["eager"], 1],
  ["to an address, about another domain", 1, ["patient"], 200],
  ["about two domains: the longer", null, ["eager", "patient"], 200],
  ["as a file, about a domain", null, ["eager"], 1],
  ["to an address, about nothing", 1, [null], 1],
  ["as a file, about nothing", null, [null], UNASSIGNED],
  ["as a file, about a domain and something else", null, ["eager", null], UNASSIGNED],
  ["about a domain that is gone", null, ["gone"], UNASSIGNED],
  ["about a domain that is gone and one that is there", null, ["gone", "eager"], 1],
  ["to an address that is gone, about a domain", 3, ["eager"], 1],
])("bytes that came %s", (_, domain, ids, days) => {
  expect(rawDaysOf({ domain, findings: ids.map(about) }, retention)).toBe(days);
});
