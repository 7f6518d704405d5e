import { createHash, randomBytes } from "node:crypto";

/** RFC 4648 §6 in lower case: survives mail systems that fold case or allow letters and digits only. */
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

/** A new local part of a reporting address: 20 lower-case letters and digits with 100 random bits. */
export const newToken = (): string => tokenOf(randomBytes(TOKEN_BYTES));

/** The local part for a domain of a test key: always the same for an account and domain, so that responses can be fixtures. */
export const testToken = (accountId: string, domain: string): string =>
  tokenOf(createHash("sha256").update(`dmarc-test-key ${accountId} ${domain}`).digest().subarray(0, TOKEN_BYTES));

/** Whether a text (lower case) has the form of a token; anything else needs no database query. */
export const isToken = (text: string): boolean => TOKEN_FORM.test(text);
