import { createHmac, randomBytes } from "node:crypto";

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** A new secret in the form of Standard Webhooks 1.0: `whsec_` and 32 random bytes in base64. */
export const newWebhookSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64");

export interface SignedMessage {
  /** The same in every attempt, so that receivers can ignore duplicates. */
  readonly id: string;
  /** The time of the attempt: receivers refuse requests that are some minutes old. */
  readonly atMs: number;
  readonly body: string;
}

/**
 * The headers of Standard Webhooks 1.0. `webhook-signature` has one `v1,…` (HMAC-SHA-256 of `id.timestamp.body`) for each
 * secret, so that receivers may use the old or the new one during a rotation.
 */
export const signatureHeaders = (
  secrets: readonly string[],
  { id, atMs, body }: SignedMessage,
): Readonly<Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>> => {
  const timestamp = String(Math.floor(atMs / 1000));
  const sign = (secret: string): string => {
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  };
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map(sign).join(" "),
  };
};
