import { z } from "zod";
import { type CodeMatch, parseCodeMatch } from "./code-match.ts";
import { CATEGORIES, CONFIDENCES, DOMAIN_FORMS, ENTRY_SCOPES, TARGET_KINDS } from "./blocklist.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";

const TEXT_CHARACTERS_MAX = 500;
const LISTS_MAX = 500;
const EXCLUDED_MAX = 1000;
const ENTRIES_MAX = 64;
const ID = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const ZONE = /^(?=.{1,200}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}$/;

const text = z.string().trim().min(1).max(TEXT_CHARACTERS_MAX);
const id = z.string().max(64).regex(ID, "must be lower-case letters, digits and single hyphens");
const zone = z.string().regex(ZONE, "must be a name such as bl.example.org, lower case, without a final dot");
const keyedZone = z.string().refine((value) => value.startsWith("{key}.") && ZONE.test(value.slice("{key}.".length)), {
  error: "must be a name that begins with {key}, such as {key}.bl.example.org",
});
const excludedZone = z.string().refine((value) => ZONE.test(value.startsWith("*.") ? value.slice(2) : value), {
  error: "must be a name such as bl.example.org or *.example.org",
});
const page = z.url({ protocol: /^https?$/, error: "must be the address of a web page" });

const match = z.string().transform((value, context): CodeMatch => {
  const parsed = parseCodeMatch(value);
  if (parsed.ok) return parsed.value;
  context.addIssue({ code: "custom", message: parsed.error.problem });
  return z.NEVER;
});
const matches = z.array(match).min(1).max(ENTRIES_MAX);

const code = z.strictObject({
  match: matches,
  id,
  name: text,
  meaning: text,
  category: z.enum(CATEGORIES),
  severity: z.enum(SEVERITIES),
});

const refusal = z
  .strictObject({
    match: matches.default([]),
    outcomes: z.array(z.enum(["servfail", "refused", "timeout"])).default([]),
    reason: text,
    remedy: text,
  })
  .refine((value) => value.match.length + value.outcomes.length > 0, { error: "must have match or outcomes" });

const ignored = z.strictObject({ match: matches, meaning: text });

const positivePoint = z.strictObject({ value: text, answers: z.array(z.ipv4()).max(ENTRIES_MAX).default([]) });
const testPoints = z.strictObject({
  positive: z.array(positivePoint).max(ENTRIES_MAX),
  negative: z.array(text).max(ENTRIES_MAX),
});

const budget = z.strictObject({
  queries_per_day: z.int().positive().nullable(),
  spacing_ms: z.int().nonnegative().nullable(),
});

const usage = z.strictObject({
  terms: text,
  volume: text.nullable().default(null),
  cost: text.nullable().default(null),
  registration: text.nullable().default(null),
  url: page.nullable().default(null),
});

const list = z.strictObject({
  id,
  name: text,
  operator: text,
  kinds: z.array(z.enum(TARGET_KINDS)).min(1),
  scope: z.enum(ENTRY_SCOPES).default("single"),
  zone: zone.nullable(),
  keyed_zone: keyedZone.nullable().default(null),
  domain_form: z.enum(DOMAIN_FORMS).default("both"),
  codes: z.array(code).min(1).max(ENTRIES_MAX),
  refusals: z.array(refusal).max(ENTRIES_MAX).default([]),
  ignores: z.array(ignored).max(ENTRIES_MAX).default([]),
  test_points: z.strictObject({
    ipv4: testPoints.optional(),
    ipv6: testPoints.optional(),
    domain: testPoints.optional(),
  }),
  default_enabled: z.boolean(),
  usage: usage.nullable().default(null),
  budget: budget.default({ queries_per_day: null, spacing_ms: null }),
  delist_url: page.nullable(),
  lookup_url: page.nullable().default(null),
  confidence: z.enum(CONFIDENCES),
  notes: text.nullable().default(null),
});

const excluded = z.strictObject({ name: text, zones: z.array(excludedZone).min(1).max(ENTRIES_MAX), reason: text });

/** The catalogue file. Rules that concern several fields are checked by `catalogueProblems`. */
export const catalogueSchema = z.strictObject({
  version: text,
  lists: z.array(list).min(1).max(LISTS_MAX),
  excluded: z.array(excluded).max(EXCLUDED_MAX),
});

/** A list after parsing: defaults filled in, return codes parsed. */
export type CatalogueEntry = z.infer<typeof list>;
