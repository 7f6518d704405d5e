import { type Clock, isoTime } from "../foundation/base/clock.ts";
import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import type { Random } from "../foundation/base/secrets.ts";
import type { Address } from "../foundation/mail/address.ts";
import type { Attempt, DomainEvidence, MailHost, ProbeFinding, SessionEvidence } from "./evidence.ts";
import { mostTelling, noFinding } from "./findings.ts";
import type { HostAddress, HostProber } from "./host-probe.ts";
import { providerOf } from "./providers.ts";

export interface MailboxProberOptions {
  readonly smtpPort: number;
  /** No further host is tried once the sessions of an attempt have taken this long; waiting in queues is not counted. */
  readonly attemptTimeMs: number;
}

export interface MailboxProbe {
  readonly address: Address;
  readonly domain: DomainEvidence;
  /** The random recipient of the attempt before; null at the first attempt. */
  readonly randomRecipient: string | null;
  /** Number of the attempt. */
  readonly number: number;
  /** The latest session: among equally preferred hosts its address comes first again, and its egress is used again. */
  readonly previousSession: { readonly address: string; readonly egress: string } | null;
  readonly onBehalfOf: OnBehalfOf;
}

export interface ProbedMailbox {
  readonly attempt: Attempt;
  /** The recipient that does not exist, probed for comparison. */
  readonly randomRecipient: string | null;
}

export type MailboxProber = (probe: MailboxProbe) => Promise<ProbedMailbox>;

/** Addresses tried of one host, and of all hosts together, in one attempt. */
const ADDRESSES_PER_HOST_MAX = 4;
const ADDRESSES_MAX = 40;

/**
 * Probes the mail hosts of a domain for one recipient, and for a random one that does not exist. The first host that
 * refuses MAIL or replies to RCPT settles the attempt: a later host must not overrule it. A host that cannot be reached,
 * times out, or turns us away before that leaves it to the next.
 */
export const createMailboxProber = (
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  hostProber: Pick<HostProber, "probe">,
  { smtpPort, attemptTimeMs }: MailboxProberOptions,
): MailboxProber => {
  // One function on purpose: each one that waits costs memory for every check that waits.
  return async ({ address, domain, previousSession, onBehalfOf, ...probe }) => {
    const startedAt = isoTime(clock.nowMs());
    const randomRecipient = probe.randomRecipient ?? `${randomLocalPart(random)}@${address.domain}`;
    const sessions: SessionEvidence[] = [];
    const open: ProbeFinding[] = [];
    let settled: ProbeFinding | null = null;
    let spentMs = 0;
    const hosts = addressesOf(domain, smtpPort, previousSession?.address ?? null);
    for (const host of hosts) {
      const previousEgress = previousSession?.egress ?? null;
      const probed = await hostProber.probe(host, { address, randomRecipient, previousEgress, onBehalfOf });
      sessions.push(...probed.sessions);
      if (probed.settled) {
        settled = settledFinding(probed.finding, open);
        break;
      }
      open.push(probed.finding);
      spentMs += probed.tookMs;
      if (spentMs > attemptTimeMs) break;
    }
    const isEveryHostProbed = open.length === hosts.length && hosts.length < ADDRESSES_MAX && !hasUnknownHost(domain);
    const finding = settled ?? openFinding(open, isEveryHostProbed);
    const times = { started_at: startedAt, finished_at: isoTime(clock.nowMs()) };
    return { attempt: { number: probe.number, ...times, sessions, finding }, randomRecipient };
  };
};

/** Every address that may be connected to, in the order of the hosts; IPv4 first, because more machines have it. */
const addressesOf = (domain: DomainEvidence, port: number, previousAddress: string | null): HostAddress[] => {
  const rank = (address: string): number => (address === previousAddress ? 0 : address.includes(":") ? 2 : 1);
  const hostRank = ({ addresses }: MailHost): number =>
    addresses.some(({ address }) => address === previousAddress) ? 0 : 1;
  return domain.hosts
    .toSorted((a, b) => a.preference - b.preference || hostRank(a) - hostRank(b))
    .flatMap(({ host, addresses }) =>
      addresses
        .filter(({ allowed }) => allowed)
        .toSorted((a, b) => rank(a.address) - rank(b.address))
        .slice(0, ADDRESSES_PER_HOST_MAX)
        .map(({ address }) => ({ host, address, port, provider: providerOf(host) })),
    )
    .slice(0, ADDRESSES_MAX);
};

/** A mail host whose addresses DNS did not return. */
const hasUnknownHost = ({ hosts }: DomainEvidence): boolean =>
  hosts.some(({ addresses, lookup_failed }) => lookup_failed && !addresses.some(({ allowed }) => allowed));

/** That no host offers the SMTPUTF8 that an address needs is only known once every host was probed. */
const openFinding = (open: readonly ProbeFinding[], isEveryHostProbed: boolean): ProbeFinding => {
  const finding = mostTelling(open);
  return finding.reading === "smtputf8_unsupported" && !isEveryHostProbed
    ? mostTelling([...open, noFinding(null)])
    : finding;
};

/**
 * After a better host that only gave a temporary refusal, a worse one decides only where it knows the mailbox: it accepts
 * it but not every recipient, or says that it is unknown or disabled. Otherwise the better one is retried.
 */
const settledFinding = (settled: ProbeFinding, open: readonly ProbeFinding[]): ProbeFinding => {
  const better = open.find(({ retryable }) => retryable);
  if (better === undefined) return settled;
  const { reading, catch_all } = settled;
  const knows =
    reading === "accepted" ? catch_all !== "yes" : reading === "mailbox_not_found" || reading === "mailbox_disabled";
  return knows ? settled : { ...better, heard: true };
};

const GIVEN_NAMES =
  "anna marek sofia jonas elena pavel maria tomas julia henrik lucia oscar irina felix carla viktor".split(" ");
const FAMILY_NAMES = [
  ..."lindqvist moravec castellan brandauer petrosyan ostrander villanova kowalik".split(" "),
  ..."haverkamp sorensen marchetti dubrovin thornbury escobedo nakagawa weissman".split(" "),
];
const DIGITS = 5;

/**
 * A local part that looks like a person's and that does not exist: two names and five digits, some 25 million of them.
 * Different at each call.
 */
export const randomLocalPart = (random: Random): string => {
  const name = (names: readonly string[]) => names[random.integer(names.length)] ?? "anna";
  const digits = Array.from({ length: DIGITS }, () => String(random.integer(10))).join("");
  return `${name(GIVEN_NAMES)}.${name(FAMILY_NAMES)}${digits}`;
};
