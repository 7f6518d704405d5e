import { sumOf } from "../../../foundation/base/sums.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { isSendingService } from "../../records/services/services.ts";
import { readSourceKey } from "../../reports/ingest/rollup.ts";
import type { Source } from "./source-response.ts";

/**
 * Addresses times other domains that are looked up, some 100 ms of work: as many domains as that allows are searched, always the same
 * ones, so that the advice does not change with the order in which reports arrive.
 */
const LOOKUPS_MAX = 150_000;
const ROWS_MAX = 10_000;
/** Sources whose addresses are searched, those with the most messages. */
const SEARCHED_MAX = 40;
const NAMED_MAX = 3;

const ELSEWHERE = `SELECT ip.value ip, d.domain, s.key FROM json_each(?1) ip
  CROSS JOIN (SELECT number, domain FROM dmarc_domains WHERE account_id = ?2 AND mode = ?3 AND number <> ?4 AND deleted_at_ms IS NULL
    ORDER BY number LIMIT ?6) d
  CROSS JOIN dmarc_sources s INDEXED BY dmarc_sources_once
    ON s.domain = d.number AND s.key > ip.value || ' ' AND s.key < ip.value || '!' AND s.last_day >= ?5
  LIMIT ${ROWS_MAX}`;

type Candidate = Pick<
  Source,
  "key" | "kind" | "service_id" | "classification" | "classified_by" | "aligned" | "messages"
> & {
  readonly addresses: ReadonlyArray<Pick<Source["addresses"][number], "ip">>;
};

/** Finds senders without any tie to a domain that use other domains of the same account in From, too. */
export class StrangerStore {
  constructor(private readonly deps: Pick<Db, "sqlite">) {}

  /**
   * The keys of unclassified sources whose mail is never aligned, and whose addresses also sent mail under another domain of the
   * account since a day, where nothing of it was aligned either. Domains of other accounts are not read.
   */
  find(
    domain: Pick<DomainRow, "number" | "accountId" | "mode">,
    sources: readonly Candidate[],
    fromDay: number,
  ): ReadonlySet<string> {
    const candidates = sources
      .filter(isUntied)
      .toSorted((a, b) => b.messages - a.messages)
      .slice(0, SEARCHED_MAX);
    if (candidates.length < 2) return new Set();
    const ips = candidates.flatMap(({ addresses }) => addresses.map(({ ip }) => ip));
    const domainsMax = Math.floor(LOOKUPS_MAX / Math.max(1, ips.length));
    const rows = this.deps.sqlite
      .query<{ ip: string; domain: string; key: string }, [string, string, string, number, number, number]>(ELSEWHERE)
      .all(JSON.stringify(ips), domain.accountId, domain.mode, domain.number, fromDay, domainsMax);
    const places = Map.groupBy(rows, (row) => `${row.ip} ${row.domain}`);
    const elsewhere = new Set(
      [...places.values()].flatMap((of) =>
        of.some(({ key, domain: name }) => isTied(key, name)) ? [] : (of[0]?.ip ?? []),
      ),
    );
    return new Set(
      candidates.flatMap(({ key, addresses }) => (addresses.some(({ ip }) => elsewhere.has(ip)) ? key : [])),
    );
  }
}

/** A service that sends for customers may be the domain's own supplier. */
const isUntied = ({ kind, service_id, classification, classified_by, aligned }: Candidate) =>
  classification === "unknown" &&
  classified_by === "service" &&
  aligned === 0 &&
  kind !== "own" &&
  kind !== "unauthenticated" &&
  !isSendingService(service_id);

const isTied = (key: string, domain: string) => {
  const { signer, envelope } = readSourceKey(key);
  return signer !== null || (envelope !== null && isSameOrganisation(envelope, domain));
};

type Bundled = Pick<
  Source,
  "key" | "name" | "messages" | "aligned" | "forwarded" | "authenticated_unaligned" | "first_day" | "last_day"
>;

/** The sources with those of some keys as one, in which `bundled` has their names; as they are where it is a single one. */
export const bundleStrangers = <T extends Bundled>(
  sources: readonly T[],
  keys: ReadonlySet<string>,
): readonly (T & { readonly bundled?: readonly string[] })[] => {
  const strangers = sources.filter(({ key }) => keys.has(key)).toSorted((a, b) => b.messages - a.messages);
  const [first] = strangers;
  if (first === undefined || strangers.length < 2) return sources;
  const names = strangers.slice(0, NAMED_MAX).map(({ name }) => name);
  const days = strangers.flatMap(({ first_day, last_day }) => [first_day, last_day]).toSorted();
  const bundle = {
    ...first,
    name: `A group of ${strangers.length} senders (${names.join(", ")}${strangers.length > NAMED_MAX ? ", …" : ""})`,
    messages: sumOf(strangers, "messages"),
    aligned: 0,
    forwarded: sumOf(strangers, "forwarded"),
    authenticated_unaligned: sumOf(strangers, "authenticated_unaligned"),
    first_day: days[0] ?? first.first_day,
    last_day: days.at(-1) ?? first.last_day,
    bundled: strangers.map(({ name }) => name),
  };
  return [...sources.filter(({ key }) => !keys.has(key)), bundle];
};
