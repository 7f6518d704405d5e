import { randomBytes, randomInt, timingSafeEqual } from "node:crypto";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET_BYTES = 32;
/** 62^43 is the first power of 62 above 2^256. */
const SECRET_CHARACTERS = 43;
/** 62^6 is the first power of 62 above 2^32. */
const CHECKSUM_CHARACTERS = 6;
const KEY_FORM = /^pw_(?:pub_)?(live|test)_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export type KeyMode = "live" | "test";

/** An account and mode. Live and test data of an account share nothing. */
export interface Owner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/**
 * What live keys use, and what test keys use instead: the same interface, without network, credits or mail. A use case
 * takes one of these and selects once, by the mode of the key: `engines[caller.mode]`.
 */
export type ByMode<T> = Readonly<Record<KeyMode, T>>;

/** A new id: UUIDv7 (RFC 9562 §5.7), lower case. Ids made later sort after ids made earlier. */
export const newId = (): string => Bun.randomUUIDv7();

const ID_FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether a text has the form of an id, so that the database is not queried for anything else. */
export const isId = (text: string): boolean => ID_FORM.test(text);

const base62 = (value: bigint, characters: number) => {
  let rest = value;
  let text = "";
  while (text.length < characters) {
    text = (BASE62[Number(rest % 62n)] ?? "") + text;
    rest /= 62n;
  }
  return text;
};

/** In the same digits; without big integers, because every request has it computed. */
const checksum = (text: string) => {
  let rest = Bun.hash.crc32(text);
  let digits = "";
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = (BASE62[rest % BASE62.length] ?? "") + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
};

/** A new token of 256 random bits, in 43 base62 characters: safe in URLs and cookies. */
export const newSecretToken = (): string =>
  base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString("hex")}`), SECRET_CHARACTERS);

const TOKEN_FORM = /^[0-9A-Za-z]{43}$/;

/** Whether a text has the form of a token, so that the database is not queried for anything else. */
export const isSecretToken = (text: string): boolean => TOKEN_FORM.test(text);

/**
 * A new API key: `pw_live_` or `pw_test_` (a publishable one: `pw_pub_live_` or `pw_pub_test_`), 43 base62 characters (256 random bits), and 6 characters of the CRC32 of
 * all before them, so that a typo or a secret scanner needs no database.
 */
export const newApiKey = (mode: KeyMode, isPublishable = false): string => {
  const body = `pw_${isPublishable ? "pub_" : ""}${mode}_${newSecretToken()}`;
  return body + checksum(body);
};

/** Reads the mode out of a well-formed API key; null for anything that no `newApiKey` ever returned. */
export const readApiKey = (key: string): { readonly mode: KeyMode } | null => {
  const match = KEY_FORM.exec(key);
  if (match === null) return null;
  const body = key.slice(0, -CHECKSUM_CHARACTERS);
  if (checksum(body) !== match[3]) return null;
  return { mode: match[1] === "live" ? "live" : "test" };
};

/** Identifies a browser that has no session: 128 random bits in lower-case hexadecimal. */
export const newVisitorId = (): string => randomBytes(16).toString("hex");

/** SHA-256 in lower-case hexadecimal. */
export const sha256 = (content: string | Uint8Array): string => Bun.SHA256.hash(content, "hex");

/** Compares two texts in a time that depends on their length only. */
export const equalInConstantTime = (a: string, b: string): boolean => {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
};

/** Where randomness comes from; tests pass one that is not random. */
export interface Random {
  /** A whole number from 0 up to, but without, `below`. */
  integer(below: number): number;
}

export const systemRandom: Random = { integer: (below) => randomInt(below) };

/** The same items in an order that `random` chose (Fisher and Yates). */
export const shuffled = <T>(items: readonly T[], random: Random): T[] => {
  const left = [...items];
  const order: T[] = [];
  while (left.length > 0) order.push(...left.splice(random.integer(left.length), 1));
  return order;
};
