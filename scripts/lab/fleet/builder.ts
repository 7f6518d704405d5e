import type { Addresses } from "./addresses.ts";
import type { DnsChange, DomainPlan, Stream } from "./plan.ts";
import { rarely } from "./plan.ts";
import { MANY } from "./reporters.ts";
import { botnet } from "./strangers.ts";

/** What may differ from a domain with p=none, its own keys and mail, of which all reporters tell. */
interface Given extends Partial<Omit<DomainPlan, "name" | "theme" | "streams">> {
  readonly streams: readonly Stream[];
  /** Selectors of its keys; `sel._domainkey.sub` for one of a name below. */
  readonly selectors?: readonly string[];
  readonly spf?: string;
  /** Names below that exist. */
  readonly names?: readonly string[];
}

const BEFORE = -100;
const BACKGROUND_HOSTS = 150;

/** Makes the plans of domains. `key` is the text of a good key record. */
export const createBuilder = (addresses: Addresses, key: string) => ({
  addresses,
  key,
  plan(name: string, theme: string, given: Given): DomainPlan {
    const { selectors = [], spf = "v=spf1 include:_spf.google.com ~all", names = [], dns = [], ...rest } = given;
    const keys = selectors.map((selector): DnsChange => {
      const host = selector.includes("._domainkey") ? `${selector}.${name}` : `${selector}._domainkey.${name}`;
      return { day: BEFORE, name: host, records: { TXT: [key] } };
    });
    const below = ["www", ...names].map((label): DnsChange => ({
      day: BEFORE,
      name: `${label}.${name}`,
      records: { A: ["88.99.12.7"] },
    }));
    const apex: DnsChange = {
      ...{ day: BEFORE, name },
      records: { A: ["88.99.12.7"], MX: [{ preference: 10, exchange: `mx.${name}` }], TXT: [spf] },
    };
    return {
      ...{ name, theme, record: () => "p=none; {rua}", reporters: MANY, events: [], checkpoints: [] },
      ...rest,
      dns: [apex, ...keys, ...below, ...dns],
    };
  },
  /** What every domain meets: a forged message now and then. */
  noise: (domain: string, probability: number): Stream =>
    botnet(addresses, { domain, volume: rarely(probability, 3), addresses: BACKGROUND_HOSTS, aDay: 3 }),
});

export type Builder = ReturnType<typeof createBuilder>;
