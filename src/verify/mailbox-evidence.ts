import { type Clock, isoTime } from "../base/clock.ts";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import type { Address } from "../mail/address.ts";
import type { Attempt, SessionEvidence, DomainEvidence, ProbeFinding, MailHost } from "./evidence.ts";
import { noFinding, mostTelling } from "./findings.ts";
import type { HostAddress, HostProber } from "./host-probe.ts";
import { providerOf } from "./providers.ts";

export interface MailboxProberDeps {
  readonly probeHost: HostProber;
  readonly clock: Clock;
  readonly smtpPort: number;
  /** No further host is tried when the dialogues of an attempt have taken this long; waiting for a turn is not counted. */
  readonly attemptTimeMs: number;
}

export interface MailboxProbe {
  readonly address: Address;
  readonly domain: DomainEvidence;
  /** The recipient that nobody has, whole. */
  readonly randomRecipient: string;
  readonly number: number;
  /** The dialogue that was last: its address comes first again among equally preferred hosts, its exit is taken again. */
  readonly previousSession: { readonly address: string; readonly exit: string } | null;
  readonly onBehalfOf: OnBehalfOf;
}

/** Addresses tried of one host, and of all hosts together, in one attempt. */
const ADDRESSES_PER_HOST_MAX = 4;
const ADDRESSES_MAX = 40;

/** Every address that may be asked, in the order of the hosts; IPv4 before IPv6, because more of us have it. */
const addressesOf = (domain: DomainEvidence, port: number, previousSession: string | null): HostAddress[] => {
  const rank = (address: string): number => (address === previousSession ? 0 : address.includes(":") ? 2 : 1);
  const has = ({ addresses }: MailHost): number =>
    addresses.some(({ address }) => address === previousSession) ? 0 : 1;
  return domain.hosts
    .toSorted((a, b) => a.preference - b.preference || has(a) - has(b))
    .flatMap(({ host, addresses }) =>
      addresses
        .filter(({ allowed }) => allowed)
        .toSorted((a, b) => rank(a.address) - rank(b.address))
        .slice(0, ADDRESSES_PER_HOST_MAX)
        .map(({ address }) => ({ host, address, port, provider: providerOf(host) })),
    )
    .slice(0, ADDRESSES_MAX);
};

/**
 * Asks the mail hosts of a domain about one recipient, and about one that nobody has. The first host that answers to
 * MAIL with a refusal, or to RCPT with anything, settles the attempt: a later host must not overrule it. A host that
 * cannot be reached, is silent, or sends us away before that, leaves the word to the next.
 */
export const createMailboxProber = ({ probeHost, clock, smtpPort, attemptTimeMs }: MailboxProberDeps) => {
  const probeHosts = async (question: MailboxProbe): Promise<Pick<Attempt, "dialogues" | "finding">> => {
    const { address, domain, randomRecipient, previousSession, onBehalfOf } = question;
    const dialogues: SessionEvidence[] = [];
    const open: ProbeFinding[] = [];
    let spentMs = 0;
    const places = addressesOf(domain, smtpPort, previousSession?.address ?? null);
    for (const where of places) {
      const previousEgress = previousSession?.exit ?? null;
      const heard = await probeHost(where, { address, randomRecipient, previousEgress, onBehalfOf });
      dialogues.push(...heard.dialogues);
      if (heard.settled) return { dialogues, finding: weighSettled(heard.finding, open) };
      open.push(heard.finding);
      spentMs += heard.tookMs;
      if (spentMs > attemptTimeMs) break;
    }
    const isEveryHostHeard = open.length === places.length && places.length < ADDRESSES_MAX && !hasUnknownHost(domain);
    return { dialogues, finding: weighOpen(open, isEveryHostHeard) };
  };

  return async function inquire(question: MailboxProbe): Promise<Attempt> {
    const startedAtMs = clock.nowMs();
    const heard = await probeHosts(question);
    return {
      number: question.number,
      started_at: isoTime(startedAtMs),
      finished_at: isoTime(clock.nowMs()),
      ...heard,
    };
  };
};

export type MailboxProber = ReturnType<typeof createMailboxProber>;

/** A mail host whose addresses the DNS did not say. */
const hasUnknownHost = ({ hosts }: DomainEvidence): boolean =>
  hosts.some(({ addresses, lookup_failed }) => lookup_failed && !addresses.some(({ allowed }) => allowed));

/** That the address needs SMTPUTF8 and no host offers it can only be said when there is no host left that may. */
const weighOpen = (open: readonly ProbeFinding[], isEveryHostHeard: boolean): ProbeFinding => {
  const finding = mostTelling(open);
  return finding.reading === "smtputf8_unsupported" && !isEveryHostHeard
    ? mostTelling([...open, noFinding(null)])
    : finding;
};

/**
 * Behind a better host that only sent us away for now, a worse one has the last word only where it knows the mailbox:
 * it accepts it and not everybody, or says that it is unknown or disabled. Else the better one is asked again.
 */
const weighSettled = (settled: ProbeFinding, open: readonly ProbeFinding[]): ProbeFinding => {
  const better = open.find(({ retryable }) => retryable);
  if (better === undefined) return settled;
  const { reading, catch_all } = settled;
  const knows =
    reading === "accepted" ? catch_all !== "yes" : reading === "mailbox_not_found" || reading === "mailbox_disabled";
  return knows ? settled : { ...better, heard: true };
};
