import { z } from "zod";
import { nextCursorField } from "../../../foundation/http/schema-fields.ts";
import { sendJson } from "../../../foundation/http/response.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { encodeCursor, idParameter, pageQuery } from "../../../foundation/http/route-input.ts";
import { SourceClassifier } from "../sources/classify-sources.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { CLASSIFICATIONS } from "../sources/rollup-store.ts";
import { isSourceKey } from "../sources/source-identity.ts";
import { sourceSchema } from "../sources/source-response.ts";
import { CSV_DESCRIPTION, csvAlternative, wantsCsv } from "./row-formats.ts";
import { DOMAIN_PATH, domainParams, type QueryContext, REPORTS_TAG } from "./domain-query.ts";
import { SOURCE_EXAMPLE } from "./query-examples.ts";
import { SourceReader, isSourceCursor, pageOfSources, SOURCE_COLUMNS } from "./source-reader.ts";

const PATH = `${DOMAIN_PATH}/sources`;
const KEYS_MAX = 500;
const CLASSIFIED = { ...SOURCE_EXAMPLE, classification: "authorized", classified_by: "user" };

const sources = z.array(sourceSchema).meta({ description: "The sources." });

export const sourcesSchema = z
  .object({
    sources,
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcSourceList" });

const LIST_SOURCES = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listDmarcSources",
  tag: REPORTS_TAG,
  summary: "List who sends in a domain's name",
  description: `Those with the most actionable failures come first. A source is the service or organization behind the sending addresses; \`dkim\` and \`spf\` show how its mail is authenticated. \`authorized\`: nearly all of its mail is aligned. \`misconfigured\`: it sends for you, but its mail is not aligned. \`forwarder\`: it forwards mail of others. \`threat\`: unauthenticated mail from addresses without a proper reverse name. \`unknown\`: classify it with PATCH. ${CSV_DESCRIPTION}`,
  scope: "dmarc:read",
  params: domainParams,
  query: pageQuery(isSourceCursor, {
    ...rangeFields,
    classification: z.enum(CLASSIFICATIONS).optional().meta({ description: "Only sources of this class." }),
    unauthenticated: z.enum(["summary", "by_network"]).optional().meta({
      description:
        "`by_network` lists each network of unauthenticated mail as a source. Default: `summary`, all as one.",
    }),
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

const classification = z.enum(CLASSIFICATIONS).nullable().meta({
  description: "What the source is. It overrides the automatic classification; null restores that.",
});

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

const CLASSIFY_SOURCE = declareRoute({
  method: "PATCH",
  path: `${PATH}/:key`,
  operationId: "classifyDmarcSource",
  tag: REPORTS_TAG,
  summary: "Classify a source",
  description: "Returns the source with its counts of the last 30 days.",
  scope: "dmarc:write",
  params: z.object({
    id: idParameter("domain"),
    // A key with a broken escape (`%E0`) arrives as null.
    key: z.coerce.string().meta({
      description: "`key` of the source, URL-encoded: it can contain `/` and `:`.",
      examples: ["org:example.net"],
    }),
  }),
  body: {
    schema: z.strictObject({ classification }).meta({ title: "DmarcSourceChange" }),
    example: { classification: "authorized" },
  },
  responses: { 200: { description: "The source.", schema: sourceSchema, example: CLASSIFIED } },
});

export const SOURCE_ROUTES = [LIST_SOURCES, CLASSIFY_SOURCES, CLASSIFY_SOURCE] as const;

export const createSourceRoutes = ({ db, clock, rollups, findDomain }: QueryContext) => {
  const classifier = new SourceClassifier({ db, clock }, rollups);
  const reader = new SourceReader({ db, clock, rollups, findDomain });
  return [
    handle(LIST_SOURCES, ({ request, caller, params, query }) => {
      const { limit, cursor, unauthenticated, ...rest } = query;
      const found = reader.list(caller, params.id, { ...rest, byNetwork: unauthenticated === "by_network" });
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
