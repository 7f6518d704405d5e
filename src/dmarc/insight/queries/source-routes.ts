import { wantsCsv } from "../../../foundation/http/row-format.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import { PAGE_BYTES_MAX } from "../../../foundation/base/walk.ts";
import { type Source, sourceSchema } from "../sources/source-response.ts";
import { type Classification, CLASSIFICATIONS } from "../sources/rollup-store.ts";
import { actionableFailures, DomainSources } from "../sources/domain-sources.ts";
import { SourceClassifier } from "../sources/source-classifier.ts";
import {
  rangeOf,
  exportFileName,
  type QueryContext,
  csvResponse,
  CSV_DESCRIPTION,
  csvAlternative,
  DOMAIN_PATH,
  domainParams,
  REPORTS_TAG,
  DOMAIN_REPORTS,
} from "./domain-query.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import { SOURCE_EXAMPLE } from "./query-examples.ts";
import { isSourceKey } from "../sources/source-identity.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { encodeCursor, idParameter, pageQuery } from "../../../foundation/http/route-input.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { sendJson } from "../../../foundation/http/response.ts";
import { nextCursorField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";

/** Which sources to list. Days are UTC days since 1970. */
export interface SourceListQuery {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly classification?: Classification | undefined;
  /** Lists each network of unauthenticated mail as a source of its own. */
  readonly byNetwork?: boolean;
  /** Part of a name, a key, a domain or an address, in any case. */
  readonly text?: string | undefined;
  /** Only sources with failing messages that somebody must act on. */
  readonly isFailing?: boolean;
}

interface FoundSources {
  readonly domain: DomainRow;
  readonly range: DayRange;
  /** Worst first. */
  readonly sources: readonly Source[];
}

/** Lists who sends in the names of the caller's domains. Throws `not_found` for a domain of another account. */
export class SourceReader {
  constructor(private readonly deps: Pick<QueryContext, "clock" | "rollups" | "findDomain">) {}

  async list(caller: Caller, id: string, query: SourceListQuery): Promise<FoundSources> {
    const { clock, rollups, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const { from, to, classification, byNetwork = false, text = "", isFailing = false } = query;
    const range = rangeOf({ from, to }, clock.nowMs());
    const all = await DomainSources.read(rollups, domain, (read) => read.sources(range, { byNetwork }));
    const sources = all.filter(
      (source) =>
        (classification === undefined || source.classification === classification) &&
        (!isFailing || actionableFailures(source) > 0) &&
        hasText(source, text.trim().toLowerCase()),
    );
    return { domain, range, sources };
  }

  /** The same as a CSV file. */
  csv(request: Request, { domain, range, sources }: FoundSources): Response {
    const name = exportFileName("sources", domain, range, "csv");
    return csvResponse(request, name, { columns: SOURCE_COLUMNS, batches: exportSources(sources) });
  }
}

const hasText = ({ name, key, service, dkim, spf, addresses }: Source, text: string) => {
  if (text === "") return true;
  const texts = [
    name,
    key,
    service ?? "",
    ...[...dkim, ...spf].map(({ domain }) => domain),
    ...addresses.flatMap(({ ip, reverse_name: reverse, as_name }) => [ip, reverse ?? "", as_name ?? ""]),
  ];
  return texts.some((one) => one.toLowerCase().includes(text));
};

const CURSOR = /^(\d{1,16})\.(\d{1,16})\.(\S+)$/;

export const isSourceCursor = (text: string): boolean => CURSOR.test(text);

/** Whether a source comes after a cursor, in the order of `byWorst`. */
const isAfter = (source: Source, [, failures, messages, key = ""]: readonly string[]) => {
  const moreFailures = actionableFailures(source) - Number(failures);
  if (moreFailures !== 0) return moreFailures < 0;
  const moreMessages = source.messages - Number(messages);
  return moreMessages === 0 ? source.key > key : moreMessages < 0;
};

/** A page of the sources, worst first. */
export const pageOfSources = (
  sources: readonly Source[],
  { after, limit }: { readonly after: string | null; readonly limit: number },
): { readonly page: readonly Source[]; readonly next: string | null } => {
  const cursor = after === null ? null : CURSOR.exec(after);
  const rest = cursor === null ? sources : sources.filter((source) => isAfter(source, cursor));
  const page = withinBytes(rest.slice(0, limit));
  const last = page.at(-1);
  const next =
    last === undefined || rest.length <= page.length
      ? null
      : `${actionableFailures(last)}.${last.messages}.${last.key}`;
  return { page, next };
};

/** As many of the first sources as fit in a page, but at least one. */
const withinBytes = (sources: readonly Source[]) => {
  let bytes = 0;
  const over = sources.findIndex((source) => {
    bytes += JSON.stringify(source).length;
    return bytes > PAGE_BYTES_MAX;
  });
  return over === -1 ? sources : sources.slice(0, Math.max(1, over));
};

/** The columns of the CSV export. Signatures, envelope domains and addresses are in one cell each, separated by `; `. */
const SOURCE_COLUMNS = sourceSchema.omit({ lookups_pending: true }).keyof().options;

const EXPORTED_AT_ONCE = 1_000;

const sourceCells = (source: Source) => {
  const addresses = source.addresses.map(({ ip, reverse_name, confirmed }) =>
    reverse_name !== null && confirmed ? `${ip} (${reverse_name})` : ip,
  );
  const flat: Record<(typeof SOURCE_COLUMNS)[number], Cell> = {
    ...source,
    dkim: source.dkim
      .map(({ domain, selector }) => (selector === null ? domain : `${selector}._domainkey.${domain}`))
      .join("; "),
    spf: source.spf.map(({ domain }) => domain).join("; "),
    addresses: addresses.join("; "),
  };
  return SOURCE_COLUMNS.map((column) => flat[column]);
};

/** All sources as rows of CSV, in batches. */
async function* exportSources(sources: readonly Source[]): AsyncGenerator<ReadonlyArray<readonly Cell[]>, void> {
  for (let at = 0; at < sources.length; at += EXPORTED_AT_ONCE) {
    yield sources.slice(at, at + EXPORTED_AT_ONCE).map(sourceCells);
  }
}

const PATH = `${DOMAIN_PATH}/sources`;
const KEYS_MAX = 500;
const CLASSIFIED = { ...SOURCE_EXAMPLE, classification: "authorized", classified_by: "user" };

const sources = z.array(sourceSchema).describe("The sources.");

export const sourcesSchema = z
  .object({
    sources,
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcSourceList" });

const LIST_SOURCES = declareRoute({
  ...DOMAIN_REPORTS,
  path: PATH,
  operationId: "listDmarcSources",
  summary: "List who sends in a domain's name",
  description: `Those with the most actionable failures come first. A source is the service or organization behind the sending addresses; \`dkim\` and \`spf\` show how its mail is authenticated. \`authorized\`: nearly all of its mail is aligned. \`misconfigured\`: it sends for you, but its mail is not aligned. \`forwarder\`: it forwards mail of others. \`threat\`: unauthenticated mail from addresses without a proper reverse name. \`unknown\`: classify it with PATCH. ${CSV_DESCRIPTION}`,
  query: pageQuery(isSourceCursor, {
    ...rangeFields,
    classification: z.enum(CLASSIFICATIONS).optional().describe("Only sources of this class."),
    unauthenticated: z
      .enum(["summary", "by_network"])
      .optional()
      .describe("`by_network` lists each network of unauthenticated mail as a source. Default: `summary`, all as one."),
  }),
  responses: {
    200: {
      description: "A page of sources.",
      schema: sourcesSchema,
      example: { sources: [SOURCE_EXAMPLE], next_cursor: null },
      alternatives: csvAlternative(SOURCE_COLUMNS),
    },
  },
});

const classification = z
  .enum(CLASSIFICATIONS)
  .nullable()
  .describe("What the source is. It overrides the automatic classification; null restores that.");

const CLASSIFY_SOURCES = declareRoute({
  method: "PATCH",
  path: PATH,
  operationId: "classifyDmarcSources",
  tag: REPORTS_TAG,
  summary: "Classify several sources",
  description:
    "Classifies all of them or none. Returns them in the order of `keys`, with their counts of the last 30 days. To classify by rule, set `source_rules` of the domain.",
  scope: "dmarc:write",
  params: domainParams,
  body: {
    schema: z
      .strictObject({
        keys: z
          .array(z.string().refine(isSourceKey, "Must be the key of a source, as /sources returns it"))
          .min(1)
          .max(KEYS_MAX)
          .meta({
            description: "Keys of sources, or networks of unauthenticated mail (`net:192.0.2.0/24`).",
            examples: [["org:example.net"]],
          }),
        classification,
      })
      .meta({ title: "DmarcSourcesChange" }),
    example: { keys: ["org:example.net", "net:192.0.2.0/24"], classification: "authorized" },
  },
  responses: {
    200: {
      description: "The sources.",
      schema: z.object({ sources }).meta({ title: "DmarcClassifiedSources" }),
      example: { sources: [CLASSIFIED] },
    },
  },
});

export const sourceParams = z.object({
  id: idParameter("domain"),
  // A key with a broken escape (`%E0`) arrives as null.
  key: z.coerce.string().meta({
    description: "`key` of the source, URL-encoded: it can contain `/` and `:`.",
    examples: ["org:example.net"],
  }),
});

const CLASSIFY_SOURCE = declareRoute({
  method: "PATCH",
  path: `${PATH}/:key`,
  operationId: "classifyDmarcSource",
  tag: REPORTS_TAG,
  summary: "Classify a source",
  description: "Returns the source with its counts of the last 30 days.",
  scope: "dmarc:write",
  params: sourceParams,
  body: {
    schema: z.strictObject({ classification }).meta({ title: "DmarcSourceChange" }),
    example: { classification: "authorized" },
  },
  responses: { 200: { description: "The source.", schema: sourceSchema, example: CLASSIFIED } },
});

export const SOURCE_ROUTES = [LIST_SOURCES, CLASSIFY_SOURCES, CLASSIFY_SOURCE] as const;

export const createSourceRoutes = ({ db, clock, rollups, findDomain }: QueryContext) => {
  const classifier = new SourceClassifier({ db, clock }, rollups);
  const reader = new SourceReader({ clock, rollups, findDomain });
  return [
    handle(LIST_SOURCES, async ({ request, caller, params, query }) => {
      const { limit, cursor, unauthenticated, ...rest } = query;
      const found = await reader.list(caller, params.id, { ...rest, byNetwork: unauthenticated === "by_network" });
      if (wantsCsv(request)) return reader.csv(request, found);
      const { page, next } = pageOfSources(found.sources, { after: cursor, limit });
      const next_cursor = next === null ? null : encodeCursor(next);
      return sendJson(request, { sources: page, next_cursor }, { vary: "accept" });
    }),

    handle(CLASSIFY_SOURCES, async ({ caller, params, body }) => ({
      sources: await classifier.classify(() => findDomain(caller, params.id), body),
    })),

    handle(CLASSIFY_SOURCE, async ({ caller, params, body: { classification } }) => {
      const change = { keys: [params.key], classification };
      const [source] = await classifier.classify(() => findDomain(caller, params.id), change);
      return source;
    }),
  ];
};
