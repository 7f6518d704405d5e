import { z } from "zod";
import embedded from "../../../fixtures/blocklists.json" with { type: "json" };
import type { Result } from "../../foundation/base/errors.ts";
import { err, ok } from "../../foundation/base/errors.ts";
import type { Blocklist, Catalogue, TargetKind, TestPoints } from "./blocklist.ts";
import { TARGET_KINDS } from "./blocklist.ts";
import { catalogueProblems } from "./catalogue-problems.ts";
import type { CatalogueEntry } from "./catalogue-schema.ts";
import { catalogueSchema } from "./catalogue-schema.ts";

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
export const readEmbeddedCatalogue = (): Catalogue => {
  const parsed = parseCatalogue(embedded);
  if (!parsed.ok) throw new Error(`The embedded blocklist catalogue is invalid. ${parsed.error.join(" ")}`);
  return parsed.value;
};

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

const withoutPeriod = (message: string): string => message.replace(/\.$/, "");

const entryName = z.object({ id: z.string().optional(), name: z.string().optional() });

/** The id or name of an entry; without one, its position counted from 1. */
const nameOf = (json: unknown, section: PropertyKey, index: PropertyKey): string => {
  const entries = z.record(z.string(), z.unknown()).safeParse(json).data?.[String(section)];
  const entry = entryName.safeParse(Array.isArray(entries) ? entries[Number(index)] : undefined).data;
  const name = entry?.id ?? entry?.name;
  return name === undefined ? `number ${Number(index) + 1}` : `"${name.slice(0, 64)}"`;
};
