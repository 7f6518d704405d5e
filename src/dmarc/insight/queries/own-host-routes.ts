import { wantsCsv } from "../../../foundation/http/row-format.ts";
import { z } from "zod";
import { isoDay, type DayRange } from "../../../foundation/base/days.ts";
import { type Cell, csvLine } from "../../../foundation/http/csv.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { inTurns } from "../../../foundation/base/in-steps.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import { sendJson } from "../../../foundation/http/response.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { encodeCursor, pageQuery } from "../../../foundation/http/route-input.ts";
import {
  countField,
  dayField,
  flagField,
  listField,
  nextCursorField,
  nullableText,
  textField,
} from "../../../foundation/http/schema-fields.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { DomainSources, inReadingTurn } from "../sources/domain-sources.ts";
import type { OwnHost } from "../sources/own-hosts.ts";
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

export const HOST_RESULTS = ["failing", "passing"] as const;

/** Which own servers to list. Days are UTC days since 1970. */
export interface OwnHostQuery {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly result?: (typeof HOST_RESULTS)[number] | undefined;
  /** As `OwnHost` has it, in any case. */
  readonly department?: string | undefined;
}

const ownHostSchema = z
  .object({
    ip: textField("The IP address."),
    reverse_name: nullableText(
      "Its reverse DNS name, if that resolves to the address; null when not, or not yet known.",
    ),
    department: nullableText(
      "The reverse name up to the department: `chemie.example.com` of `www.lab3.chemie.example.com`; null without a reverse name.",
    ),
    result: z
      .enum(HOST_RESULTS)
      .describe("`failing`: less than 90 % of its mail in the range is aligned, forwarded mail left out."),
    messages: countField("Messages in reports."),
    aligned: countField("Messages that passed DMARC."),
    failing: countField("Messages that failed DMARC."),
    aligned_percent: z.number().nullable().describe("Share of aligned messages in percent, with one decimal."),
    first_day: dayField("The first day in any report, whatever the range."),
    last_day: dayField("The last day in any report, whatever the range."),
    last_failing_day: z.iso
      .date()
      .nullable()
      .describe("The last day in the range with failing mail that was not forwarded; null for none."),
    lookup_pending: flagField("Whether its reverse name is still being looked up."),
  })
  .meta({ title: "DmarcOwnHost" });

/** An own server exactly as the API returns it. */
export type ShownHost = Readonly<z.output<typeof ownHostSchema>>;

interface FoundHosts {
  readonly domain: DomainRow;
  readonly range: DayRange;
  /** In the order of the most failing messages. */
  readonly hosts: readonly OwnHost[];
  /** Of all own servers in the range. */
  readonly counts: Readonly<Record<(typeof HOST_RESULTS)[number] | "all", number>>;
}

const EXPORTED_AT_ONCE = 1_000;

/** Lists a domain's own servers one by one. Throws `not_found` for a domain of another account. */
export class OwnHostReader {
  constructor(private readonly deps: Pick<QueryContext, "clock" | "rollups" | "findDomain">) {}

  async list(caller: Caller, id: string, { from, to, result, department }: OwnHostQuery): Promise<FoundHosts> {
    const { clock, rollups, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const range = rangeOf({ from, to }, clock.nowMs());
    const all = await DomainSources.read(rollups, domain, (read) => read.ownHosts(range));
    const failing = all.filter(({ isFailing }) => isFailing).length;
    const wanted = department?.trim().toLowerCase() ?? "";
    const hosts = all.filter(
      (host) =>
        (result === undefined || host.isFailing === (result === "failing")) &&
        (wanted === "" || host.department === wanted),
    );
    return { domain, range, hosts, counts: { all: all.length, failing, passing: all.length - failing } };
  }

  /** Hosts as the API returns them. */
  async view({ domain, range }: Pick<FoundHosts, "domain" | "range">, hosts: readonly OwnHost[]): Promise<ShownHost[]> {
    const numbers = hosts.filter(({ failing }) => failing > 0).flatMap((host) => host.numbers);
    const read = this.deps.rollups.lastFailingDays(domain.number, range, numbers);
    const lastDays = await inReadingTurn(domain, () => inTurns(read));
    return hosts.map((host) => hostView(host, lastDays));
  }

  /** All found hosts as a CSV file. */
  csv(request: Request, found: FoundHosts): Response {
    const name = exportFileName("own-hosts", found.domain, found.range, "csv");
    return csvResponse(request, name, { columns: HOST_COLUMNS, batches: this.#rows(found) });
  }

  /** The same as one text. */
  async csvText(found: FoundHosts): Promise<string> {
    const shown = await this.view(found, found.hosts);
    return [csvLine(HOST_COLUMNS), ...shown.map((host) => csvLine(cellsOf(host)))].join("");
  }

  async *#rows(found: FoundHosts): AsyncGenerator<ReadonlyArray<readonly Cell[]>, void> {
    for (let at = 0; at < found.hosts.length; at += EXPORTED_AT_ONCE) {
      const shown = await this.view(found, found.hosts.slice(at, at + EXPORTED_AT_ONCE));
      yield shown.map(cellsOf);
    }
  }
}

const HOST_COLUMNS = ownHostSchema.omit({ lookup_pending: true }).keyof().options;

const cellsOf = (host: ShownHost): readonly Cell[] => HOST_COLUMNS.map((column) => host[column]);

const hostView = (host: OwnHost, lastDays: ReadonlyMap<number, number>): ShownHost => {
  const failedOn = host.numbers.flatMap((number) => lastDays.get(number) ?? []);
  return {
    ip: host.ip,
    reverse_name: host.name,
    department: host.department,
    result: host.isFailing ? "failing" : "passing",
    messages: host.messages,
    aligned: host.aligned,
    failing: host.failing,
    aligned_percent: percentOf(host.aligned, host.messages),
    first_day: isoDay(host.firstDay),
    last_day: isoDay(host.lastDay),
    last_failing_day: failedOn.length === 0 ? null : isoDay(Math.max(...failedOn)),
    lookup_pending: !host.isAsked,
  };
};

const CURSOR = /^(\d{1,16})\.(\d{1,16})\.([0-9a-f.:]{2,45})$/;

export const isHostCursor = (text: string): boolean => CURSOR.test(text);

/** A page of hosts or addresses that are in the order of the most failing messages. */
export const pageOfHosts = <Host extends Pick<OwnHost, "ip" | "failing" | "messages">>(
  hosts: readonly Host[],
  { after, limit }: { readonly after: string | null; readonly limit: number },
): { readonly page: readonly Host[]; readonly next: string | null } => {
  const [, failing, messages, ip = ""] = (after === null ? null : CURSOR.exec(after)) ?? [];
  const rest =
    failing === undefined
      ? hosts
      : hosts.filter((host) => {
          const order = Number(failing) - host.failing || Number(messages) - host.messages;
          return order === 0 ? host.ip > ip : order > 0;
        });
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const isLast = last === undefined || rest.length === page.length;
  return { page, next: isLast ? null : `${last.failing}.${last.messages}.${last.ip}` };
};

const DEPARTMENT_CHARACTERS_MAX = 253;

const LIST_OWN_HOSTS = declareRoute({
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/own-hosts`,
  operationId: "listDmarcOwnHosts",
  summary: "List a domain's own servers",
  description: `One by one, those with the most failing messages first. A server counts by all of its mail in the range: one that was fixed is \`passing\` when 90 % of its mail in the range is aligned, and \`last_failing_day\` says since when nothing failed. Where some of them pass and others fail, the sources \`own\` and \`own/failing\` sum up the two groups. ${CSV_DESCRIPTION}`,
  query: pageQuery(isHostCursor, {
    ...rangeFields,
    result: z.enum(HOST_RESULTS).optional().describe("Only servers with this result."),
    department: z
      .string("Must not be repeated")
      .max(DEPARTMENT_CHARACTERS_MAX)
      .optional()
      .describe("Only servers of this department."),
  }),
  responses: {
    200: {
      description: "A page of servers.",
      schema: z
        .object({ own_hosts: listField(ownHostSchema, "The servers."), next_cursor: nextCursorField })
        .meta({ title: "DmarcOwnHostList" }),
      example: {
        own_hosts: [
          {
            ip: "192.0.2.77",
            reverse_name: "lab3.chemie.example.com",
            department: "chemie.example.com",
            result: "failing",
            messages: 312,
            aligned: 0,
            failing: 312,
            aligned_percent: 0,
            first_day: "2026-01-02",
            last_day: "2026-01-30",
            last_failing_day: "2026-01-30",
            lookup_pending: false,
          },
        ],
        next_cursor: null,
      },
      alternatives: csvAlternative(HOST_COLUMNS),
    },
  },
});

export const OWN_HOST_ROUTES = [LIST_OWN_HOSTS] as const;

export const createOwnHostRoutes = (context: QueryContext) => {
  const reader = new OwnHostReader(context);
  return [
    handle(LIST_OWN_HOSTS, async ({ request, caller, params, query: { limit, cursor, ...wanted } }) => {
      const found = await reader.list(caller, params.id, wanted);
      if (wantsCsv(request)) return reader.csv(request, found);
      const { page, next } = pageOfHosts(found.hosts, { after: cursor, limit });
      const next_cursor = next === null ? null : encodeCursor(next);
      return sendJson(request, { own_hosts: await reader.view(found, page), next_cursor }, { vary: "accept" });
    }),
  ];
};
