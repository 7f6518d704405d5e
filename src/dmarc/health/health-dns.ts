import {
  type DnsOutcome,
  type DnsResponse,
  type DnsResolver,
  type DnsType,
  emptyResponse,
  isDefinite,
} from "../../net/dns.ts";
import { Gate } from "../../base/wait.ts";

/** A resolver for one run: each query is sent once, so many at a time and so many in all. */
export interface HealthDns {
  resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>>;
}

/** DNS queries of one run. SPF may take 40 of them, 30 selectors one each. */
export const HEALTH_QUERIES_MAX = 100;
const AT_ONCE_MAX = 8;

/**
 * A resolver with the limits of one run. A query beyond `HEALTH_QUERIES_MAX` is answered `overloaded` without being sent.
 */
export const createHealthDns = (resolver: DnsResolver): HealthDns => {
  const sent = new Map<string, Promise<DnsResponse>>();
  const gate = new Gate(AT_ONCE_MAX);

  return {
    resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const key = `${type} ${name.toLowerCase()}`;
      // The key holds the type, so that what is found is a reply of that type.
      const before = sent.get(key) as Promise<DnsResponse<T>> | undefined;
      if (before !== undefined) return before;
      const isAllowed = sent.size < HEALTH_QUERIES_MAX;
      const reply = isAllowed
        ? gate.run(() => resolver.resolve(name, type))
        : Promise.resolve(emptyResponse(name, type, "overloaded"));
      if (isAllowed) sent.set(key, reply as Promise<DnsResponse>);
      return reply;
    },
  };
};

const OUTCOME_WORDS: Readonly<Record<Exclude<DnsOutcome, "answer" | "no_data" | "nxdomain">, string>> = {
  unconfirmed: "an unconfirmed empty response",
  servfail: "SERVFAIL",
  refused: "REFUSED",
  timeout: "a DNS timeout",
  malformed: "a malformed DNS response",
  network_error: "no DNS server could be reached",
  cname_loop: "a CNAME loop",
  invalid_name: "an invalid name",
  local_failure: "a local network failure",
  overloaded: "too many DNS queries",
  aborted: "the time limit was reached",
};

/** The sentence about a reply that says nothing about its name; null for one that does. */
export const uncheckedSentence = ({
  name,
  type,
  outcome,
}: Pick<DnsResponse, "name" | "type" | "outcome">): string | null => {
  if (isDefinite(outcome) || outcome === "invalid_name") return null;
  return `Could not be checked: ${OUTCOME_WORDS[outcome]} for ${name} ${type}.`;
};
