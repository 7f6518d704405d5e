import { sha256 } from "../../../foundation/base/secrets.ts";
import type { HeaderProof } from "../../../foundation/dkim/signed-header.ts";
import { parseAddress } from "../../../foundation/mail/address.ts";
import { readMessage } from "../../../foundation/mail/message.ts";
import { type Bounce, findStatus, readBounce, type ReportedBounce } from "../bounce.ts";
import { type DeliveryReport, readDeliveryReport, type ReportedRecipient } from "./delivery-report.ts";
import { readQmailReport } from "./qmail-report.ts";

/**
 * What a mail of the mailbox is. `notice`: it reports a delay or a delivery of a message of ours. `unproven`: a report whose
 * message nothing shows to be ours. `other`: no report, or one that cannot be read.
 */
export const MAIL_OUTCOMES = ["bounce", "notice", "unproven", "other"] as const;
export type MailOutcome = (typeof MAIL_OUTCOMES)[number];

export interface BounceMail {
  readonly outcome: MailOutcome;
  readonly bounces: readonly Bounce[];
}

interface MailCircumstances {
  /** Proves that a message that came back was ours; null: every report is believed. */
  readonly prove: ((returned: Uint8Array) => Promise<HeaderProof>) | null;
  /** When the mailbox got the mail. */
  readonly deliveredAtMs: number | null;
  readonly nowMs: number;
  /** Resolves when the next recipient may be read: others have their turn in between. */
  readonly turn: () => Promise<void>;
}

/** Reads a mail of the mailbox. `unknown`: the key of this name could not be looked up. */
export const readBounceMail = async (
  bytes: Uint8Array,
  { prove, deliveredAtMs, nowMs, turn }: MailCircumstances,
): Promise<BounceMail | { readonly outcome: "unknown"; readonly key: string }> => {
  const message = await readMessage(bytes);
  const parts = message.ok ? message.value.parts : [];
  const report = readDeliveryReport(parts) ?? readQmailReport(parts);
  if (report === null) return nothing("other");
  const proof = prove === null || report.returned === null ? null : await prove(report.returned);
  if (proof?.kind === "unknown") return { outcome: "unknown", key: proof.key };
  const believed = prove === null ? byWord(report, bytes) : byProof(report, proof);
  if (believed.length === 0) return nothing("unproven");
  const atMs = deliveredAtMs ?? Number.NaN;
  const failed = believed.filter(({ action }) => action === "failed");
  const bounces: Bounce[] = [];
  for (const one of failed) {
    await turn();
    const reading = readBounce({ ...one, source: "mailbox", atMs }, nowMs);
    if (reading.outcome === "bounce") bounces.push(reading.bounce);
  }
  if (bounces.length > 0) return { outcome: "bounce", bounces };
  return nothing(failed.length < believed.length ? "notice" : "other");
};

const nothing = (outcome: MailOutcome): BounceMail => ({ outcome, bounces: [] });

/** What is believed of a report, about the address that the message was sent to. */
interface Believed extends Pick<ReportedBounce, "eventId" | "recipient" | "status" | "diagnostic" | "isTemporary"> {
  readonly action: string;
}

const believe = (
  { action, status, diagnostic }: ReportedRecipient,
  about: Pick<Believed, "eventId" | "recipient"> & { readonly wasForwarded: boolean },
): Believed => {
  const { eventId, recipient, wasForwarded } = about;
  // The address that the message was forwarded to failed: this says nothing about the one that forwards.
  return { eventId, recipient, action, diagnostic, status: findStatus(status, diagnostic), isTemporary: wasForwarded };
};

/**
 * Only a message that our signature names one recipient of, and only about that recipient: whoever gets a message of ours can
 * report what he likes about his own address, and about no other.
 */
const byProof = ({ recipients }: DeliveryReport, proof: HeaderProof | null): readonly Believed[] => {
  if (proof?.kind !== "signed" || proof.recipient === null) return [];
  const signed = parseAddress(proof.recipient);
  if (!signed.ok) return [];
  const { normalized: recipient } = signed.value;
  const about = { eventId: sha256(proof.signature), recipient };
  const own = recipients.find(({ final }) => final.includes(recipient));
  if (own !== undefined) return [believe(own, { ...about, wasForwarded: false })];
  const forwarded = recipients.find(({ original }) => original.includes(recipient));
  return forwarded === undefined ? [] : [believe(forwarded, { ...about, wasForwarded: true })];
};

/** Everything, about the address that the report names as the original one, else as the final one. */
const byWord = ({ recipients }: DeliveryReport, bytes: Uint8Array): readonly Believed[] => {
  const eventId = sha256(bytes);
  return recipients.flatMap((one) => {
    const final = one.final.find((address) => one.original.includes(address)) ?? one.final[0];
    const [original = final] = one.original;
    if (final === undefined || original === undefined) return [];
    const wasForwarded = !one.original.includes(final) && one.original.length > 0;
    return [believe(one, { eventId, recipient: wasForwarded ? original : final, wasForwarded })];
  });
};
