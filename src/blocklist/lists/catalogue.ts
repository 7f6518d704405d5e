import embedded from "../../../fixtures/blocklists.json" with { type: "json" };
import { z } from "zod";
import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { once } from "../../foundation/base/load-once.ts";
import {
  type Blocklist,
  type Catalogue,
  type TargetKind,
  type TestPoints,
  TARGET_KINDS,
  CATEGORIES,
  CONFIDENCES,
  DOMAIN_FORMS,
  ENTRY_SCOPES,
  type ExcludedLists,
  type CodeMatch,
  parseCodeMatch,
  formatCodeMatch,
  ipv4Number,
  matchesCode,
  codesOverlap,
} from "./blocklist.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import { literalName } from "./query-name.ts";

/** Enough to fix a file, and no page of sentences when the file is something else. */
const PROBLEMS_MAX = 50;

/**
 * Parses a catalogue. Fails with sentences that name the list and the field: errors of shape first, and only without
 * those the contradictions (duplicate ids, overlapping codes, excluded zones, missing test points …).
 */
export const parseCatalogue = (json: unknown): Result<Catalogue, readonly string[]> => {
  const parsed = catalogueSchema.safeParse(json);
  if (!parsed.success) {
    return err(parsed.error.issues.slice(0, PROBLEMS_MAX).map((issue) => describeIssue(issue, json)));
  }
  const { version, lists, excluded } = parsed.data;
  const catalogue: Catalogue = { version, lists: lists.map(toBlocklist), excluded };
  const problems = catalogueProblems(catalogue);
  return problems.length === 0 ? ok(catalogue) : err(problems.slice(0, PROBLEMS_MAX));
};

/** The catalogue included in the program, without keys. */
export const readEmbeddedCatalogue = once((): Catalogue => {
  const parsed = parseCatalogue(embedded);
  if (!parsed.ok) throw new Error(`The embedded blocklist catalogue is invalid. ${parsed.error.join(" ")}`);
  return parsed.value;
});

const toBlocklist = (entry: CatalogueEntry): Blocklist => ({
  id: entry.id,
  name: entry.name,
  operator: entry.operator,
  kinds: TARGET_KINDS.filter((kind) => entry.kinds.includes(kind)),
  scope: entry.scope,
  zone: entry.zone,
  keyedZone: entry.keyed_zone,
  key: null,
  domainForm: entry.domain_form,
  codes: entry.codes.map(({ match, ...code }) => ({ ...code, matches: match })),
  refusals: entry.refusals.map(({ match, ...refusal }) => ({ ...refusal, matches: match })),
  ignores: entry.ignores.map(({ match, ...ignored }) => ({ ...ignored, matches: match })),
  testPoints: toTestPoints(entry.test_points),
  defaultEnabled: entry.default_enabled,
  switchedOn: null,
  usage: entry.usage,
  budget: { queriesPerDay: entry.budget.queries_per_day, spacingMs: entry.budget.spacing_ms },
  delistUrl: entry.delist_url,
  lookupUrl: entry.lookup_url,
  confidence: entry.confidence,
  notes: entry.notes,
});

const toTestPoints = (points: CatalogueEntry["test_points"]): Partial<Record<TargetKind, TestPoints>> =>
  Object.fromEntries(TARGET_KINDS.flatMap((kind) => (points[kind] === undefined ? [] : [[kind, points[kind]]])));

const describeIssue = ({ path, message }: z.core.$ZodIssue, json: unknown): string => {
  const [section, index, ...field] = path;
  if (section === undefined) return `The catalogue: ${message}.`;
  if (index === undefined) return `The catalogue, ${String(section)}: ${withoutPeriod(message)}.`;
  const name = nameOf(json, section, index);
  const where = field.length > 0 ? `, ${field.map(String).join(".")}` : "";
  return `${section === "lists" ? "List" : "Excluded"} ${name}${where}: ${withoutPeriod(message)}.`;
};

const withoutPeriod = (message: string) => message.replace(/\.$/, "");

const entryName = z.object({ id: z.string().optional(), name: z.string().optional() });

/** The id or name of an entry; without one, its position counted from 1. */
const nameOf = (json: unknown, section: PropertyKey, index: PropertyKey) => {
  const entries = z.record(z.string(), z.unknown()).safeParse(json).data?.[String(section)];
  const entry = entryName.safeParse(Array.isArray(entries) ? entries[Number(index)] : undefined).data;
  const name = entry?.id ?? entry?.name;
  return name === undefined ? `number ${Number(index) + 1}` : `"${name.slice(0, 64)}"`;
};

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
const catalogueSchema = z.strictObject({
  version: text,
  lists: z.array(list).min(1).max(LISTS_MAX),
  excluded: z.array(excluded).max(EXCLUDED_MAX),
});

/** A list after parsing: defaults filled in, return codes parsed. */
type CatalogueEntry = z.infer<typeof list>;

/** Return codes that mean an error on every list, so no list may declare them. */
const ERROR_CODES: CodeMatch = { kind: "range", from: 0x7f_ff_ff_00, to: 0x7f_ff_ff_ff };
const LOCALHOST = 0x7f_00_00_01;

/** Errors and contradictions in a catalogue of valid shape, as sentences. */
const catalogueProblems = ({ lists, excluded }: Catalogue): readonly string[] => [
  ...duplicates(lists.map(({ id }) => id)).map((id) => `List "${id}" is in the catalogue twice.`),
  ...duplicates(lists.flatMap(({ zone }) => zone ?? [])).map((zone) => `The zone ${zone} belongs to two lists.`),
  ...duplicates(lists.flatMap(listingIds)).map((id) => `The listing id "${id}" is used by two lists.`),
  ...lists.flatMap((list) =>
    [...zoneProblems(list, excluded), ...codeProblems(list), ...testPointProblems(list)].map(
      (problem) => `List "${list.id}": ${problem}`,
    ),
  ),
];

const duplicates = (texts: readonly string[]) => [
  ...new Set(texts.filter((text, index) => texts.indexOf(text) !== index)),
];

const listingIds = ({ codes }: Blocklist) => [...new Set(codes.map(({ id }) => id))];

const zoneProblems = ({ zone, keyedZone, defaultEnabled }: Blocklist, excluded: readonly ExcludedLists[]) => {
  if (zone === null && keyedZone === null) return ["it has neither a zone nor a keyed_zone."];
  const problems = zone === null && defaultEnabled ? ["it needs a key, so it cannot be enabled by default."] : [];
  const bans = zone === null ? [] : excluded.filter(({ zones }) => zones.some((ban) => covers(ban, zone)));
  return [...problems, ...bans.map((ban) => `the zone ${zone} is excluded (${ban.name}): ${ban.reason}`)];
};

const covers = (ban: string, zone: string) => (ban.startsWith("*.") ? zone.endsWith(ban.slice(1)) : zone === ban);

interface Claim {
  readonly by: string;
  readonly match: CodeMatch;
}

const codeProblems = (list: Blocklist) => {
  const claim = (by: string, matches: readonly CodeMatch[]) => matches.map((match) => ({ by, match }));
  const claims = [
    ...list.codes.flatMap(({ id, matches }) => claim(`code ${id}`, matches)),
    ...list.ignores.flatMap(({ matches }) => claim("an ignored code", matches)),
  ];
  const refusals = list.refusals.flatMap(({ matches }) => claim("a refusal", matches));
  const all = [...claims, ...refusals];
  const twice = all.flatMap((a, index) =>
    all
      .slice(index + 1)
      .filter((b) => codesOverlap(a.match, b.match))
      .map((b) => `the codes ${formatCodeMatch(a.match)} (${a.by}) and ${formatCodeMatch(b.match)} (${b.by}) overlap.`),
  );
  return [...twice, ...claims.flatMap(reservedProblems)];
};

const reservedProblems = ({ by, match }: Claim) => {
  const what = `${formatCodeMatch(match)} (${by})`;
  if (codesOverlap(match, ERROR_CODES))
    return [`${what} overlaps 127.255.255.0/24, which means an error on every list.`];
  const isHiddenRefusal = match.kind === "range" && match.from !== match.to && matchesCode(match, LOCALHOST);
  return isHiddenRefusal
    ? [`${what} includes 127.0.0.1, which usually means a refusal: declare that code separately or leave it out.`]
    : [];
};

const testPointProblems = (list: Blocklist) => {
  const kinds = TARGET_KINDS.filter((kind) => list.testPoints[kind] !== undefined);
  const positives = kinds.flatMap((kind) => list.testPoints[kind]?.positive ?? []);
  const missing =
    list.defaultEnabled && positives.length === 0
      ? ['it is enabled by default without a positive test point, so its "not listed" could not be verified.']
      : [];
  const foreign = kinds
    .filter((kind) => !list.kinds.includes(kind))
    .map((kind) => `it has test points for ${kind}, which it does not list.`);
  const unreadable = kinds.flatMap((kind) =>
    [...(list.testPoints[kind]?.positive.map(({ value }) => value) ?? []), ...(list.testPoints[kind]?.negative ?? [])]
      .filter((value) => literalName({ kind, value }) === null)
      .map((value) => `the test point "${value}" is not a valid ${kind} value.`),
  );
  const undocumented = positives
    .flatMap(({ answers }) => answers)
    .filter((code) => !isDocumented(list, code))
    .map((code) => `a test point expects ${code}, which is not a code of the list.`);
  return [...missing, ...foreign, ...unreadable, ...undocumented];
};

const isDocumented = ({ codes, ignores }: Blocklist, code: string) => {
  const address = ipv4Number(code);
  return (
    address !== null &&
    [...codes, ...ignores].some(({ matches }) => matches.some((match) => matchesCode(match, address)))
  );
};
