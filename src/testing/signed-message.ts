import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ed25519 = generateKeyPairSync("ed25519");

const der = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });

/** The record of the key that signs, as DNS has it at `s1._domainkey.…`. */
export const KEY_RECORD = `v=DKIM1; k=rsa; p=${der(rsa.publicKey).toString("base64")}`;
export const ED25519_KEY_RECORD = `v=DKIM1; k=ed25519; p=${der(ed25519.publicKey).subarray(-32).toString("base64")}`;

export interface HeaderSigning {
  readonly d?: string;
  readonly a?: string;
  /** The names of the fields that are signed. */
  readonly names?: readonly string[];
  /** More tags, as `x=1;`. */
  readonly tags?: string;
  readonly key?: KeyObject;
}

/** The header of a message with a DKIM signature above it (relaxed, RFC 6376 §3.4.2), written by hand. The body is not looked at. */
export const signHeader = (
  fields: ReadonlyArray<readonly [name: string, value: string]>,
  { d = "shop.example", a = "rsa-sha256", names = ["From", "To", "Subject"], tags = "", key }: HeaderSigning = {},
): string => {
  const value = `v=1; a=${a}; c=relaxed/relaxed; d=${d}; s=s1; h=${names.join(":")}; ${tags} bh=${"A".repeat(43)}=; b=`;
  const left = [...fields];
  const lines = names.flatMap((name) => {
    const at = left.findLastIndex(([one]) => one.toLowerCase() === name.toLowerCase());
    const [found] = at === -1 ? [] : left.splice(at, 1);
    return found === undefined ? [] : [`${name.toLowerCase()}:${relaxed(found[1])}\r\n`];
  });
  const signed = `${lines.join("")}dkim-signature:${relaxed(value)}`;
  const isRsa = a.startsWith("rsa");
  const signature = isRsa
    ? sign(a.endsWith("sha1") ? "sha1" : "sha256", Buffer.from(signed), key ?? rsa.privateKey)
    : sign(null, createHash("sha256").update(signed).digest(), key ?? ed25519.privateKey);
  const header = fields.map(([name, text]) => `${name}: ${text}\r\n`).join("");
  return `DKIM-Signature: ${value}${signature.toString("base64")}\r\n${header}`;
};

const relaxed = (text: string): string =>
  text
    .replace(/\r\n/g, "")
    .replace(/[ \t]+/g, " ")
    .trim();
