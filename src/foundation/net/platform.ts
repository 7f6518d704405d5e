import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/secrets.ts";
import type { Connector } from "./connector.ts";
import type { DnsResolver } from "./dns.ts";

/** What tests replace: clock, random numbers, DNS and connections. */
export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly resolver: DnsResolver;
  /** Connects directly, without a proxy. */
  readonly connector: Connector;
}
