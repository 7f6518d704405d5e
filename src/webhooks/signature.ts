import { createHmac, randomBytes } from "node:crypto";

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** A new secret as Standard Webhooks 1.0 writes it: `whsec_` and 32 random bytes in base64. */
export const newWebhookSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64");

export interface SignedMessage {
  /** The same at every repeat, so that receivers can drop what they have seen. */
  readonly id: string;
  /** The moment of the attempt: receivers refuse what is older than some minutes. */
  readonly atMs: number;
  readonly body: string;
}

/**
 * The three headers of Standard Webhooks 1.0: `webhook-signature` holds one `v1,…` (HMAC-SHA-256 over
 * `id.timestamp.body`) for each secret, so that receivers may know the old or the new one during a rotation.
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
