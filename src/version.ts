import manifest from "../package.json" with { type: "json" };

/** Set by `npm run build`; undefined when the source runs directly. */
declare const POSTWARDEN_COMMIT: string | undefined;

/** The version of this binary, as in package.json. */
export const VERSION: string = manifest.version;

/** The Git commit that this binary was built from, with `-modified` if the source had changes; null when that is unknown. */
export const COMMIT: string | null = typeof POSTWARDEN_COMMIT === "string" ? POSTWARDEN_COMMIT : null;
