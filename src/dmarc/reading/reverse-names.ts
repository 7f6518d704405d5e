import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import { type DnsResolver, isDefinite } from "../../net/dns.ts";
import { createAddressPolicy } from "../../net/public-address.ts";
import { reverseQueryName } from "../../net/reverse-name.ts";
import type { ReverseNameStore } from "./reverse-names-store.ts";

export interface ReverseNamesDeps {
  readonly db: Db;
  readonly store: ReverseNameStore;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ceilings of one run. */
export const REVERSE_LIMITS = { addressesMax: 1_000, atOnceMax: 32, namesMax: 10, timeoutMs: 5_000 } as const;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FOUND_MS = 30 * DAY_MS;
const NONE_MS = 7 * DAY_MS;
const FAILURE_MS = HOUR_MS;
const FAILURE_MS_MAX = DAY_MS;
/** Addresses that the DNS of the world says nothing about. */
const NEVER_MS = 365 * DAY_MS;
/** Addresses whose failures are counted; beyond, all counts begin anew. */
const FAILURES_MAX = 10_000;
/** Answers written at one go. */
const BATCH = 128;

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})+$/;

/** `failed`: the DNS did not say; `aborted`: we did not listen; `private`: not to be asked. */
type Finding = { readonly name: string | null; readonly isConfirmed: boolean } | "failed" | "aborted" | "private";

/**
 * Finds the reverse names of addresses, and whether they lead back (RFC 8601 §3, `iprev`): off the path of ingestion, and
 * kept for weeks. What the DNS does not say changes nothing of what is known.
 */
export const createReverseNames = ({ db, store, resolver, clock, log }: ReverseNamesDeps) => {
  const { isAllowed } = createAddressPolicy([]);
  const stopping = new AbortController();
  const failures = new Map<string, number>();
  const patience = { timeoutMs: REVERSE_LIMITS.timeoutMs, signal: stopping.signal };

  const leadsTo = async (name: string, ip: string): Promise<boolean | null> => {
    const { outcome, records } = await resolver.resolve(name, isIP(ip) === 4 ? "A" : "AAAA", patience);
    if (!isDefinite(outcome)) return null;
    return records.some((address) => ipaddr.process(address).toString() === ip);
  };

  const lookUp = async (ip: string): Promise<Finding> => {
    if (isIP(ip) === 0 || !isAllowed(ip)) return "private";
    const { outcome, records } = await resolver.resolve(reverseQueryName(ip), "PTR", patience);
    if (stopping.signal.aborted) return "aborted";
    if (!isDefinite(outcome)) return "failed";
    const names = records.filter((name) => HOST_NAME.test(name)).slice(0, REVERSE_LIMITS.namesMax);
    const answers = await Promise.all(names.map((name) => leadsTo(name, ip)));
    if (stopping.signal.aborted) return "aborted";
    const confirmed = names[answers.indexOf(true)];
    if (confirmed !== undefined) return { name: confirmed, isConfirmed: true };
    return answers.includes(null) ? "failed" : { name: names[0] ?? null, isConfirmed: false };
  };

  /** A bug about one address must not keep the others waiting: it is logged, and the address is asked for again later. */
  const lookUpIsolated = async (ip: string): Promise<Finding> => {
    try {
      return await lookUp(ip);
    } catch (cause) {
      log.error("the reverse name of an address could not be looked up", { ip, cause });
      return "failed";
    }
  };

  /** An hour, and twice as long at each further failure, up to a day. Forgotten at a restart. */
  const nextTryMs = (ip: string): number => {
    const before = failures.get(ip) ?? 0;
    if (failures.size >= FAILURES_MAX) failures.clear();
    failures.set(ip, before + 1);
    return Math.min(FAILURE_MS * 2 ** before, FAILURE_MS_MAX);
  };

  /** When the DNS is to be asked again; null when nothing was found out, not even that it fails. */
  const dueAfterMs = (ip: string, finding: Finding): number | null => {
    if (finding === "aborted") return null;
    if (finding === "failed") return nextTryMs(ip);
    failures.delete(ip);
    if (finding === "private") return NEVER_MS;
    return finding.isConfirmed ? FOUND_MS : NONE_MS;
  };

  const write = async (found: ReadonlyArray<readonly [ip: string, finding: Finding]>): Promise<void> => {
    const askedAtMs = clock.nowMs();
    const due = found.map(([ip, finding]) => ({ ip, finding, afterMs: dueAfterMs(ip, finding) }));
    await db.commit((tx) => {
      for (const { ip, finding, afterMs } of due) {
        if (afterMs === null) continue;
        const dueAtMs = askedAtMs + afterMs;
        if (typeof finding === "string") store.postpone(tx, ip, dueAtMs);
        else store.save(tx, { ip, ...finding, askedAtMs, dueAtMs });
      }
    });
  };

  const askAll = async (ips: readonly string[]): Promise<void> => {
    const left = ips.values();
    let found: (readonly [string, Finding])[] = [];
    const takeTurns = async (): Promise<void> => {
      for (const ip of left) {
        if (stopping.signal.aborted) return;
        const finding = await lookUpIsolated(ip);
        found.push([ip, finding]);
        if (found.length < BATCH) continue;
        const full = found;
        found = [];
        await write(full);
      }
    };
    await Promise.all(Array.from({ length: REVERSE_LIMITS.atOnceMax }, takeTurns));
    if (found.length > 0) await write(found);
  };

  return {
    /** Asks for the reverse names whose time has come, 1,000 at most. */
    async run(): Promise<void> {
      if (stopping.signal.aborted) return;
      await askAll(store.due(clock.nowMs(), REVERSE_LIMITS.addressesMax));
    },
    /** Ends a run under way soon; none begins any more. What was not answered is asked again after the next start. */
    stop: (): void => stopping.abort(),
  };
};

export type ReverseNames = ReturnType<typeof createReverseNames>;
