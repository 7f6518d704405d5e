/** Code points of a file's name without its ending. */
const NAME_CHARACTERS_MAX = 100;
/** Characters that file systems or shells reject or interpret, invisible ones, and those that change the writing direction. */
const UNFIT = /[/\\:*?"<>|\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu;

const cleaned = (name: string): string =>
  [...name.toWellFormed().normalize("NFC").replace(UNFIT, " ").replace(/\s+/g, " ")]
    .slice(0, NAME_CHARACTERS_MAX)
    .join("")
    .replace(/^[\s.]+|[\s.]+$/g, "");

/** Percent-encodes the characters that encodeURIComponent leaves but RFC 8187 §3.2.1 does not allow. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * The value of Content-Disposition for a download called `name` + `ending` (RFC 6266): in ASCII for old clients, and
 * where that is not the name, as UTF-8 (RFC 8187). The value is always one line of printable ASCII.
 */
export const attachment = (name: string, ending: string): string => {
  const whole = (cleaned(name) || "download") + ending;
  const ascii = whole
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\x20-\x7e]|%/g, "_");
  return `attachment; filename="${ascii}"${ascii === whole ? "" : `; filename*=UTF-8''${encoded(whole)}`}`;
};
