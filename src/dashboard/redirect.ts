import type { Viewer } from "./visit.ts";
import { z } from "zod";
import { readCookie } from "./cookies.ts";

const SEE_OTHER = 303;

/** Sends the browser to a page of the viewer's mode, with a message for it. */
export const redirectTo = (viewer: Pick<Viewer, "href">, path: string, flash?: Flash): Response =>
  redirectToPath(viewer.href(path), flash);

/** The same for a path that has its prefix already. `cookies` are further `Set-Cookie` values. */
export const redirectToPath = (path: string, flash?: Flash, cookies: readonly string[] = []): Response => {
  const headers = new Headers({ location: path, "cache-control": "no-store" });
  for (const cookie of [...cookies, ...(flash === undefined ? [] : [flashCookie(flash)])])
    headers.append("set-cookie", cookie);
  return new Response(null, { status: SEE_OTHER, headers });
};

/** Whether a text is a path of this site: a target that a link may send somebody to after signing in. */
export const isOwnPath = (text: string): boolean => /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text);

/** A message for the next page: what was done, or why not. */
export type Flash = { readonly ok: string } | { readonly bad: string };

const FLASH_COOKIE = "pw_flash";
const FLASH_CHARACTERS_MAX = 600;
const FLASH_SECONDS = 60;

const flashSchema = z.union([z.object({ ok: z.string() }), z.object({ bad: z.string() })]);

const cut = (text: string): string =>
  text.length > FLASH_CHARACTERS_MAX ? `${text.slice(0, FLASH_CHARACTERS_MAX)}…` : text;

/** The `Set-Cookie` value that carries a message across a redirect. */
const flashCookie = (flash: Flash): string => {
  const short = "ok" in flash ? { ok: cut(flash.ok) } : { bad: cut(flash.bad) };
  const value = Buffer.from(JSON.stringify(short)).toString("base64url");
  return `${FLASH_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${FLASH_SECONDS}`;
};

/** The message that a request carries; null without one. */
export const readFlash = (request: Request): Flash | null => {
  const value = readCookie(request, FLASH_COOKIE);
  return value === null ? null : decode(value);
};

/** Whether a response carries the message that something was not done. */
export const isRefusal = ({ headers }: Response): boolean =>
  headers.getSetCookie().some((cookie) => {
    const [pair = ""] = cookie.split(";", 1);
    const value = pair.startsWith(`${FLASH_COOKIE}=`) ? pair.slice(FLASH_COOKIE.length + 1) : undefined;
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
export const CLEAR_FLASH = `${FLASH_COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`;
