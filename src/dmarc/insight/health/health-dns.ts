import { Gate } from "../../../foundation/base/wait.ts";
import { type DnsResolver, type DnsResponse, type DnsType, emptyResponse } from "../../../foundation/net/dns.ts";

/** A resolver for one run: each query is sent once, with a limit on concurrent queries and on all queries. */
export interface HealthDns {
  resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>>;
}

/** DNS queries of one run. SPF may take 40 of them, 30 selectors one each. */
export const HEALTH_QUERIES_MAX = 100;
const CONCURRENCY_MAX = 8;

/** The outcome of a query beyond `HEALTH_QUERIES_MAX` is `overloaded`; it is not sent. */
export const createHealthDns = (resolver: DnsResolver): HealthDns => {
  const sent = new Map<string, Promise<DnsResponse>>();
  const gate = new Gate(CONCURRENCY_MAX);
  return {
    resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const key = `${type} ${name.toLowerCase()}`;
      // The key holds the type, so the response is of that type.
      const known = sent.get(key) as Promise<DnsResponse<T>> | undefined;
      if (known !== undefined) return known;
      if (sent.size >= HEALTH_QUERIES_MAX) return Promise.resolve(emptyResponse(name, type, "overloaded"));
      const response = gate.run(() => resolver.resolve(name, type));
      sent.set(key, response as Promise<DnsResponse>);
      return response;
    },
  };
};
