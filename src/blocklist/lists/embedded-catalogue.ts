import type { Catalogue } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts" with { type: "macro" };

/** The catalogue included in the program, without keys. A macro: it is parsed at build time, not at every start. */
export const EMBEDDED_CATALOGUE: Catalogue = readEmbeddedCatalogue();
