import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { EffectivePolicy, InheritedRecord } from "./discovery.ts";
import { mailtoUri, type ReportUri, reportAddress } from "./rua.ts";

/** A new record, and what to tell whoever publishes it. */
export interface CreatedRecord {
  readonly value: string;
  /** The domain whose policy is taken over, null where there was none. */
  readonly inheritedFrom: string | null;
  /** Destinations taken over that must authorise the new policy domain before receivers report to them (RFC 9990 §4). */
  readonly externalDestinations: readonly string[];
}

const PERCENT_ALL = 100;

/**
 * Writes the record that a domain without one should publish, with our address in `rua`.
 *
 * Where nothing applies to the domain yet that is `p=none`. A domain that inherits a policy would be weakened by that, so its record
 * takes over what applies today: policy, test mode, alignment, and the destinations of aggregate reports. `sp` and `np` are taken
 * over where the domain is organisational, so that names below it follow its new record; else receivers ignore them (RFC 9989
 * §4.10.1).
 */
export const createRecordFor = (domain: string, ours: string, inherited: InheritedRecord | null): CreatedRecord => {
  if (inherited === null) {
    return { value: `v=DMARC1; p=none; rua=${mailtoUri(ours)}`, inheritedFrom: null, externalDestinations: [] };
  }
  const { policy, record, from } = inherited;
  const destinations = record.values.rua.filter((uri) => canBeTakenOver(uri) && uri.address !== reportAddress(ours));
  const tags = [
    "v=DMARC1",
    `p=${policy.p}`,
    ...(isOrganisational(domain, inherited) ? policiesBelow(policy) : []),
    ...(policy.t === "y" ? ["t=y"] : []),
    ...(policy.adkim === "s" ? ["adkim=s"] : []),
    ...(policy.aspf === "s" ? ["aspf=s"] : []),
    // Receivers of RFC 7489 would else enforce for all mail what they enforced for a part of it.
    ...(record.values.pct < PERCENT_ALL ? [`pct=${record.values.pct}`] : []),
    `rua=${[...destinations.map(({ text }) => text), mailtoUri(ours)].join(",")}`,
  ];
  const externalDestinations = destinations.flatMap(({ address }) =>
    address !== null && isExternal(domain, address) ? [address] : [],
  );
  return { value: tags.join("; "), inheritedFrom: from, externalDestinations };
};

/** By the tree walk a child of a public suffix that says `psd=y` (RFC 9989 §4.10.2); by the public suffix list for older receivers. */
const isOrganisational = (domain: string, { from, record }: InheritedRecord): boolean =>
  (record.values.psd === "y" && domain.slice(domain.indexOf(".") + 1) === from) ||
  organisationalDomain(domain) === domain;

/** What must be said of names below, because it is not what receivers take when nothing is said: `p` for `sp`, `sp` for `np`. */
const policiesBelow = ({ p, sp, np }: EffectivePolicy): readonly string[] => [
  ...(sp === p ? [] : [`sp=${sp}`]),
  ...(np === sp ? [] : [`np=${np}`]),
];

const canBeTakenOver = ({ problem }: ReportUri): boolean => problem === null || problem === "uri_not_mailto";

const isExternal = (domain: string, address: string): boolean => {
  const host = address.slice(address.lastIndexOf("@") + 1);
  const organisation = organisationalDomain(domain) ?? domain;
  return host !== domain && (organisationalDomain(host) ?? host) !== organisation;
};
