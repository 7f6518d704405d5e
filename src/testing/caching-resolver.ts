import type { Clock } from "../foundation/base/clock.ts";
import type { DnsResponse, DnsResolver, DnsType } from "../foundation/net/dns.ts";

/**
 * A resolver that caches the responses of another one and counts their TTL down, by name and type, as
 * unbound does. `flush` drops one name, all types of it.
 */
export const createCachingResolver = (
  upstream: DnsResolver,
  clock: Clock,
  ttlOf: (outcome: DnsResponse["outcome"]) => number,
): DnsResolver & { flush(name: string): void } => {
  const kept = new Map<string, { readonly reply: DnsResponse; readonly untilMs: number }>();
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const key = `${type} ${name}`;
      const known = kept.get(key);
      const nowMs = clock.monotonicMs();
      if (known !== undefined && nowMs < known.untilMs)
        return { ...known.reply, ttlS: Math.ceil((known.untilMs - nowMs) / 1000) } as DnsResponse<T>;
      const reply = await upstream.resolve(name, type);
      const isSaid = ["response", "no_data", "nxdomain"].includes(reply.outcome);
      const ttlS = isSaid ? ttlOf(reply.outcome) : 0;
      if (ttlS > 0) kept.set(key, { reply, untilMs: nowMs + ttlS * 1000 });
      return { ...reply, ttlS };
    },
    flush(name) {
      for (const key of kept.keys()) if (key.endsWith(` ${name}`)) kept.delete(key);
    },
  };
};
