import { z } from "zod";
import fixture from "../../fixtures/test-keys-blacklist.json" with { type: "json" };
import type { Blocklist } from "../dnsbl/blocklist.ts";
import type { ListOutcome } from "../dnsbl/lookup.ts";

const table = z
  .strictObject({
    list: z.string(),
    answer: z.string(),
    text: z.string(),
    listed: z.array(z.string()),
    unknown: z.array(z.string()),
  })
  .parse(fixture);

/** The one list that test keys know. Nobody can be asked about it. */
export const TEST_LIST: Blocklist = {
  id: table.list,
  name: "The test list",
  operator: "Test keys",
  kinds: ["ipv4", "ipv6", "domain"],
  scope: "single",
  zone: null,
  keyedZone: null,
  key: null,
  domainForm: "host",
  codes: [
    {
      matches: [],
      id: table.list,
      name: "The test list",
      meaning: "The target is one that test keys find listed.",
      category: "spam",
      severity: "high",
    },
  ],
  refusals: [],
  ignores: [],
  testPoints: {},
  defaultEnabled: false,
  switchedOn: null,
  usage: null,
  budget: { queriesPerDay: null, spacingMs: null },
  delistUrl: null,
  lookupUrl: null,
  confidence: "A",
  notes: null,
};

/** What the test list says about a target (contract §3): the same at every call, without any network. */
export const testOutcome = (value: string, atMs: number): ListOutcome => {
  const base = {
    list: table.list,
    queryNames: [],
    text: null,
    reason: null,
    remedy: null,
    checkedAtMs: atMs,
    retryAtMs: null,
  };
  if (table.unknown.includes(value)) {
    const reason = "The test list refuses to answer about this target.";
    return { ...base, outcome: "refused", listings: [], returnCodes: [], reason };
  }
  if (!table.listed.includes(value)) return { ...base, outcome: "not_listed", listings: [], returnCodes: [] };
  const listings = TEST_LIST.codes.map(({ id, name, meaning, category, severity }) => ({
    id,
    name,
    meanings: [meaning],
    category,
    severity,
    returnCodes: [table.answer],
  }));
  return { ...base, outcome: "listed", listings, returnCodes: [table.answer], text: table.text };
};
