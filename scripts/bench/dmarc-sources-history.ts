import { createLog } from "../../src/foundation/base/log.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { newId } from "../../src/foundation/base/secrets.ts";
import type { DnsResolver } from "../../src/foundation/net/dns.ts";
import { ImportSlice } from "../../src/dmarc/reports/open.ts";
import type { Db } from "../../src/foundation/db/open.ts";
import { madeDomain } from "../../src/testing/dmarc-domain.ts";
import { type SampleRow, sampleReportXml } from "../../src/testing/dmarc-reports.ts";

/** Who sends in the name of a domain: how many addresses, and which of them a row is of. */
export interface Shape {
  readonly name: string;
  readonly addresses: number;
  /** Every address sends on one day only, as a botnet does; else any day. */
  readonly isBotnet?: boolean;
  /** For how long the alert rules and the overview may hold the event loop. */
  readonly heldMsMax?: number;
}

/** Shapes of domains, from an ordinary one to the most sources that are kept apart. */
export const SHAPES: readonly Shape[] = [
  { name: "20 addresses", addresses: 20 },
  { name: "2,000 addresses", addresses: 2_000 },
  { name: "21,000 addresses", addresses: 21_000, heldMsMax: 50 },
  { name: "50,000 addresses", addresses: 50_000 },
  { name: "a botnet of 30,000", addresses: 30_000, isBotnet: true },
];

export const DAYS = 90;
const ROWS = 10;
const REPORTERS = 40;
/** The domain's own servers and services: the first addresses of every shape. */
const OWN = 10;
const DAY_S = 86_400;
const ITEMS_AT_ONCE = 256;

/** A number that looks random, the same for the same seed (Knuth's multiplicative hash, mixed). */
const mixed = (seed: number): number => {
  const one = Math.imul(seed ^ (seed >>> 16), 0x45d9f3b);
  const two = Math.imul(one ^ (one >>> 16), 0x45d9f3b);
  return (two ^ (two >>> 16)) >>> 0;
};

export const addressOf = (n: number): string => `100.${64 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;

/** The names that the DNS has for the addresses: half of them homes, a quarter servers of many organizations, a quarter nothing. */
export const reverseNameOf = (n: number): string | null => {
  if (n % 4 === 0) return null;
  if (n % 4 === 1) return `mail${n}.company${n % 997}.example`;
  return `${addressOf(n).replaceAll(".", "-")}.dynamic.isp${n % 50}.example`;
};

const rowOf = (n: number, count: number): SampleRow => {
  const ip = addressOf(n);
  if (n < OWN / 2) return { ip, count };
  if (n < OWN) return { ip, count, spf: "fail", spfResults: [`bounce${n}.sendgrid.net pass`] };
  if (n % 4 === 1 && n % 3 === 0)
    return { ip, count, dkim: "fail", dkimResults: [], spf: "fail", spfResults: [`sender${n % 997}.example pass`] };
  return { ip, count, dkim: "fail", dkimResults: [], spf: "fail", spfResults: [] };
};

/** Which address a row is of: half of the rows are of the domain's own senders. */
const senderOf = ({ addresses, isBotnet = false }: Shape, report: number, row: number): number => {
  if (row < ROWS / 2) return (report + row) % OWN;
  const seed = mixed(report * ROWS + row);
  if (!isBotnet) return seed % addresses;
  const perDay = Math.floor(addresses / DAYS);
  return OWN + (report % DAYS) * perDay + (seed % perDay);
};

/** Report `n` of a domain of a shape, which tells of a day behind `todayS` (seconds since 1970). */
const reportOf = (shape: Shape, domain: string, n: number, todayS: number): string => {
  const begin = todayS - (1 + (n % DAYS)) * DAY_S;
  const rows = Array.from({ length: ROWS }, (_, row) => rowOf(senderOf(shape, n, row), 1 + (mixed(n + row) % 9)));
  return sampleReportXml({ domain, org: `reporter${n % REPORTERS}.example`, reportId: `r${n}`, begin, rows });
};

/** Enrols a domain and takes its reports in as an import does; then the DNS has answered for all addresses. The domain's number. */
export const fillDomain = async (db: Db, shape: Shape, { domain, reports, todayS }: Filling): Promise<number> => {
  const quiet = createLog("error", systemClock, (line) => {
    throw new Error(line);
  });
  const { stores, ingest } = new ImportSlice({ db, clock: systemClock, log: quiet }, { resolver: NO_RESOLVER });
  const { domains } = stores;
  const createdAtMs = (todayS - 2 * DAYS * DAY_S) * 1000;
  const { number } = db.transact((tx) => domains.insert(tx, madeDomain({ domain, createdAtMs })));
  for (let at = 0; at < reports; at += ITEMS_AT_ONCE) {
    const items = Array.from({ length: Math.min(ITEMS_AT_ONCE, reports - at) }, (_, n) => ({
      isNew: true,
      ingestion: {
        ...({
          id: newId(),
          accountId: "account",
          mode: "live",
          domain: null,
          via: "http",
          name: "report.xml",
        } as const),
        ...{ client: null, helo: null, mailFrom: null, receivedAtMs: systemClock.nowMs() },
        bytes: Buffer.from(reportOf(shape, domain, at + n, todayS)),
      },
    }));
    for (const written of await ingest.process(items))
      if (written?.result.outcome !== "stored") throw new Error(JSON.stringify(written?.result));
  }
  answerNames(db, shape);
  return number;
};

export interface Filling {
  readonly domain: string;
  readonly reports: number;
  readonly todayS: number;
}

const NO_RESOLVER = {
  resolve: () => Promise.reject(new Error("nothing is asked of the DNS here")),
} as unknown as DnsResolver;

const answerNames = (db: Db, { addresses }: Shape): void => {
  const known = db.sqlite.prepare(
    `INSERT INTO dmarc_reverse_names (ip, name, is_confirmed, due_at_ms, asked_at_ms) VALUES (?1, ?2, ?3, ?4, 1)
      ON CONFLICT (ip) DO UPDATE SET name = ?2, is_confirmed = ?3, due_at_ms = ?4, asked_at_ms = 1`,
  );
  db.transact(() => {
    for (let n = 0; n < addresses; n++) {
      const name = n < OWN / 2 ? null : reverseNameOf(n);
      known.run(addressOf(n), name, name === null ? 0 : 1, Number.MAX_SAFE_INTEGER);
    }
  });
};
