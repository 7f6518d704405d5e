import { isSameOrganisation, organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import type { EffectivePolicy, InheritedRecord } from "./discovery.ts";
import { mailtoUri, type ReportUri, reportAddress } from "./rua.ts";

/** A new record, and what its publisher should know. */
export interface CreatedRecord {
  readonly value: string;
  /** The domain whose policy is copied; null where there is none. */
  readonly inheritedFrom: string | null;
  /** Copied destinations that must authorize the new policy domain before receivers report to them (RFC 9990 §4). */
  readonly externalDestinations: readonly string[];
}

const PERCENT_ALL = 100;

/**
 * Writes the record that a domain without one should publish, with our address in `rua`.
 *
 * Where nothing applies to the domain yet that is `p=none`. For a domain that inherits a policy that would be weaker, so its record
 * copies what applies today: policy, test mode, alignment, and the destinations of aggregate reports. `sp` and `np` are copied
 * for an organizational domain, because names below it follow its new record; otherwise receivers ignore them (RFC 9989
 * §4.10.1).
 */
export const createRecordFor = (domain: string, ours: string, inherited: InheritedRecord | null): CreatedRecord => {
  if (inherited === null) {
    return { value: `v=DMARC1; p=none; rua=${mailtoUri(ours)}`, inheritedFrom: null, externalDestinations: [] };
  }
  const { policy, record, from } = inherited;
  const destinations = record.values.rua.filter((uri) => canBeCopied(uri) && uri.address !== reportAddress(ours));
  const tags = [
    "v=DMARC1",
    `p=${policy.p}`,
    ...(isOrganisational(domain, inherited) ? policiesBelow(policy) : []),
    ...(policy.t === "y" ? ["t=y"] : []),
    ...(policy.adkim === "s" ? ["adkim=s"] : []),
    ...(policy.aspf === "s" ? ["aspf=s"] : []),
    // Otherwise receivers of RFC 7489 would enforce the policy for all mail instead of a part.
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

/** `sp` and `np` where they differ from their defaults, `p` for `sp` and `sp` for `np`. */
const policiesBelow = ({ p, sp, np }: EffectivePolicy): readonly string[] => [
  ...(sp === p ? [] : [`sp=${sp}`]),
  ...(np === sp ? [] : [`np=${np}`]),
];

const canBeCopied = ({ problem }: ReportUri): boolean => problem === null || problem === "uri_not_mailto";

const isExternal = (domain: string, address: string): boolean =>
  !isSameOrganisation(domain, address.slice(address.lastIndexOf("@") + 1));
