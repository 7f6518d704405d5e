import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { readById } from "../../../foundation/base/walk.ts";
import { newId, isId } from "../../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
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
import { DOMAIN_PATH, DOMAIN_REPORTS } from "../queries/domain-query.ts";
import { RECORD_KINDS, type ObservedRecord } from "./observed-records.ts";

/** Rows of a domain. The names of DKIM keys come from reports, which anybody can send. */
const ROWS_MAX = 1_000;
const textsSchema = z.array(z.string());

/** A change of the records of a kind at a name. */
export interface RecordChangeRow extends Pick<ObservedRecord, "kind" | "host"> {
  readonly id: string;
  readonly atMs: number;
  /** The records before, as a JSON array; null for the first that was seen. */
  readonly before: string | null;
  /** The records since then, as a JSON array. */
  readonly value: string;
}

/** The changes of the DNS records of domains. Each is stored once, when a health check finds it. `domain` is the `number` of a domain. */
export class RecordHistoryStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = sqlStatements(db, {
      current: rows<Pick<RecordChangeRow, "kind" | "host" | "value">, [number]>(
        "SELECT kind, host, value, max(id) FROM dmarc_record_history WHERE domain = ? GROUP BY kind, host",
      ),
      insert: `INSERT INTO dmarc_record_history (id, domain, kind, host, at_ms, before, value)
        SELECT ?, number, ?, ?, ?, ?, ? FROM dmarc_domains WHERE number = ? AND deleted_at_ms IS NULL`,
      removeOldest: `DELETE FROM dmarc_record_history WHERE domain = ?1 AND id <= (SELECT id FROM dmarc_record_history
        WHERE domain = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${ROWS_MAX})`,
      list: rows<RecordChangeRow, [number, string, number]>(
        `SELECT id, kind, host, at_ms AS atMs, before, value FROM dmarc_record_history
        WHERE domain = ? AND id < ? ORDER BY id DESC LIMIT ?`,
      ),
      changes: rows<RecordChangeRow, [number, number]>(
        `SELECT id, kind, host, at_ms AS atMs, before, value FROM dmarc_record_history
        WHERE domain = ? AND before IS NOT NULL ORDER BY id DESC LIMIT ?`,
      ),
    });
  }

  /** Stores what changed since the last check, unless the domain was deleted meanwhile. The name of a key without a record is stored once there was a key. */
  observe(_tx: Tx, domain: number, observed: readonly ObservedRecord[], atMs: number): void {
    const current = new Map(this.#sql.current.all(domain).map(({ kind, host, value }) => [`${kind} ${host}`, value]));
    const changed = observed.filter(({ kind, host, values }) => {
      const before = current.get(`${kind} ${host}`);
      return before === undefined ? kind !== "dkim" || values.length > 0 : before !== JSON.stringify(values);
    });
    for (const { kind, host, values } of changed) {
      const before = current.get(`${kind} ${host}`) ?? null;
      this.#sql.insert.run(newId(), kind, host, atMs, before, JSON.stringify(values), domain);
    }
    if (changed.length > 0) this.#sql.removeOldest.run(domain);
  }

  /** Newest first, with the first records that were seen. */
  list(domain: number, { before, limit }: DomainPage): RecordChangeRow[] {
    return this.#sql.list.all(domain, before ?? "~", limit);
  }

  /** The newest changes, without the first records that were seen. */
  changes(domain: number, limit: number): RecordChangeRow[] {
    return this.#sql.changes.all(domain, limit);
  }
}

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
