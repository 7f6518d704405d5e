import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import { type Blocklist, isEnabled, severityOf } from "../dnsbl/blocklist.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import type { ListOutcome } from "../dnsbl/lookup.ts";
import type { DnsblEvidence, DomainEvidence } from "./evidence.ts";

export interface DnsblInquiryDeps {
  readonly dnsbl: Dnsbl;
  readonly lists: readonly Blocklist[];
  readonly clock: Clock;
}

/** A verdict does not wait longer than this for the blocklists; what is not there by then is unknown. */
const PATIENCE_MS = 2_000;
/** Addresses of mail hosts that are looked up; the first ones are those that are asked. */
const ADDRESSES_MAX = 3;

const GRAVE: ReadonlySet<string> = new Set(["critical", "high"]);

/** Lists whose word is grave enough to lower what we say of an address: on by default, critical or high. */
const graveLists = (lists: readonly Blocklist[]): readonly Blocklist[] =>
  lists.filter((list) => isEnabled(list) && GRAVE.has(severityOf(list)));

interface Asked {
  readonly subject: string;
  readonly outcomes: readonly ListOutcome[];
}

const targetsOf = ({ name, hosts }: DomainEvidence) => {
  const addresses = hosts.flatMap((host) =>
    host.addresses.filter(({ allowed }) => allowed).map(({ address }) => address),
  );
  const isDomain = !name.startsWith("[");
  return [
    ...(isDomain ? [{ kind: "domain" as const, value: name }] : []),
    ...[...new Set(addresses)]
      .slice(0, ADDRESSES_MAX)
      .map((value) => ({ kind: isIP(value) === 6 ? ("ipv6" as const) : ("ipv4" as const), value })),
  ];
};

const summarise = (asked: readonly Asked[]): DnsblEvidence => {
  const listings = asked.flatMap(({ subject, outcomes }) =>
    outcomes.flatMap(({ listings: found }) => found.map(({ id }) => ({ listing: id, subject }))),
  );
  if (listings.length > 0) return { outcome: "listed", listings };
  const answered = asked.some(({ outcomes }) => outcomes.some(({ outcome }) => outcome === "not_listed"));
  return { outcome: answered ? "clean" : "unknown", listings: [] };
};

/** Asks the blocklists about a domain and its mail hosts. Never rejects; `unknown` when none of them could say. */
export const createDnsblInquiry = ({ dnsbl, lists, clock }: DnsblInquiryDeps) => {
  const grave = graveLists(lists);

  return async function inquire(domain: DomainEvidence): Promise<DnsblEvidence> {
    const patience = new AbortController();
    const cancel = clock.after(PATIENCE_MS, () => patience.abort());
    const impatient = new Promise<null>((resolve) => patience.signal.addEventListener("abort", () => resolve(null)));
    const asking = targetsOf(domain).map(async (target): Promise<Asked> => {
      const outcomes = await dnsbl.lookup.checkAll(target, grave, { previous: [], signal: patience.signal });
      return { subject: target.value, outcomes };
    });
    const asked = await Promise.race([Promise.all(asking), impatient]);
    cancel();
    return asked === null ? { outcome: "unknown", listings: [] } : summarise(asked);
  };
};

export type DnsblInquiry = ReturnType<typeof createDnsblInquiry>;
