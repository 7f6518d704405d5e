import { DAY_MS } from "../../../foundation/base/days.ts";
import type { dmarcMtaSts } from "../../../foundation/db/schema-dmarc.ts";
import { isPolicyHost, MAX_AGE_S, type PolicyMode, policyTextOf } from "./policy-text.ts";

/** A policy that this service serves. */
export type HostedPolicy = Readonly<typeof dmarcMtaSts.$inferSelect>;
export type PolicyChange = Partial<Omit<HostedPolicy, "domain">>;

/** What the DNS says about a domain; null where it gave no definite response. */
export interface PolicyObservation {
  /** The exchanges of the MX records. */
  readonly exchanges: readonly string[] | null;
  /** The id in the TXT record; empty without exactly one record. */
  readonly publishedId: string | null;
}

const MINUTE_MS = 60_000;
const EVERY_MS = 60 * MINUTE_MS;
const CONFIRM_EVERY_MS = 5 * MINUTE_MS;
const FAILED_EVERY_MS = 15 * MINUTE_MS;
/** MX records count when two responses that are this far apart agree. */
const CONFIRMED_MS = 4 * MINUTE_MS;
/**
 * A host stays in the policy for this long after it left the MX records: resolvers keep old MX records for up to a week, and a sender that
 * still uses one would refuse to deliver.
 */
const LEAVES_MS = 7 * DAY_MS;
/** Of a policy. Senders read 64 KiB. */
const HOSTS_MAX = 100;

/** The MX hosts that a policy can name, in order; null if one cannot be named, or they are too many. */
export const hostsOf = (exchanges: readonly string[]): readonly string[] | null => {
  const names = exchanges.map((exchange) => exchange.toLowerCase().replace(/(?<=.)\.$/, ""));
  const hosts = [...new Set(names)].filter((name) => name !== ".").toSorted();
  return hosts.length <= HOSTS_MAX && hosts.every(isPolicyHost) ? hosts : null;
};

export const textOfPolicy = ({ mode, hosts }: Pick<HostedPolicy, "mode" | "hosts">): string =>
  policyTextOf(mode, hosts);

/**
 * What a check of the DNS changes. Pure. Without a definite response the policy stays as it is, also where there is no MX record: that would
 * make it invalid. New MX hosts are added when two responses agree; hosts that are gone leave seven days later.
 */
export const afterCheck = (policy: HostedPolicy, observed: PolicyObservation, nowMs: number): PolicyChange => {
  const published = observed.publishedId === null ? {} : { publishedId: observed.publishedId };
  if (observed.exchanges === null) return { ...published, problem: "dns_failure", dueAtMs: nowMs + FAILED_EVERY_MS };
  const seen = hostsOf(observed.exchanges);
  const checked = { ...published, checkedAtMs: nowMs };
  if (seen === null) return { ...checked, problem: "unusable_mx", dueAtMs: nowMs + EVERY_MS };
  const isSame = Bun.deepEquals(seen, policy.seen);
  const seenSinceMs = isSame ? Math.min(policy.seenSinceMs, nowMs) : nowMs;
  const isConfirmed = isSame && nowMs - seenSinceMs >= CONFIRMED_MS;
  const dueAtMs = nowMs + (isConfirmed ? EVERY_MS : CONFIRM_EVERY_MS);
  const facts = { ...checked, seen, seenSinceMs, dueAtMs };
  if (seen.length === 0) return { ...facts, problem: "no_mx" };
  const hosts = isConfirmed ? nextHosts(policy.hosts, seen, nowMs - seenSinceMs) : policy.hosts;
  const isChanged = textOfPolicy({ ...policy, hosts }) !== textOfPolicy(policy);
  return { ...facts, problem: null, hosts, ...(isChanged ? { sinceMs: nowMs } : {}) };
};

const nextHosts = (hosts: readonly string[], seen: readonly string[], sameForMs: number): readonly string[] => {
  const all = [...new Set([...hosts, ...seen])].toSorted();
  return sameForMs >= LEAVES_MS || all.length > HOSTS_MAX ? seen : all;
};

/** A new policy. */
export const newPolicy = (
  domain: number,
  { mode, hosts, publishedId }: Pick<HostedPolicy, "mode" | "hosts" | "publishedId">,
  nowMs: number,
): HostedPolicy => ({
  domain,
  mode,
  modeSinceMs: nowMs,
  hosts,
  sinceMs: nowMs,
  seen: hosts,
  seenSinceMs: nowMs,
  publishedId,
  problem: null,
  checkedAtMs: nowMs,
  dueAtMs: nowMs + CONFIRM_EVERY_MS,
  enforcedUntilMs: null,
});

/** What another mode changes: senders keep an enforced policy until its age is reached (RFC 8461 §8.3). */
export const afterMode = (policy: HostedPolicy, mode: PolicyMode, nowMs: number): PolicyChange => {
  if (mode === policy.mode) return {};
  const enforcedUntilMs = policy.mode === "enforce" ? nowMs + MAX_AGE_S.enforce * 1_000 : policy.enforcedUntilMs;
  return { mode, modeSinceMs: nowMs, sinceMs: nowMs, enforcedUntilMs: mode === "enforce" ? null : enforcedUntilMs };
};

/** Until when the policy must be served; null when hosting can end. */
export const servedUntilMs = ({ enforcedUntilMs }: Pick<HostedPolicy, "enforcedUntilMs">, nowMs: number) =>
  enforcedUntilMs !== null && enforcedUntilMs > nowMs ? enforcedUntilMs : null;
