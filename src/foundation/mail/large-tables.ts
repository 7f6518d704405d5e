/**
 * Packages with large tables, loaded when the first name needs them: a service that starts should neither wait for them
 * nor carry them while it idles. `require`, because the parsers that use them are synchronous.
 */
let tldts: typeof import("tldts") | null = null;
let tr46: typeof import("tr46") | null = null;

/** The public suffix list. */
export const suffixList = (): typeof import("tldts") => {
  tldts ??= require("tldts") as typeof import("tldts");
  return tldts;
};

/** The tables of UTS 46. */
export const uts46 = (): typeof import("tr46") => {
  tr46 ??= require("tr46") as typeof import("tr46");
  return tr46;
};
