import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { Classification, SourceAddress, SourceWord, Totals } from "./reading-store.ts";
import type { Service } from "../services/services.ts";
import { classifySource, type ReverseFinding } from "./source-class.ts";
import { isGenericName, networkOf } from "./source-groups.ts";
import type { SourceKind } from "./source-view.ts";

/** An address, and when the first report of it was taken in. */
export interface SeenAddress extends SourceAddress {
  readonly firstSeenAtMs: number;
}

/** Stored sources that are shown as one. What is not a sum of a range is of all times. */
export interface Group {
  readonly key: string;
  /** Of the range that was asked for. */
  totals: Totals;
  firstDay: number;
  lastDay: number;
  readonly addresses: SeenAddress[];
}

/** What a domain's sources are judged with. */
export interface Surroundings {
  /** The organisational domain of the monitored one. */
  readonly organisation: string;
  /** Networks that mail with a signature or envelope of the domain's own comes from. */
  readonly ownNetworks: ReadonlySet<string>;
  /** Networks of other addresses that aligned mail comes from, by the reporters' word. */
  readonly alignedNetworks: ReadonlySet<string>;
  /** What was last seen before this day stayed away while reports told of seven days. */
  readonly quietSinceDay: number;
  readonly words: ReadonlyMap<string, SourceWord>;
}

/** A burst begins and ends within so many days. */
const BURST_DAYS = 3;

/** The organisational domain of a name; the name itself where it has none. */
export const organisationOf = (name: string): string => organisationalDomain(name) ?? name;

/** What the service takes a source for. */
export const judge = (
  { totals, addresses, firstDay, lastDay }: Group,
  { kind, name, service }: { readonly kind: SourceKind; readonly name: string; readonly service: Service | null },
  { organisation, ownNetworks, alignedNetworks, quietSinceDay }: Surroundings,
): Classification => {
  const networks = new Set(addresses.map(({ ip }) => networkOf(ip)));
  const { messages, aligned, forwarded, authenticated } = totals;
  return classifySource({
    ...{ kind, service, messages, aligned, forwarded, authenticated },
    isOwn: kind !== "network" && organisationOf(name) === organisation,
    isNearOwn: !networks.isDisjointFrom(ownNetworks),
    isSpokenFor:
      !networks.isDisjointFrom(alignedNetworks) ||
      addresses.some(({ name: reverse }) => reverse !== null && organisationOf(reverse) === organisation),
    isBurst: lastDay - firstDay < BURST_DAYS && lastDay < quietSinceDay,
    reverse: reverseOf(addresses),
  });
};

const reverseOf = (addresses: readonly SourceAddress[]): ReverseFinding => {
  if (addresses.length === 0 || addresses.some(({ isAsked }) => !isAsked)) return "unasked";
  const names = addresses.filter(({ name, isConfirmed }) => name !== null && isConfirmed);
  if (names.length === 0) return "absent";
  return names.every(({ name, ip }) => isGenericName(name ?? "", ip)) ? "generic" : "named";
};

/**
 * The user's word about a source: its own. A reverse name has that of its networks, from the time when it was not known
 * yet, if all its addresses were seen in them before the word was given, and all that was said is the same. Whoever comes
 * to a network later is not meant. Null when there is none.
 */
export const wordOf = ({ key, addresses }: Group, words: Surroundings["words"]): Classification | null => {
  const own = words.get(key);
  if (own !== undefined || !key.startsWith("ptr:") || words.size === 0) return own?.classification ?? null;
  const said = new Set<Classification | null>();
  for (const { ip, firstSeenAtMs } of addresses) {
    const word = words.get(`net:${networkOf(ip)}`);
    said.add(word !== undefined && firstSeenAtMs <= word.atMs ? word.classification : null);
  }
  const [first = null] = said;
  return said.size === 1 ? first : null;
};
