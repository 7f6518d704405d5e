/** An element of DER (X.690 §8.1): its tag, its contents, and where the next one begins. */
interface DerElement {
  readonly tag: number;
  readonly contents: Uint8Array;
  readonly next: number;
}

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OBJECT_IDENTIFIER = 0x06;
const RSA_OID = "2a864886f70d010101";
/** A length of a key never needs more octets than this. */
const LENGTH_OCTETS_MAX = 3;

/** An RSA public key as far as its strength is concerned. */
export interface RsaKeySize {
  /** Bits of the modulus. */
  readonly bits: number;
  /** Whether the public exponent is odd and greater than 1. */
  readonly hasSoundExponent: boolean;
}

/**
 * Reads the size of an RSA public key in DER: a SubjectPublicKeyInfo (RFC 5280 §4.1), which is what RFC 6376 means in practice, or
 * a bare RSAPublicKey (RFC 8017 §A.1.1), which the text of RFC 6376 §3.6.1 names. Null when it is neither. Never throws.
 */
export const readRsaKey = (der: Uint8Array): RsaKeySize | null => {
  const outer = readElement(der, 0, SEQUENCE);
  if (outer === null || outer.next !== der.length) return null;
  return readBareKey(outer.contents) ?? readWrappedKey(outer.contents);
};

const readWrappedKey = (contents: Uint8Array): RsaKeySize | null => {
  const algorithm = readElement(contents, 0, SEQUENCE);
  const identifier = algorithm === null ? null : readElement(algorithm.contents, 0, OBJECT_IDENTIFIER);
  if (algorithm === null || identifier === null) return null;
  if (Buffer.from(identifier.contents).toString("hex") !== RSA_OID) return null;
  const bits = readElement(contents, algorithm.next, BIT_STRING);
  if (bits === null || bits.contents[0] !== 0) return null;
  const key = readElement(bits.contents, 1, SEQUENCE);
  return key === null ? null : readBareKey(key.contents);
};

/** The two numbers of an RSAPublicKey. */
const readBareKey = (contents: Uint8Array): RsaKeySize | null => {
  const modulus = readElement(contents, 0, INTEGER);
  const exponent = modulus === null ? null : readElement(contents, modulus.next, INTEGER);
  if (modulus === null || exponent === null || exponent.next !== contents.length) return null;
  const bits = bitsOf(modulus.contents);
  const last = exponent.contents.at(-1) ?? 0;
  return bits === 0 ? null : { bits, hasSoundExponent: last % 2 === 1 && bitsOf(exponent.contents) > 1 };
};

const bitsOf = (number: Uint8Array): number => {
  const start = number.findIndex((octet) => octet !== 0);
  if (start === -1) return 0;
  return (number.length - start) * 8 - (Math.clz32(number[start] ?? 0) - 24);
};

const readElement = (bytes: Uint8Array, at: number, tag: number): DerElement | null => {
  const first = bytes[at + 1];
  if (bytes[at] !== tag || first === undefined) return null;
  const lengthOctets = first < 0x80 ? 0 : first - 0x80;
  if (first === 0x80 || lengthOctets > LENGTH_OCTETS_MAX) return null;
  const start = at + 2 + lengthOctets;
  if (start > bytes.length) return null;
  const length =
    lengthOctets === 0 ? first : bytes.subarray(at + 2, start).reduce((sum, octet) => sum * 256 + octet, 0);
  const next = start + length;
  return next > bytes.length ? null : { tag, contents: bytes.subarray(start, next), next };
};
