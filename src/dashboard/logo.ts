import { sha256 } from "../foundation/base/secrets.ts";
import { err, ok, type Result } from "../foundation/base/errors.ts";

/** A picture that pages show in place of the mark. */
export interface Logo {
  /** `/assets/<hash>-logo.svg`: it changes with the content, so that browsers may keep it. */
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: "image/svg+xml" | "image/png";
}

/** What pages call the service, and their picture; without one, the mark of Postwarden. */
export interface Brand {
  readonly name: string;
  readonly logo: Logo | null;
}

const HASH_CHARACTERS = 12;

/** `style.css` → `/assets/<hash>-style.css`: the name changes with the content, so that browsers may keep it. */
export const hashedPath = (name: string, content: string | Uint8Array): string =>
  `/assets/${sha256(content).slice(0, HASH_CHARACTERS)}-${name}`;

const LOGO_BYTES_MAX = 100_000;
/** Before the root element there may be a declaration, comments and a DOCTYPE. */
const PROLOGUE_CHARACTERS_MAX = 4_000;
const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

const typeOf = (bytes: Uint8Array): Logo["type"] | null => {
  if (PNG_SIGNATURE.every((byte, at) => bytes[at] === byte)) return "image/png";
  const start = new TextDecoder().decode(bytes.subarray(0, PROLOGUE_CHARACTERS_MAX)).trimStart();
  return start.startsWith("<") && /<svg[\s>]/.test(start) ? "image/svg+xml" : null;
};

/** Reads a logo; the error ends a sentence that begins with the name of the file. */
export const readLogo = async (path: string): Promise<Result<Logo, string>> => {
  const file = Bun.file(path);
  const size = await file.stat().then(
    (stat) => (stat.isFile() ? stat.size : null),
    () => null,
  );
  if (size === null) return err("is not a file that can be read");
  if (size > LOGO_BYTES_MAX) return err(`has ${size} bytes; a logo has at most ${LOGO_BYTES_MAX}`);
  const read = await file.bytes().catch(() => null);
  if (read === null) return err("is not a file that can be read");
  const type = typeOf(read);
  if (type === null) return err("is neither an SVG nor a PNG picture");
  return ok({ path: hashedPath(`logo.${type === "image/png" ? "png" : "svg"}`, read), bytes: read, type });
};

/** A picture of somebody else: a browser that opens it by itself runs no script of it and loads nothing. */
export const logoResponse = ({ bytes, type }: Logo): Response =>
  new Response(bytes, {
    headers: {
      "content-type": type,
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    },
  });
