import { Secret, TOTP } from "otpauth";
import { newSecretToken, sha256 } from "../foundation/base/secrets.ts";
import type { UserRecord } from "./user-store.ts";

const ISSUER = "Postwarden";
const PERIOD_S = 30;
const DIGITS = 6;
const SECRET_BYTES = 20;
/** A code of the time step before or after is accepted: clocks of phones differ. */
const WINDOW = 1;

const RECOVERY_CODES = 10;
/** 16 base62 characters are 95 bits. */
const RECOVERY_FORM = /^[0-9A-Za-z]{4}(-[0-9A-Za-z]{4}){3}$/;

const totpOf = (secret: string, email: string): TOTP =>
  new TOTP({
    ...{ issuer: ISSUER, label: email, algorithm: "SHA1", digits: DIGITS, period: PERIOD_S },
    secret: Secret.fromBase32(secret),
  });

/** A new secret for codes of an authenticator app (RFC 6238), in base32. */
export const newTotpSecret = (): string => new Secret({ size: SECRET_BYTES }).base32;

/** The `otpauth:` URI that authenticator apps read, usually from a QR code. */
export const totpUri = (secret: string, email: string): string => totpOf(secret, email).toString();

/**
 * The time step of a code that is right now and later than `lastCounter`, so that a code is accepted once only (RFC 6238
 * §5.2); null for any other text.
 */
export const counterOfCode = (
  { totpSecret, totpLastCounter, email }: Pick<UserRecord, "totpSecret" | "totpLastCounter" | "email">,
  code: string,
  nowMs: number,
): number | null => {
  const token = code.replaceAll(/\s/g, "");
  if (totpSecret === null || !/^\d{6}$/.test(token)) return null;
  const delta = totpOf(totpSecret, email).validate({ token, timestamp: nowMs, window: WINDOW });
  if (delta === null) return null;
  const counter = Math.floor(nowMs / 1000 / PERIOD_S) + delta;
  return counter > totpLastCounter ? counter : null;
};

/** New recovery codes, each for one sign-in without the app. */
export const newRecoveryCodes = (): readonly string[] =>
  Array.from({ length: RECOVERY_CODES }, () =>
    newSecretToken()
      .slice(0, 16)
      .replaceAll(/(.{4})(?=.)/g, "$1-"),
  );

/** What is stored of a recovery code. */
export const hashOfRecoveryCode = (code: string): string => sha256(`recovery:${code}`);

/** Whether a text has the form of a recovery code, which is too long to be guessed. */
export const isRecoveryForm = (text: string): boolean => RECOVERY_FORM.test(text.trim());

/** What is left of the hashes after a recovery code was used; null when it is none of them. */
export const withoutRecoveryCode = (hashes: readonly string[], text: string): readonly string[] | null => {
  if (!isRecoveryForm(text)) return null;
  const hash = hashOfRecoveryCode(text.trim());
  return hashes.includes(hash) ? hashes.filter((one) => one !== hash) : null;
};
