import { afterEach } from "bun:test";
import { createLog } from "../base/log.ts";
import { AppError } from "../base/errors.ts";
import { createTokenBuckets } from "../base/limits.ts";
import { newId } from "../base/secrets.ts";
import { openDb } from "../db/open.ts";
import type { DomainRow } from "../dmarc/domains/domain-store.ts";
import { Ingest } from "../dmarc/ingest/ingest.ts";
import { openIngestStores } from "../dmarc/ingest/ingest-stores.ts";
import { RecordStore } from "../dmarc/queries/record-store.ts";
import { ReportQueryStore } from "../dmarc/queries/report-query-store.ts";
import { RollupStore } from "../dmarc/sources/rollup-store.ts";
import { DomainSources, type SourceDomain } from "../dmarc/sources/domain-sources.ts";
import { type Caller, createGuard } from "../http/guard.ts";
import { createBudgets } from "../http/request-memory.ts";
import { createQueryRoutes } from "../dmarc/queries/query-routes.ts";
import { createAdviceRoutes } from "../dmarc/advice/advice-routes.ts";
import { serveRoutes } from "../http/route.ts";
import { createServer } from "../server.ts";
import { createTestClock } from "./clock.ts";
import { madeDomain } from "./dmarc-domain.ts";
import { SAMPLE_DAY_S, type SampleReport, sampleReportXml } from "./dmarc-reports.ts";

/** 2026-01-01, in days since 1970. */
export const MADE_DAY = SAMPLE_DAY_S / 86_400;
const A_YEAR_MS = 365 * 86_400_000;

const ACCOUNT = "account";
/** Keys of the tests: the account's own, one that may only read, one of another account. */
const CALLERS: Readonly<Record<string, Pick<Caller, "accountId" | "scopes">>> = {
  own: { accountId: ACCOUNT, scopes: ["dmarc:write"] },
  reader: { accountId: ACCOUNT, scopes: ["dmarc:read"] },
  blind: { accountId: ACCOUNT, scopes: ["bulk:write"] },
  other: { accountId: "another", scopes: ["dmarc:write"] },
};

/** Domains with reports, and the routes that read them, for the tests of one file. */
export const createReportQueries = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  return () => {
    const opened = openDb(":memory:");
    if (!opened.ok) throw new Error(opened.error.kind);
    const db = opened.value;
    closers.push(() => db.close());
    const clock = createTestClock();
    const log = createLog("error", clock, (line) => {
      throw new Error(line);
    });
    const stores = openIngestStores(db);
    const { domains } = stores;
    // Reports about days behind the clock of the readers are made, too; to be taken in they must be of the past.
    const late = createTestClock(clock.nowMs() + A_YEAR_MS);
    const ingest = new Ingest({ db, clock: late, log }, { stores, authenticate: null });
    const store = new RollupStore(db);
    const records = new RecordStore(db);
    const reports = new ReportQueryStore(db);
    const authenticate = (authorization: string | null): Caller | undefined => {
      const known = CALLERS[authorization ?? ""];
      return known && { keyId: "key", mode: "live", rate: { perSecond: 1, burst: 1 }, ...known };
    };
    const guard = createGuard({ authenticate, buckets: createTokenBuckets(clock), budgets: createBudgets(clock) });
    const findDomain = (caller: Caller, id: string): DomainRow => {
      const row = domains.findById(id);
      if (row?.accountId === caller.accountId && row.mode === caller.mode) return row;
      throw new AppError("not_found", { message: "There is no such domain." });
    };
    const app = createServer({
      log,
      clock,
      trustedProxies: [],
      routes: [
        serveRoutes(guard, [
          ...createQueryRoutes({ db, clock, rollups: store, records, reports, findDomain }, stores.failures),
          ...createAdviceRoutes({ findDomain, advise: ({ domain }) => ({ domain }) }),
        ]),
      ],
    });

    const enrol = (domain = "example.com"): DomainRow =>
      db.transact((tx) => domains.insert(tx, madeDomain({ accountId: ACCOUNT, domain })));

    /** Takes a file or mail in as the service does. */
    const take = async (bytes: Uint8Array, name: string | null = null): Promise<void> => {
      const none = { domain: null, client: null, helo: null, mailFrom: null };
      const came = { id: newId(), accountId: ACCOUNT, mode: "live", via: "http", ...none } as const;
      const ingestion = { ...came, name, bytes, receivedAtMs: clock.nowMs() };
      const [written] = await ingest.process([{ ingestion, isNew: true }]);
      if (written?.result.outcome !== "stored") throw new Error(JSON.stringify(written?.result));
      // Seen when the readers' clock says, not the late one.
      const seenMs = clock.nowMs();
      db.sqlite.run("UPDATE dmarc_sources SET first_seen_at_ms = ? WHERE first_seen_at_ms = ?", [seenMs, late.nowMs()]);
    };

    let serial = 0;
    return {
      db,
      clock,
      store,
      records,
      reports,
      /** The sources of a domain, read now. */
      sourcesOf: (domain: SourceDomain) => new DomainSources(store, domain),
      enrol,
      take,
      /** Takes a report in; each has an id of its own unless told. */
      give: (report: SampleReport = {}): Promise<void> =>
        take(Buffer.from(sampleReportXml({ reportId: `made-${++serial}`, ...report })), "report.xml"),
      /** What the DNS has said of an address; null: that it has no name. */
      nameAddress: (ip: string, name: string | null, isConfirmed = name !== null): void =>
        void db.sqlite
          .query("UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = 1 WHERE ip = ?")
          .run(name, isConfirmed ? 1 : 0, ip),
      /** Which network was found to announce an address. */
      placeAddress: (ip: string, { asn, asName, country }: { asn: number; asName: string; country: string }): void =>
        void db.sqlite
          .query(
            "UPDATE dmarc_reverse_names SET asn = ?, as_name = ?, country = ?, network_asked_at_ms = 1 WHERE ip = ?",
          )
          .run(asn, asName, country, ip),
      /** Asks as the account's own key unless told; `path` is behind `/v1/dmarc/domains/`. */
      request: async (
        method: string,
        path: string,
        { key = "own", body, accept }: { key?: string; body?: unknown; accept?: string } = {},
      ) => {
        const answer: Response = await app.handle(
          new Request(new URL(path, "http://localhost/v1/dmarc/domains/").href, {
            method,
            headers: { authorization: key, ...(accept === undefined ? {} : { accept }) },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          }),
        );
        const bytes = Buffer.from(await answer.arrayBuffer());
        const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
        const json: Record<string, unknown> = isJson ? JSON.parse(bytes.toString()) : {};
        return { status: answer.status, headers: answer.headers, bytes, text: bytes.toString(), body: json };
      },
    };
  };
};
