import { wantsCsv } from "../../../foundation/http/row-format.ts";
import { z } from "zod";
import { AppError } from "../../../foundation/base/errors.ts";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import { type Cell, csvLine } from "../../../foundation/http/csv.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import { sendJson } from "../../../foundation/http/response.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { encodeCursor, pageQuery } from "../../../foundation/http/route-input.ts";
import {
  booleanParameter,
  countField,
  dayField,
  listField,
  nextCursorField,
  nullableInteger,
  nullableText,
  textField,
} from "../../../foundation/http/schema-fields.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { DomainSources, type SenderAddress } from "../sources/domain-sources.ts";
import { percentOf } from "../sources/rollup-rows.ts";
import {
  csvAlternative,
  CSV_DESCRIPTION,
  csvResponse,
  DOMAIN_PATH,
  DOMAIN_REPORTS,
  exportFileName,
  type QueryContext,
  rangeOf,
} from "./domain-query.ts";
import { isHostCursor, pageOfHosts } from "./own-host-routes.ts";
import { sourceParams } from "./source-routes.ts";

/** Which addresses of a source to list. Days are UTC days since 1970. */
interface SourceAddressQuery {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Only addresses with failing mail that was not forwarded. */
  readonly failing?: boolean | undefined;
}

const addressSchema = z
  .object({
    ip: textField("The IP address."),
    reverse_name: nullableText(
      "Its reverse DNS name, if that resolves to the address; null when not, or not yet known.",
    ),
    asn: nullableInteger("The AS that announces the address; null when unknown."),
    as_name: nullableText("The name of that AS; null when unknown."),
    country: nullableText("Country of the network, ISO 3166-1 alpha-2; null when unknown."),
    messages: countField("Messages in reports."),
    aligned: countField("Messages that passed DMARC."),
    failing: countField("Messages that failed DMARC."),
    forwarded: countField("Failing messages that receivers recognized as forwarded."),
    aligned_percent: z.number().nullable().describe("Share of aligned messages in percent, with one decimal."),
    last_day: dayField("The last day in any report, whatever the range."),
  })
  .meta({ title: "DmarcSourceAddress" });

/** An address of a source exactly as the API returns it. */
type ShownAddress = Readonly<z.output<typeof addressSchema>>;

interface FoundAddresses {
  readonly domain: DomainRow;
  readonly range: DayRange;
  /** The addresses with the most failing messages first, then the most messages, then by address. */
  readonly addresses: readonly ShownAddress[];
}

const EXPORTED_AT_ONCE = 1_000;

/** Lists the addresses of a source. Throws `not_found` for a domain of another account, and for a key that no report names. */
export class SourceAddressReader {
  constructor(private readonly deps: Pick<QueryContext, "clock" | "rollups" | "findDomain">) {}

  async list(
    caller: Caller,
    id: string,
    key: string,
    { from, to, failing = false }: SourceAddressQuery,
  ): Promise<FoundAddresses> {
    const { clock, rollups, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const range = rangeOf({ from, to }, clock.nowMs());
    const found = await DomainSources.read(rollups, domain, (all) => all.explain(key, range));
    if (found === undefined) throw new AppError("not_found", { message: "No report names this source." });
    const addresses = found.addresses
      .map(addressView)
      .filter((one) => !failing || one.failing > one.forwarded)
      .toSorted((a, b) => b.failing - a.failing || b.messages - a.messages || (a.ip < b.ip ? -1 : 1));
    return { domain, range, addresses };
  }

  /** All found addresses as a CSV file. */
  csv(request: Request, found: FoundAddresses): Response {
    const name = exportFileName("addresses", found.domain, found.range, "csv");
    return csvResponse(request, name, { columns: ADDRESS_COLUMNS, batches: batchesOf(found.addresses) });
  }

  /** The same as one text. */
  csvText({ addresses }: FoundAddresses): string {
    return [csvLine(ADDRESS_COLUMNS), ...addresses.map((address) => csvLine(cellsOf(address)))].join("");
  }
}

const ADDRESS_COLUMNS = addressSchema.keyof().options;

const cellsOf = (address: ShownAddress): readonly Cell[] => ADDRESS_COLUMNS.map((column) => address[column]);

async function* batchesOf(addresses: readonly ShownAddress[]): AsyncGenerator<ReadonlyArray<readonly Cell[]>, void> {
  for (let at = 0; at < addresses.length; at += EXPORTED_AT_ONCE)
    yield addresses.slice(at, at + EXPORTED_AT_ONCE).map(cellsOf);
}

const addressView = ({ address, messages, aligned, forwarded, lastDay }: SenderAddress): ShownAddress => ({
  ip: address.ip,
  reverse_name: address.isConfirmed ? address.name : null,
  asn: address.asn,
  as_name: address.asName,
  country: address.country,
  messages,
  aligned,
  failing: messages - aligned,
  forwarded,
  aligned_percent: percentOf(aligned, messages),
  last_day: isoDay(lastDay),
});

const LIST_ADDRESSES = declareRoute({
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/sources/:key/addresses`,
  operationId: "listDmarcSourceAddresses",
  summary: "List the addresses of a source",
  description: `One by one, those with the most failing messages first; \`failing=true\` leaves out those whose mail passes or was only forwarded. ${CSV_DESCRIPTION}`,
  params: sourceParams,
  query: pageQuery(isHostCursor, {
    ...rangeFields,
    failing: booleanParameter("`true`: only addresses with failing mail that was not forwarded."),
  }),
  responses: {
    200: {
      description: "A page of addresses.",
      schema: z
        .object({ addresses: listField(addressSchema, "The addresses."), next_cursor: nextCursorField })
        .meta({ title: "DmarcSourceAddressList" }),
      example: {
        addresses: [
          {
            ip: "192.0.2.77",
            reverse_name: "out7.example.net",
            asn: 64_500,
            as_name: "EXAMPLE-NET",
            country: "DE",
            messages: 312,
            aligned: 0,
            failing: 312,
            forwarded: 0,
            aligned_percent: 0,
            last_day: "2026-01-30",
          },
        ],
        next_cursor: null,
      },
      alternatives: csvAlternative(ADDRESS_COLUMNS),
    },
  },
});

export const SOURCE_ADDRESS_ROUTES = [LIST_ADDRESSES] as const;

export const createSourceAddressRoutes = (context: QueryContext) => {
  const reader = new SourceAddressReader(context);
  return [
    handle(LIST_ADDRESSES, async ({ request, caller, params, query: { limit, cursor, ...wanted } }) => {
      const found = await reader.list(caller, params.id, params.key, wanted);
      if (wantsCsv(request)) return reader.csv(request, found);
      const { page, next } = pageOfHosts(found.addresses, { after: cursor, limit });
      const next_cursor = next === null ? null : encodeCursor(next);
      return sendJson(request, { addresses: page, next_cursor }, { vary: "accept" });
    }),
  ];
};
