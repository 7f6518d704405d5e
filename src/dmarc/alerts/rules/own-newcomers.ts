import { sumBy } from "../../../foundation/base/sums.ts";
import { entryOf } from "../../reports/ingest/rollup.ts";
import { ipNetworkOf } from "../../insight/addresses/address-store.ts";
import type { KeyedSource } from "../../insight/sources/source-keys.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { judgeNewcomer, type ReviewFacts } from "./review-facts.ts";

/** Mail that is aligned and stands among that of the domain's own servers has this long to get a reverse name of another sender. */
const OWN_NAME_WAIT_MS = 24 * 60 * 60_000;

/** A network from which somebody new sends as the domain's own servers do. */
interface OwnNewcomer {
  readonly members: readonly KeyedSource[];
  readonly subject: string;
  readonly source: Source | undefined;
  readonly judgement: ReturnType<typeof judgeNewcomer>;
}

/** Whether DKIM or SPF of a stored source is aligned. */
export const isAlignedSource = ({ evidence: { signer, envelope }, isPlausible }: KeyedSource): boolean =>
  signer !== null || (isPlausible && envelope !== null);

const networkOf = ({ evidence: { ip } }: KeyedSource) => (ip === null ? null : ipNetworkOf(ip));

/**
 * New addresses that count as the domain's own because they pass SPF or sign for it, although no reverse name of the domain says so.
 * The owner of an address decides whether it has a reverse name, and which. Known are the networks of the domain's own
 * servers, and for servers without a name their AS: in a cloud addresses come and go.
 */
export const findOwnNewcomers = (
  candidates: readonly KeyedSource[],
  reviewed: readonly KeyedSource[],
  { facts, sentEnough }: { readonly facts: ReviewFacts; readonly sentEnough: (source: Source) => boolean },
): readonly OwnNewcomer[] => {
  // Nothing is looked up for test domains.
  if (facts.domain.mode !== "live") return [];
  const known = reviewed.filter(isAlignedSource);
  const networks = new Set(known.map(networkOf));
  const systems = new Set(known.flatMap(({ asn, isOwnName }) => (isOwnName || asn === null ? [] : asn)));
  const strange = candidates.filter(
    (source) =>
      isAlignedSource(source) &&
      !source.isOwnName &&
      (source.isNamePending || known.length > 0) &&
      !networks.has(networkOf(source)) &&
      !(source.asn !== null && systems.has(source.asn)),
  );
  const byNetwork = new Map<string, KeyedSource[]>();
  for (const source of strange) {
    const network = networkOf(source);
    if (network !== null) entryOf(byNetwork, network, (): KeyedSource[] => []).push(source);
  }
  return [...byNetwork].map(([network, members]) => judge(network, members, { facts, sentEnough }));
};

const judge = (
  network: string,
  members: readonly KeyedSource[],
  { facts, sentEnough }: { readonly facts: ReviewFacts; readonly sentEnough: (source: Source) => boolean },
): OwnNewcomer => {
  const { domain, nowMs, alerts } = facts;
  const isPending = members.some(({ isNamePending }) => isNamePending);
  const name = isPending ? "reverse name not known yet" : "no reverse name of yours";
  const source = facts.part(members, `${network} (authenticates as ${domain.domain}, ${name})`);
  const subject = `own ${network}`;
  const isWaiting = members.some((one) => one.isNamePending && nowMs - one.firstSeenAtMs < OWN_NAME_WAIT_MS);
  // Signatures survive forwarding, so mail that only signs for the domain needs as much weight as mail that fails.
  const signed = sumBy(members, ({ evidence, totals }) => (evidence.envelope === null ? totals.messages : 0));
  const weighed = source === undefined ? null : { ...source, aligned: source.aligned - signed };
  const firstDay = Math.min(...members.map((member) => member.firstDay));
  const hasWeight = !isWaiting && weighed !== null && sentEnough(weighed);
  const isRaised = alerts.lastRaisedMs(domain.number, "new_source", subject) !== null;
  const judgement = isRaised ? "reviewed" : judgeNewcomer({ firstDay, hasWeight }, facts);
  return { members, subject, source, judgement };
};
