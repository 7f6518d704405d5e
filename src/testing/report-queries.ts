import { afterEach } from "bun:test";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createLog, type Log } from "../foundation/base/log.ts";
import { AppError } from "../foundation/base/errors.ts";
import { createTokenBuckets } from "../foundation/base/limits.ts";
import type { DayRange } from "../foundation/base/days.ts";
import { atOnce } from "../foundation/base/in-steps.ts";
import { newId } from "../foundation/base/secrets.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import type { DomainRow } from "../dmarc/records/domains/domain-store.ts";
import { Ingest } from "../dmarc/reports/ingest/ingest.ts";
import { type IngestStores, openIngestStores } from "../dmarc/reports/ingest/ingest-stores.ts";
import { RecordStore } from "../dmarc/insight/queries/record-store.ts";
import { ReportQueryStore } from "../dmarc/insight/queries/report-query-store.ts";
import { RollupStore } from "../dmarc/insight/sources/rollup-store.ts";
import { summarizeDomain, type Summary } from "../dmarc/insight/queries/summary.ts";
import { DomainSources, type SourceDomain } from "../dmarc/insight/sources/domain-sources.ts";
import { type Caller, Guard } from "../foundation/http/guard.ts";
import { createBudgets } from "../foundation/http/request-memory.ts";
import { createQueryRoutes } from "../dmarc/insight/queries/query-routes.ts";
import { createAdviceRoutes } from "../dmarc/finding-routes.ts";
import { type HandledRoute, serveRoutes } from "../foundation/http/route.ts";
import { createApplication } from "../service/http-application.ts";
import { createServer } from "../service/server.ts";
import { createTestClock, type TestClock } from "./clock.ts";
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

interface Databases {
  readonly closers: Array<() => void>;
}

const openMemory = ({ closers }: Databases): Db => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  closers.push(() => opened.value.close());
  return opened.value;
};

/** Domains with reports, and the routes that read them, for the tests of one file. */
export const createReportQueries = () => {
  const databases: Databases = { closers: [] };
  afterEach(() => {
    for (const close of databases.closers.splice(0)) close();
  });

  return () => {
    const db = openMemory(databases);
    const clock = createTestClock();
    const log = createLog("error", clock, (line) => {
      throw new Error(line);
    });
    const stores = openIngestStores(db);
    const { domains } = stores;
    const store = new RollupStore(db);
    const [records, reports] = [new RecordStore(db), new ReportQueryStore(db)];
    const findDomain = (caller: Caller, id: string): DomainRow => {
      const row = domains.findById(id);
      if (row?.accountId === caller.accountId && row.mode === caller.mode) return row;
      throw new AppError("not_found", { message: "There is no such domain." });
    };
    const take = createUploads({ db, clock, log, stores });
    const routes = [
      ...createQueryRoutes({ db, clock, rollups: store, records, reports, findDomain }, stores.failures),
      ...createAdviceRoutes({ findDomain, advise: ({ domain }) => ({ domain }) }),
    ];
    let serial = 0;
    return {
      ...{ db, clock, store, records, reports, take },
      /** What is read of the sources of a domain, now. */
      sourcesOf: (domain: SourceDomain) => sourcesNow(store, domain),
      enrol: (domain = "example.com"): DomainRow =>
        db.transact((tx) => domains.insert(tx, madeDomain({ accountId: ACCOUNT, domain }))),
      /** Uploads a report; each has its own id unless one is given. */
      give: (report: SampleReport = {}): Promise<void> =>
        take(Buffer.from(sampleReportXml({ reportId: `made-${++serial}`, ...report })), "report.xml"),
      ...addressSetters(db),
      request: createRequests({ log, clock, routes }),
    };
  };
};

/** All steps at once: nothing comes between them. */
const sourcesNow = (store: RollupStore, domain: SourceDomain) => {
  const all = atOnce(DomainSources.open(store, domain));
  return {
    sources: (...asked: Parameters<DomainSources["sources"]>) => atOnce(all.sources(...asked)),
    keyed: (range: DayRange) => atOnce(all.keyed(range)),
    find: (key: string, range: DayRange) => atOnce(all.findAll([key], range)).get(key),
    explain: (key: string, range: DayRange) => atOnce(all.explain(key, range)),
    ownHosts: (range: DayRange) => atOnce(all.ownHosts(range)),
    names: (range: DayRange) => atOnce(all.names(range)),
    keysOf: (keys: ReadonlySet<string>, range: DayRange) => atOnce(all.keysOf(keys, range)),
    numbersOf: (keys: readonly string[], range: DayRange) => atOnce(all.numbersOf(keys, range)),
    classifiedKeysOf: (keys: readonly string[], range: DayRange) => atOnce(all.classifiedKeysOf(keys, range)),
  };
};

/** The messages of a domain in a range. */
export const messagesNow = (store: RollupStore, domain: number, range: DayRange): number =>
  atOnce(store.totals(domain, range)).messages;

export const summaryNow = (store: RollupStore, domain: SourceDomain, range: DayRange): Summary =>
  summarizeDomain(store, domain, range, sourcesNow(store, domain).sources(range));

interface UploadParts {
  readonly db: Db;
  readonly clock: TestClock;
  readonly log: Log;
  readonly stores: IngestStores;
}

/** Stores files and mails as the service does. */
const createUploads = ({ db, clock, log, stores }: UploadParts) => {
  // Some reports are about days after the clock of the queries; ingestion accepts only days in the past.
  const late = createTestClock(clock.nowMs() + A_YEAR_MS);
  const ingest = new Ingest({ db, clock: late, log }, { stores, authenticate: null });
  return async (bytes: Uint8Array, name: string | null = null): Promise<void> => {
    const none = { domain: null, client: null, helo: null, mailFrom: null };
    const received = { id: newId(), accountId: ACCOUNT, mode: "live", via: "http", ...none } as const;
    const ingestion = { ...received, name, bytes, receivedAtMs: clock.nowMs() };
    const [written] = await ingest.process([{ ingestion, isNew: true }]);
    if (written?.result.outcome !== "stored") throw new Error(JSON.stringify(written?.result));
    const seenMs = clock.nowMs();
    db.sqlite.run("UPDATE dmarc_sources SET first_seen_at_ms = ? WHERE first_seen_at_ms = ?", [seenMs, late.nowMs()]);
  };
};

const addressSetters = ({ sqlite }: Db) => ({
  /** Sets the reverse name of an address; null: it has none. */
  nameAddress: (ip: string, name: string | null, isConfirmed = name !== null): void =>
    void sqlite
      .query("UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = 1 WHERE ip = ?")
      .run(name, isConfirmed ? 1 : 0, ip),
  /** Sets the network that announces an address. */
  placeAddress: (ip: string, { asn, asName, country }: { asn: number; asName: string; country: string }): void =>
    void sqlite
      .query("UPDATE dmarc_reverse_names SET asn = ?, as_name = ?, country = ?, network_asked_at_ms = 1 WHERE ip = ?")
      .run(asn, asName, country, ip),
});

interface ServerParts {
  readonly log: Log;
  readonly clock: TestClock;
  readonly routes: readonly HandledRoute[];
}

/** Sends requests with the account's own key unless another one is named; `path` is relative to `/v1/dmarc/domains/`. */
const createRequests = ({ log, clock, routes }: ServerParts) => {
  const authenticate = (authorization: string | null): Caller | undefined => {
    const known = CALLERS[authorization ?? ""];
    return known && { keyId: "key", mode: "live", rate: { perSecond: 1, burst: 1 }, ...known };
  };
  const guard = new Guard(authenticate, { buckets: createTokenBuckets(clock), budgets: createBudgets(clock) });
  const application = createApplication({ log, clock, routes: serveRoutes(guard, routes) });
  const app = createServer({ log, clock, clients: new ClientAddresses([]), applicationOf: () => application });
  return async (
    method: string,
    path: string,
    { key = "own", body, accept }: { key?: string; body?: unknown; accept?: string } = {},
  ) => {
    const response: Response = await app.handle(
      new Request(new URL(path, "http://localhost/v1/dmarc/domains/").href, {
        method,
        headers: { authorization: key, ...(accept === undefined ? {} : { accept }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    const json: Record<string, unknown> = isJson ? JSON.parse(bytes.toString()) : {};
    return { status: response.status, headers: response.headers, bytes, text: bytes.toString(), body: json };
  };
};
