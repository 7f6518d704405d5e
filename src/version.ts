import manifest from "../package.json" with { type: "json" };

/** The version of this binary, as in package.json. */
export const VERSION: string = manifest.version;
