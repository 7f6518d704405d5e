import { z } from "zod";
import { THEMES, themeCookie } from "./cookies.ts";
import { publicAction } from "./page.ts";
import { isOwnPath, redirectToPath } from "./redirect.ts";

/** The choice of colours: kept by the browser, also without a session. */
export const PREFERENCES = [
  publicAction(
    { path: "/theme", form: z.object({ theme: z.enum(THEMES), back: z.string().refine(isOwnPath).catch("/") }) },
    ({ form }) => redirectToPath(form.back, undefined, [themeCookie(form.theme)]),
  ),
];
