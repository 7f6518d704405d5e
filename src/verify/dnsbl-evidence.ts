import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import { type Blocklist, isEnabled, severityOf } from "../dnsbl/blocklist.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import type { ListOutcome } from "../dnsbl/lookup.ts";
import type { Target } from "../dnsbl/query-name.ts";
import type { DnsblEvidence, DomainEvidence } from "./evidence.ts";

export interface DnsblCheckDeps {
  readonly dnsbl: Dnsbl;
  readonly lists: readonly Blocklist[];
  readonly clock: Clock;
}

/** A verdict does not wait longer than this for the blocklists; what is not there by then is unknown. */
const PATIENCE_MS = 2_000;
/** Longest wait for the turn at a list, so that its answer is still in time: who cannot have one sooner hears so at once. */
export const DNSBL_TURN_WAIT_MS = 1_000;
/** Addresses of mail hosts that are looked up; the first ones are those that are asked. */
const ADDRESSES_MAX = 3;
/** Many addresses of one domain need one lookup: what the lists said is known for so long. */
const KEEP_MS = 10 * 60_000;
const KEPT_MAX = 20_000;

const GRAVE: ReadonlySet<string> = new Set(["critical", "high"]);

/** Lists whose word is grave enough to lower what we say of an address: on by default, critical or high. */
const graveLists = (lists: readonly Blocklist[]): readonly Blocklist[] =>
  lists.filter((list) => isEnabled(list) && GRAVE.has(severityOf(list)));

interface Asked {
  readonly subject: string;
  readonly outcomes: readonly ListOutcome[];
}

const targetsOf = ({ name, hosts }: DomainEvidence): Target[] => {
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

const isAnswer = ({ outcome }: ListOutcome): boolean => outcome === "listed" || outcome === "not_listed";

/** A grave list has harmless entries too (a range that should not send mail): they are no reason to doubt an address. */
const summarise = (asked: readonly Asked[]): DnsblEvidence => {
  const listings = asked.flatMap(({ subject, outcomes }) =>
    outcomes
      .flatMap(({ listings: found }) => found.filter(({ severity }) => GRAVE.has(severity)))
      .map(({ id }) => ({ listing: id, subject })),
  );
  if (listings.length > 0) return { outcome: "listed", listings };
  return { outcome: asked.some(({ outcomes }) => outcomes.some(isAnswer)) ? "clean" : "unknown", listings: [] };
};

/**
 * Asks the blocklists about a domain and its mail hosts. Never rejects; `unknown` when none of them could say. Ends in
 * two seconds with what was heard by then.
 */
export const createDnsblCheck = ({ dnsbl, lists, clock }: DnsblCheckDeps) => {
  const grave = graveLists(lists);
  const kept = new Map<string, { readonly asked: Promise<Asked>; readonly atMs: number }>();

  const ask = async (target: Target): Promise<Asked> => {
    const outcomes: ListOutcome[] = [];
    const patience = new AbortController();
    const all = Promise.all(
      grave.map(async (list) => {
        outcomes.push(await dnsbl.lookup.check(target, list, { previous: [], signal: patience.signal }));
      }),
    );
    await new Promise<void>((resolve, reject) => {
      const cancel = clock.after(PATIENCE_MS, () => {
        patience.abort();
        resolve();
      });
      all.then(() => resolve(), reject).finally(cancel);
    });
    return { subject: target.value, outcomes: [...outcomes] };
  };

  const isWorthKeeping = ({ outcomes }: Asked): boolean => outcomes.length === grave.length && outcomes.some(isAnswer);

  const askOnce = (target: Target): Promise<Asked> => {
    const known = kept.get(target.value);
    if (known !== undefined && clock.monotonicMs() - known.atMs < KEEP_MS) return known.asked;
    const [oldest] = kept.keys();
    if (kept.size >= KEPT_MAX && oldest !== undefined) kept.delete(oldest);
    const entry = {
      atMs: clock.monotonicMs(),
      asked: ask(target).then((asked) => {
        if (!isWorthKeeping(asked) && kept.get(target.value) === entry) kept.delete(target.value);
        return asked;
      }),
    };
    kept.delete(target.value);
    kept.set(target.value, entry);
    return entry.asked;
  };

  return async (domain: DomainEvidence): Promise<DnsblEvidence> =>
    summarise(await Promise.all(targetsOf(domain).map(askOnce)));
};

export type DnsblCheck = ReturnType<typeof createDnsblCheck>;
