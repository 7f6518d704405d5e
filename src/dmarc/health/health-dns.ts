import {
  type DnsOutcome,
  type DnsResponse,
  type DnsResolver,
  type DnsType,
  emptyResponse,
  isDefinite,
} from "../../net/dns.ts";

/** A resolver for one run: each query is sent once, so many at a time and so many in all. */
export interface HealthDns {
  resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>>;
}

export interface HealthDnsOptions {
  readonly resolver: DnsResolver;
  /** Ends the run: what is not answered by then is `aborted`. */
  readonly signal: AbortSignal;
}

/** DNS queries of one run. SPF may take 40 of them, 30 selectors one each. */
export const HEALTH_QUERIES_MAX = 100;
const AT_ONCE_MAX = 8;

/**
 * A resolver with the limits of one run. A query beyond `HEALTH_QUERIES_MAX` is answered `overloaded` without being sent; after
 * the signal fires everything is `aborted`, whether or not the resolver behind it listens to it.
 */
export const createHealthDns = ({ resolver, signal }: HealthDnsOptions): HealthDns => {
  const sent = new Map<string, Promise<DnsResponse>>();
  const waiting: Array<() => void> = [];
  let running = 0;
  const { promise: ended, resolve: end } = Promise.withResolvers<null>();
  signal.addEventListener("abort", () => end(null), { once: true });
  if (signal.aborted) end(null);

  const turn = (): Promise<void> => {
    running += 1;
    return running <= AT_ONCE_MAX ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve));
  };
  const leave = (): void => {
    running -= 1;
    waiting.shift()?.();
  };

  const send = async <T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> => {
    await turn();
    try {
      const reply = await Promise.race([resolver.resolve(name, type, { signal }), ended]);
      return reply ?? emptyResponse(name, type, "aborted");
    } finally {
      leave();
    }
  };

  return {
    resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const key = `${type} ${name.toLowerCase()}`;
      // The key holds the type, so that what is found is a reply of that type.
      const before = sent.get(key) as Promise<DnsResponse<T>> | undefined;
      if (before !== undefined) return before;
      const isAllowed = sent.size < HEALTH_QUERIES_MAX;
      const reply = isAllowed ? send(name, type) : Promise.resolve(emptyResponse(name, type, "overloaded"));
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
