import type { Viewer } from "./visit.ts";
import { type Flash, flashCookie } from "./flash.ts";

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
