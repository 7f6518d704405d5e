import { sumBy } from "../../../foundation/base/sums.ts";
import { organisationOf } from "./source-identity.ts";
import { OWN_KEY, type KeyedSource } from "./source-keys.ts";
import type { SourceAddress } from "./rollup-rows.ts";

/** A host passes at this share of aligned mail, without what receivers recognized as forwarded. */
const PASSING_SHARE = 0.9;

interface HostCounts {
  readonly messages: number;
  readonly aligned: number;
  /** Failing messages that receivers recognized as forwarded. */
  readonly forwarded: number;
}

/** Whether less than 90 % of the mail of a host is aligned. A host without mail does not fail. */
export const isFailingHost = ({ messages, aligned, forwarded }: HostCounts): boolean =>
  messages - forwarded > 0 && aligned < (messages - forwarded) * PASSING_SHARE;

const hostOf = ({ evidence: { ip } }: KeyedSource) => ip ?? "";

/**
 * The numbers of the stored sources of own servers that fail in the range, where other own servers pass; none where all pass or all
 * fail, because they are one source then. A host counts by all of its mail in the range: one that was fixed passes as soon as 90 % of
 * its mail in the range is aligned. Where trusted reports name own servers, their counts decide.
 */
export const findFailingOwn = (keyed: readonly KeyedSource[]): ReadonlySet<number> => {
  const { own, isVouched } = ownSources(keyed);
  const hosts = new Map<string, HostCounts>();
  for (const member of own) {
    const counts = countsOf(member, isVouched);
    const before = hosts.get(hostOf(member));
    hosts.set(hostOf(member), before === undefined ? counts : addCounts(before, counts));
  }
  const failing = new Set([...hosts].flatMap(([host, counts]) => (isFailingHost(counts) ? [host] : [])));
  if (failing.size === 0 || failing.size === hosts.size) return new Set();
  return new Set(own.flatMap((member) => (failing.has(hostOf(member)) ? [member.number] : [])));
};

const ownSources = (keyed: readonly KeyedSource[]) => {
  const own = keyed.filter(({ shownKey, totals }) => shownKey === OWN_KEY && totals.messages > 0);
  return { own, isVouched: own.some(({ trusted }) => trusted.messages > 0) };
};

const countsOf = ({ trusted, totals, isPlausible }: KeyedSource, isVouched: boolean): HostCounts => {
  const counts = isVouched ? trusted : totals;
  return isPlausible ? counts : { ...counts, aligned: 0 };
};

const addCounts = (a: HostCounts, b: HostCounts): HostCounts => ({
  messages: a.messages + b.messages,
  aligned: a.aligned + b.aligned,
  forwarded: a.forwarded + b.forwarded,
});

/** One of the domain's own servers with its mail in a range. */
export interface OwnHost extends HostCounts {
  readonly ip: string;
  /** The confirmed reverse name; null when there is none or it is not known. */
  readonly name: string | null;
  /** Whether its reverse name was looked up. */
  readonly isAsked: boolean;
  readonly department: string | null;
  readonly failing: number;
  readonly isFailing: boolean;
  /** The first and last day in any report, whatever the range. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** The numbers of its stored sources. */
  readonly numbers: readonly number[];
}

/** The part of a host name up to the department: `chemie.uni.example` of `www.lab3.chemie.uni.example`. */
export const departmentOf = (name: string): string => {
  const organisation = organisationOf(name);
  const below = name.endsWith(`.${organisation}`) ? name.slice(0, -organisation.length - 1).split(".") : [];
  return below.length < 2 ? organisation : `${below.at(-1)}.${organisation}`;
};

/** The own servers with mail in the range: those with the most failing messages first, then the most messages, then by address. */
export const listOwnHosts = (
  keyed: readonly KeyedSource[],
  addresses: ReadonlyMap<string, SourceAddress>,
): readonly OwnHost[] => {
  const { own, isVouched } = ownSources(keyed);
  const known = own.filter(({ evidence: { ip } }) => ip !== null);
  return [...Map.groupBy(known, hostOf)]
    .map(([ip, members]) => hostRow(members, { ip, address: addresses.get(ip) ?? null, isVouched }))
    .toSorted((a, b) => b.failing - a.failing || b.messages - a.messages || (a.ip < b.ip ? -1 : 1));
};

interface HostFacts {
  readonly ip: string;
  readonly address: SourceAddress | null;
  readonly isVouched: boolean;
}

const hostRow = (members: readonly KeyedSource[], { ip, address, isVouched }: HostFacts): OwnHost => {
  const counts = {
    messages: sumBy(members, ({ totals }) => totals.messages),
    aligned: sumBy(members, ({ totals }) => totals.aligned),
    forwarded: sumBy(members, ({ totals }) => totals.forwarded),
  };
  const name = address?.isConfirmed === true ? address.name : null;
  return {
    ...counts,
    ip,
    name,
    isAsked: address?.isAsked ?? false,
    department: name === null ? null : departmentOf(name),
    failing: counts.messages - counts.aligned,
    isFailing: isFailingHost(members.map((member) => countsOf(member, isVouched)).reduce(addCounts)),
    firstDay: Math.min(...members.map(({ firstDay }) => firstDay)),
    lastDay: Math.max(...members.map(({ lastDay }) => lastDay)),
    numbers: members.map(({ number }) => number),
  };
};
