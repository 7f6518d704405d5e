import type { DnsResolver } from "../../foundation/net/dns.ts";
import { type Blocklist, zoneOf, type TestPoint, maskKey } from "./blocklist.ts";
import { type DecodedResponse, decodeResponse } from "./decode.ts";
import { DAY_MS } from "../../foundation/base/days.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { wait } from "../../foundation/base/wait.ts";
import { type Result, err, ok } from "../../foundation/base/errors.ts";

/** The response of a list to one query. */
export interface ListResponse {
  /** The name that was queried; a key in it is masked. */
  readonly queryName: string;
  /** The A records as received. */
  readonly returnCodes: readonly string[];
  readonly decoded: DecodedResponse;
  /** Remaining TTL in seconds; 0 when the response has none. */
  readonly ttlS: number;
}

/** The responses for all query names of a target (host, registrable domain) as one. */
export interface TargetResponse extends Omit<ListResponse, "queryName"> {
  readonly queryNames: readonly string[];
  /** The prefix that decided the outcome. */
  readonly prefix: string;
}

/**
 * Record types that show whether a name exists. Resolvers cache each type separately, so such a query reaches the list
 * although the A record is cached.
 */
export const PRESENCE_TYPES = ["TXT", "AAAA", "MX", "NS", "PTR", "SOA"] as const;
export type PresenceType = (typeof PRESENCE_TYPES)[number];

/**
 * Whether a name exists: `records` and `no_records` (NOERROR without a record) mean that it may, `absent` (NXDOMAIN) that
 * it does not. `unknown`: no usable response. A server may return `no_records` for names that do not exist: compare with
 * a random name.
 */
export interface NamePresence {
  readonly kind: "records" | "no_records" | "absent" | "unknown";
  readonly ttlS: number;
}

const TEXT_CHARACTERS_MAX = 500;
const TEXT_RECORDS_MAX = 4;
const TEXT_TIMEOUT_MS = 5000;

/** Sends queries to lists, within their budgets. No method rejects for anything that a list, a resolver or a budget does. */
export class ListClient {
  constructor(
    private readonly resolver: DnsResolver,
    private readonly pacing: DnsblPacing,
  ) {}

  /** Queries the A records of a prefix (see `formQueries`). */
  async query(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<ListResponse> {
    const zone = zoneOf(list);
    if (zone === null) return notSent(prefix, `${list.name} requires a key.`);
    const name = `${prefix}.${zone}`;
    const queryName = maskKey(list, name);
    const permit = await this.pacing.acquire(list);
    if (!permit.ok) return notSent(queryName, permit.error.problem);
    const response = await this.resolver.resolve(name, "A", signal === undefined ? {} : { signal });
    return { queryName, returnCodes: response.records, decoded: decodeResponse(list, response), ttlS: response.ttlS };
  }

  /**
   * Queries every prefix of a target. One listed prefix makes the target listed; otherwise one unknown prefix makes it
   * unknown. A response outside 127.0.0.0/8 invalidates all others. `prefixes` is never empty.
   */
  async queryTarget(list: Blocklist, prefixes: readonly string[], signal?: AbortSignal): Promise<TargetResponse> {
    const responses = await Promise.all(
      prefixes.map(async (prefix) => ({ prefix, ...(await this.query(list, prefix, signal)) })),
    );
    const decisive = responses.toSorted((a, b) => precedenceOf(a.decoded) - precedenceOf(b.decoded))[0];
    if (decisive === undefined) throw new Error("A target without a query name.");
    return {
      prefix: decisive.prefix,
      decoded: decisive.decoded.outcome === "listed" ? mergeListings(responses) : decisive.decoded,
      queryNames: responses.map(({ queryName }) => queryName),
      returnCodes: [...new Set(responses.flatMap(({ returnCodes }) => returnCodes))],
      ttlS: Math.min(...responses.map(({ ttlS }) => ttlS)),
    };
  }

  /** Queries whether a name exists, by another record type than A. */
  async queryPresence(list: Blocklist, prefix: string, type: PresenceType): Promise<NamePresence> {
    const zone = zoneOf(list);
    if (zone === null || !(await this.pacing.acquire(list)).ok) return UNKNOWN;
    const { outcome, ttlS } = await this.resolver.resolve(`${prefix}.${zone}`, type, { timeoutMs: TEXT_TIMEOUT_MS });
    if (outcome === "response") return { kind: "records", ttlS };
    // Empty responses of a zone without an SOA record are never confirmed; a random name that is absent confirms them.
    if (outcome === "no_data" || outcome === "unconfirmed") return { kind: "no_records", ttlS };
    return outcome === "nxdomain" ? { kind: "absent", ttlS } : UNKNOWN;
  }

  /** Queries the list's explanation of a listing (TXT, RFC 5782 §2.1), a key in it masked; null when there is none. */
  async queryText(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<string | null> {
    const zone = zoneOf(list);
    if (zone === null || !(await this.pacing.acquire(list)).ok) return null;
    const options = { timeoutMs: TEXT_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) };
    const { records } = await this.resolver.resolve(`${prefix}.${zone}`, "TXT", options);
    const texts = records.slice(0, TEXT_RECORDS_MAX).map(printable);
    const text = maskKey(list, texts.filter((line) => line !== "").join(" ")).slice(0, TEXT_CHARACTERS_MAX);
    return text === "" ? null : text;
  }
}

const UNKNOWN: NamePresence = { kind: "unknown", ttlS: 0 };

const notSent = (queryName: string, reason: string): ListResponse => ({
  queryName,
  returnCodes: [],
  decoded: { outcome: "failed", cause: "not_sent", reason },
  ttlS: 0,
});

const printable = (text: string) => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

const PRECEDENCE = ["listed", "refused", "failed", "not_listed"] as const;

const precedenceOf = (decoded: DecodedResponse) =>
  decoded.outcome === "failed" && decoded.cause === "outside_loopback" ? -1 : PRECEDENCE.indexOf(decoded.outcome);

const mergeListings = (responses: readonly ListResponse[]): DecodedResponse => {
  const listings = responses.flatMap(({ decoded }) => (decoded.outcome === "listed" ? decoded.listings : []));
  return {
    outcome: "listed",
    listings: listings.filter(({ id }, index) => listings.findIndex((other) => other.id === id) === index),
  };
};

/**
 * How a list behaves through this resolver.
 *
 * - `healthy`: its test points are answered as documented, so "not listed" is reliable.
 * - `refused`: it does not accept our queries; see the remedy.
 * - `silent`: it has no entry for its own positive test point: the list is empty, or the resolver strips its responses.
 * - `wildcard`: it lists what cannot be listed, or returns addresses outside 127.0.0.0/8: the domain is parked, or the
 *   resolver rewrites responses.
 * - `unreachable`: no response, or responses for its test points only.
 * - `unknown`: no positive test point, an unrecognised response for it, or not tested yet.
 */
export type HealthState = "healthy" | "refused" | "silent" | "wildcard" | "unreachable" | "unknown";

/** The result of one test. `reason` is a sentence, null when healthy; `remedy` is what may help, null when nothing is known. */
export interface ListFinding {
  readonly state: HealthState;
  readonly reason: string | null;
  readonly remedy: string | null;
}

export const HEALTHY: ListFinding = { state: "healthy", reason: null, remedy: null };

/** Whether the response means that the list has an entry. */
export const hasEntry = ({ decoded }: ListResponse): boolean =>
  decoded.outcome === "listed" || (decoded.outcome === "failed" && decoded.cause === "unrecognised");

/** What the response for a positive test point says about its list; null when no query was sent. */
export const judgePositive = ({ value, answers: expected }: TestPoint, response: ListResponse): ListFinding | null => {
  const { decoded, returnCodes } = response;
  if (decoded.outcome === "listed" || returnCodes.some((code) => expected.includes(code))) return HEALTHY;
  if (decoded.outcome === "not_listed") {
    return {
      state: "silent",
      reason: `The list has no entry for its own test point ${value}: the list is empty, or your resolver strips its responses.`,
      remedy: "Use a resolver that does not strip addresses in 127.0.0.0/8 from responses (DNS rebinding protection).",
    };
  }
  return judgeFailure(response);
};

/** What the response for a negative test point says about its list; null when no query was sent. */
export const judgeNegative = (value: string, response: ListResponse): ListFinding | null =>
  hasEntry(response) ? wildcard(`${value}, which is never listed`, response) : judgeFailure(response);

/** The list has an entry for something that cannot be listed. */
export const wildcard = (what: string, { returnCodes }: ListResponse): ListFinding => ({
  state: "wildcard",
  reason: `The list returned ${returnCodes.join(", ")} for ${what}: it lists everything.`,
  remedy: null,
});

/** What a response that says nothing about a target says about its list; null when no query was sent. */
export const judgeFailure = ({ decoded }: ListResponse): ListFinding | null => {
  if (decoded.outcome === "refused") return { state: "refused", reason: decoded.reason, remedy: decoded.remedy };
  if (decoded.outcome !== "failed") return HEALTHY;
  switch (decoded.cause) {
    case "not_sent":
    case "unconfirmed":
      return null;
    case "outside_loopback":
      return { state: "wildcard", reason: decoded.reason, remedy: null };
    case "unreachable":
      return { state: "unreachable", reason: decoded.reason, remedy: null };
    case "unrecognised":
      return { state: "unknown", reason: decoded.reason, remedy: null };
    default:
      return decoded.cause satisfies never;
  }
};

/** Why a query cannot be sent now. `retryAfterMs` is when to try again. */
export interface BudgetExceeded {
  readonly kind: "budget_spent" | "queue_full";
  readonly problem: string;
  readonly retryAfterMs: number;
}

/** Paces queries: every query to a list, tests included, needs a permit. */
export interface DnsblPacing {
  /** Waits until one query may be sent. Fails at once when the daily budget is exhausted or the wait would be too long. */
  acquire(list: Blocklist): Promise<Result<null, BudgetExceeded>>;
}

/** Where the operator publishes no limit: well below published ones, without bursts. */
const QUERIES_PER_DAY_UNPUBLISHED = 100_000;
const SPACING_UNPUBLISHED_MS = 10;

/** Queries that may be sent to a list on one day (UTC). */
export const queriesPerDayOf = ({ budget }: Pick<Blocklist, "budget">): number =>
  budget.queriesPerDay ?? QUERIES_PER_DAY_UNPUBLISHED;

/** Callers have deadlines: a longer wait fails at once. */
const WAIT_MS_MAX = 30_000;

/** Counts the queries per list and day, beyond the life of a process. */
export interface BudgetLedger {
  /** Reserves up to `wanted` queries of a day (days since 1970, UTC) durably; returns how many of `most` were left. */
  reserve(listId: string, day: number, { wanted, most }: { readonly wanted: number; readonly most: number }): number;
}

/** Share of a daily budget that is reserved at once; what a process does not use of it is lost. */
const BLOCK_SHARE = 0.01;
const BLOCK_MAX = 1_000;

interface Account {
  day: number;
  /** Reserved queries that were not sent yet. */
  left: number;
  /** Monotonic time at which the next query may be sent. */
  nextSlotMs: number;
}

/** A ledger for processes without a database. */
export const createMemoryLedger = (): BudgetLedger => {
  const days = new Map<string, { readonly day: number; readonly reserved: number }>();
  return {
    reserve(listId, day, { wanted, most }) {
      const known = days.get(listId);
      const reserved = known?.day === day ? known.reserved : 0;
      const granted = Math.max(0, Math.min(wanted, most - reserved));
      days.set(listId, { day, reserved: reserved + granted });
      return granted;
    },
  };
};

/**
 * Keeps to the published budgets: queries a day (UTC) and a pause between two. Queries are reserved in the ledger in
 * blocks before they are sent, so a restart or crash never exceeds the budget.
 */
export const createDnsblPacing = ({
  clock,
  ledger = createMemoryLedger(),
  waitMsMax = WAIT_MS_MAX,
}: {
  clock: Clock;
  ledger?: BudgetLedger;
  waitMsMax?: number;
}): DnsblPacing => {
  const accounts = new Map<string, Account>();

  const accountOf = (id: string, day: number): Account => {
    const known = accounts.get(id);
    const account = known ?? { day, left: 0, nextSlotMs: 0 };
    if (known === undefined) accounts.set(id, account);
    if (account.day !== day) {
      account.day = day;
      account.left = 0;
    }
    return account;
  };

  return {
    async acquire(list) {
      const { id, name, budget } = list;
      const nowMs = clock.nowMs();
      const day = Math.floor(nowMs / DAY_MS);
      const account = accountOf(id, day);
      const perDay = queriesPerDayOf(list);
      if (account.left === 0) {
        const wanted = Math.min(BLOCK_MAX, Math.max(1, Math.floor(perDay * BLOCK_SHARE)));
        account.left = ledger.reserve(id, day, { wanted, most: perDay });
      }
      if (account.left === 0) {
        const problem = `The daily budget of ${perDay} queries to ${name} is exhausted.`;
        return err({ kind: "budget_spent", problem, retryAfterMs: DAY_MS - (nowMs % DAY_MS) });
      }
      const waitMs = Math.max(0, account.nextSlotMs - clock.monotonicMs());
      if (waitMs > waitMsMax) {
        return err({ kind: "queue_full", problem: `Too many queries to ${name} are waiting.`, retryAfterMs: waitMs });
      }
      account.left -= 1;
      account.nextSlotMs = clock.monotonicMs() + waitMs + (budget.spacingMs ?? SPACING_UNPUBLISHED_MS);
      if (waitMs > 0) await wait(clock, waitMs);
      return ok(null);
    },
  };
};

/** No budgets and no pauses: for measurements and your own lists only. */
export const noPacing: DnsblPacing = { acquire: () => Promise.resolve(ok(null)) };
