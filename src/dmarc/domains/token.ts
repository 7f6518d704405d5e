import { createHash, randomBytes } from "node:crypto";

/** RFC 4648 §6 in lower case: what survives a mail system that folds case or does not know anything but letters and digits. */
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_CHARACTERS = 20;
const BITS_PER_CHARACTER = 5;
const TOKEN_BYTES = Math.ceil((TOKEN_CHARACTERS * BITS_PER_CHARACTER) / 8);
const TOKEN_FORM = /^[a-z2-7]{20}$/;

const tokenOf = (bytes: Uint8Array): string => {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`) >> BigInt(bytes.length * 8 - TOKEN_CHARACTERS * 5);
  let text = "";
  while (text.length < TOKEN_CHARACTERS) {
    text = (BASE32[Number(rest % 32n)] ?? "") + text;
    rest /= 32n;
  }
  return text;
};

/** A new local part of a reporting address: 20 lower-case letters and digits that hold 100 random bits, so that nobody guesses one. */
export const newToken = (): string => tokenOf(randomBytes(TOKEN_BYTES));

/** The local part for a domain of a test key: the same whenever the account enrols the domain, so that answers can be fixtures. */
export const testToken = (accountId: string, domain: string): string =>
  tokenOf(createHash("sha256").update(`dmarc-test-key ${accountId} ${domain}`).digest().subarray(0, TOKEN_BYTES));

/** Whether a text (lower case) has the form of a token, so that the database need not be asked about anything else. */
export const isToken = (text: string): boolean => TOKEN_FORM.test(text);
