import ipaddr from "ipaddr.js";

const LABEL_BYTES_MAX = 63;
/** 255 octets on the wire (RFC 1035 §2.3.4) are 253 characters in writing. */
const NAME_CHARACTERS_MAX = 253;
const LABEL = /^[\x21-\x5b\x5d-\x7e]+$/;
/** A name of 255 octets has at most 127 labels; a longer chain of pointers than that is a trap. */
const POINTERS_MAX = 127;
const WIRE_BYTES_MAX = 255;
const DOT = 0x2e;

/** Thrown inside this codec for bytes that are no DNS message; it never leaves `decodeMessage`. */
export class MalformedMessage extends Error {}

/**
 * Brings a name into the one form used here: lower case, no final dot, the root as ".".
 * Undefined when it is not valid: an empty or overlong label, over 253 characters, white space, a backslash or non-ASCII.
 */
export const normalizeName = (name: string): string | undefined => {
  if (name === ".") return name;
  const bare = name.endsWith(".") ? name.slice(0, -1) : name;
  if (bare.length > NAME_CHARACTERS_MAX) return undefined;
  const isValid = bare.split(".").every((label) => label.length <= LABEL_BYTES_MAX && LABEL.test(label));
  return isValid ? bare.toLowerCase() : undefined;
};

/** The octets of a normalised name as uncompressed labels. */
export const wireBytesOf = (name: string): number => (name === "." ? 1 : name.length + 2);

/** Writes a normalised name as uncompressed labels at `offset` and returns the offset behind it. */
export const writeName = (bytes: Uint8Array, name: string, offset: number): number => {
  let lengthAt = offset;
  let next = offset;
  if (name !== ".") {
    next++;
    for (let index = 0; index < name.length; index++) {
      const code = name.charCodeAt(index);
      if (code === DOT) {
        bytes[lengthAt] = next - lengthAt - 1;
        lengthAt = next;
      } else bytes[next] = code;
      next++;
    }
    bytes[lengthAt] = next - lengthAt - 1;
  }
  bytes[next] = 0;
  return next + 1;
};

/**
 * Reads a possibly compressed name (RFC 1035 §4.1.4) at `offset`: lower case, special bytes written as `\.` or `\DDD` (§5.1).
 * `next` is the offset behind it. Throws MalformedMessage for pointers that do not lead strictly backwards, and past the ends.
 */
export const readName = (bytes: Uint8Array, offset: number): { name: string; next: number } => {
  let isPlain = true;
  let written = 0;
  let position = offset;
  let segmentStart = offset;
  let next = -1;
  let pointers = 0;
  let wireBytes = 1;

  for (;;) {
    const length = byteAt(bytes, position);
    if (length === 0) break;
    if (length >= 0xc0) {
      const target = ((length & 0x3f) << 8) | byteAt(bytes, position + 1);
      if (target >= segmentStart || ++pointers > POINTERS_MAX) throw new MalformedMessage("bad compression pointer");
      if (next < 0) next = position + 2;
      position = target;
      segmentStart = target;
      continue;
    }
    wireBytes += length + 1;
    if (length > LABEL_BYTES_MAX || wireBytes > WIRE_BYTES_MAX) throw new MalformedMessage("bad label or name length");
    const end = position + 1 + length;
    if (end > bytes.length) throw new MalformedMessage("label past the end");
    NAME_BYTES[written++] = length;
    for (position++; position < end; position++) {
      const byte = LOWER_CASE[bytes[position] ?? 0] ?? 0;
      if (ESCAPED[byte] === 1) isPlain = false;
      NAME_BYTES[written++] = byte;
    }
  }
  return { name: isPlain ? plainName(written) : escapedName(written), next: next < 0 ? position + 1 : next };
};

/** The labels of the name that is being read, each behind its length, in lower case. */
const NAME_BYTES = Buffer.alloc(WIRE_BYTES_MAX);

const plainName = (written: number) => {
  if (written === 0) return ".";
  // Each length becomes the dot before its label.
  for (let at = 0; at < written;) {
    const length = NAME_BYTES[at] ?? 0;
    NAME_BYTES[at] = DOT;
    at += length + 1;
  }
  return NAME_BYTES.toString("latin1", 1, written);
};

const escapedName = (written: number) => {
  const labels: string[] = [];
  for (let at = 0; at < written;) {
    const end = at + 1 + (NAME_BYTES[at] ?? 0);
    labels.push(Array.from(NAME_BYTES.subarray(at + 1, end), labelCharacter).join(""));
    at = end;
  }
  return labels.join(".");
};

const labelCharacter = (byte: number) => {
  const character = String.fromCharCode(byte);
  if (character === "." || character === "\\") return `\\${character}`;
  const isPrintable = byte > 0x20 && byte < 0x7f;
  return isPrintable ? character : `\\${String(byte).padStart(3, "0")}`;
};

const LOWER_CASE = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte));
/** 1 for bytes that a name does not show as they are. */
const ESCAPED = Uint8Array.from({ length: 256 }, (_, byte) => Number(labelCharacter(byte).length > 1));

const byteAt = (bytes: Uint8Array, offset: number) => {
  const byte = bytes[offset];
  if (byte === undefined) throw new MalformedMessage("past the end");
  return byte;
};

/** The labels of an address in reverse order, as zones that are keyed by addresses have them (RFC 1035 §3.5, RFC 3596 §2.5). Takes valid addresses only. */
export const reverseLabels = (ip: string): string => {
  const address = ipaddr.parse(ip);
  if (address instanceof ipaddr.IPv4) return address.octets.toReversed().join(".");
  const nibbles = address.parts.map((part) => part.toString(16).padStart(4, "0")).join("");
  return [...nibbles].toReversed().join(".");
};

/** The name of the PTR record of an address. Takes valid addresses only. */
export const reverseQueryName = (ip: string): string =>
  `${reverseLabels(ip)}.${ipaddr.parse(ip).kind() === "ipv4" ? "in-addr" : "ip6"}.arpa`;
