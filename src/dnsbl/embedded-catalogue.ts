import type { Catalogue } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts" with { type: "macro" };

/** The catalogue that comes with the product, without keys. It is read and checked when the program is built, not at each start. */
export const EMBEDDED_CATALOGUE: Catalogue = readEmbeddedCatalogue();
