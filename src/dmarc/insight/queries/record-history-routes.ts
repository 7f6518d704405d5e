import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { isId } from "../../../foundation/base/secrets.ts";
import { readById } from "../../../foundation/base/walk.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import { rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { pageQuery } from "../../../foundation/http/route-input.ts";
import {
  enumField,
  idField,
  nextCursorField,
  textField,
  textsField,
  timeField,
} from "../../../foundation/http/schema-fields.ts";
import type { DomainPage, DomainRow } from "../../records/domains/domain-store.ts";
import { RECORD_KINDS } from "../health/observed-records.ts";
import type { RecordChangeRow, RecordHistoryStore } from "../health/record-history.ts";
import { DOMAIN_PATH, DOMAIN_REPORTS } from "./domain-query.ts";

const textsSchema = z.array(z.string());

const recordChangeSchema = z
  .object({
    id: idField("Identifier of the change."),
    at: timeField("When a check found it; it happened since the check before."),
    kind: enumField(RECORD_KINDS, "What the records are for."),
    host: textField("The name of the records."),
    before: z.array(z.string()).nullable().describe("The records before; null for the first that were seen."),
    records: textsField("The records since then, in order; empty where there is none."),
  })
  .meta({ title: "DmarcRecordChange" });

/** A change of DNS records as the API returns it. */
export type RecordChangeView = Readonly<z.output<typeof recordChangeSchema>>;

export const recordChangeView = ({ id, atMs, kind, host, before, value }: RecordChangeRow): RecordChangeView => ({
  id,
  at: isoTime(atMs),
  kind,
  host,
  before: before === null ? null : textsSchema.parse(JSON.parse(before)),
  records: textsSchema.parse(JSON.parse(value)),
});

const LIST_RECORD_HISTORY = declareRoute({
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/record-history`,
  operationId: "listDmarcRecordHistory",
  summary: "List the changes of a domain's DNS records",
  description:
    "The DMARC, SPF, MX and MTA-STS records of the domain and the DKIM keys that its reports name, as the daily health checks found them; newest first. A record is stored when it changes. The first records that were seen have `before` null. A check without a response changes nothing. Changes are kept for 400 days.",
  query: pageQuery(isId, {}),
  responses: {
    200: {
      description: "A page of changes.",
      schema: z
        .object({
          record_history: z.array(recordChangeSchema).describe("The changes."),
          next_cursor: nextCursorField,
        })
        .meta({ title: "DmarcRecordHistory" }),
      example: {
        record_history: [
          {
            id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a61",
            at: "2026-01-04T05:15:00.000Z",
            kind: "spf",
            host: "example.com",
            before: ["v=spf1 mx -all"],
            records: ["v=spf1 mx include:_spf.example.net -all"],
          },
        ],
        next_cursor: null,
      },
    },
  },
});

export const RECORD_HISTORY_ROUTES = [LIST_RECORD_HISTORY] as const;

/** Reads the changes of the caller's domains. Throws `not_found` for a domain of another account. */
export class RecordHistory {
  constructor(
    private readonly store: RecordHistoryStore,
    private readonly findDomain: (caller: Caller, id: string) => DomainRow,
  ) {}

  /** Newest first, with the first records that were seen. */
  list(caller: Caller, id: string): (page: DomainPage) => RecordChangeRow[] {
    const { number } = this.findDomain(caller, id);
    return (page) => this.store.list(number, page);
  }

  /** The newest changes of a domain. */
  changes({ number }: Pick<DomainRow, "number">, limit: number): readonly RecordChangeView[] {
    return this.store.changes(number, limit).map(recordChangeView);
  }
}

export const createRecordHistoryRoutes = (history: RecordHistory) => [
  handle(LIST_RECORD_HISTORY, ({ request, caller, params, query }) => {
    const read = readById(history.list(caller, params.id));
    return sendPage(request, { name: "record_history", page: query }, rowsById(read, recordChangeView));
  }),
];
