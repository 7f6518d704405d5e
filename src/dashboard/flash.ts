import { z } from "zod";
import { readCookie } from "./cookies.ts";

/** A message for the next page: what was done, or why not. */
export type Flash = { readonly ok: string } | { readonly bad: string };

const COOKIE = "pw_flash";
const CHARACTERS_MAX = 600;
const SECONDS = 60;

const flashSchema = z.union([z.object({ ok: z.string() }), z.object({ bad: z.string() })]);

const cut = (text: string): string => (text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX)}…` : text);

/** The `Set-Cookie` value that carries a message across a redirect. */
export const flashCookie = (flash: Flash): string => {
  const short = "ok" in flash ? { ok: cut(flash.ok) } : { bad: cut(flash.bad) };
  const value = Buffer.from(JSON.stringify(short)).toString("base64url");
  return `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${SECONDS}`;
};

/** The message that a request carries; null without one. */
export const readFlash = (request: Request): Flash | null => {
  const value = readCookie(request, COOKIE);
  return value === null ? null : decode(value);
};

/** Whether a response carries the message that something was not done. */
export const isRefusal = ({ headers }: Response): boolean =>
  headers.getSetCookie().some((cookie) => {
    const [pair = ""] = cookie.split(";", 1);
    const value = pair.startsWith(`${COOKIE}=`) ? pair.slice(COOKIE.length + 1) : undefined;
    const flash = value === undefined ? null : decode(value);
    return flash !== null && "bad" in flash;
  });

const decode = (value: string): Flash | null => {
  try {
    return flashSchema.parse(JSON.parse(Buffer.from(value, "base64url").toString()));
  } catch {
    // Not one of ours: the visitor's own cookie, shown to nobody else.
    return null;
  }
};

/** Removes the message: it was shown. */
export const CLEAR_FLASH = `${COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`;
