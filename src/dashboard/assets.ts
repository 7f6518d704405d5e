import { promisify } from "node:util";
import { gzip } from "node:zlib";
import htmxScript from "htmx.org/dist/htmx.min.js" with { type: "text" };
import uplotScript from "uplot/dist/uPlot.iife.min.js" with { type: "text" };
import uplotStyle from "uplot/dist/uPlot.min.css" with { type: "text" };
import { sha256 } from "../foundation/base/secrets.ts";
import { takesGzip } from "../foundation/http/response.ts";
import appScript from "./assets/app.js" with { type: "text" };
import favicon from "./assets/favicon.svg" with { type: "text" };
import manualScript from "./assets/manual.js" with { type: "text" };
import manualStyle from "./assets/manual.css" with { type: "text" };
import manualIndex from "./assets/manual-index.txt" with { type: "text" };
import style from "./assets/style.css" with { type: "text" };

const HASH_CHARACTERS = 12;

interface Asset {
  readonly text: string;
  readonly type: string;
}

/** Everything that pages load, those of the manual too. It is all in the executable. */
const ASSETS: Readonly<Record<string, Asset>> = {
  "style.css": { text: `${uplotStyle}\n${style}`, type: "text/css" },
  "htmx.js": { text: htmxScript, type: "text/javascript" },
  "uplot.js": { text: uplotScript, type: "text/javascript" },
  "app.js": { text: appScript, type: "text/javascript" },
  "manual.css": { text: manualStyle, type: "text/css" },
  "manual.js": { text: manualScript, type: "text/javascript" },
  "manual-index.json": { text: manualIndex, type: "application/json" },
  "favicon.svg": { text: favicon, type: "image/svg+xml" },
};

export type AssetName =
  "style.css" | "htmx.js" | "uplot.js" | "app.js" | "manual.css" | "manual.js" | "manual-index.json" | "favicon.svg";

/** `style.css` → `/assets/<hash>-style.css`: the name changes with the content, so that browsers may keep it. */
const PATHS: ReadonlyMap<string, string> = new Map(
  Object.entries(ASSETS).map(([name, { text }]) => [name, `/assets/${sha256(text).slice(0, HASH_CHARACTERS)}-${name}`]),
);

export const assetPath = (name: AssetName): string => PATHS.get(name) ?? "";

const HEADERS = { "cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff" };

const zip = promisify(gzip);
const zipped = new Map<string, Promise<Buffer<ArrayBuffer>>>();

/** The asset of a path; null for another path, also for the name of an earlier version. */
export const findAsset = async (request: Request, path: string): Promise<Response | null> => {
  const [name] = [...PATHS].find(([, known]) => known === path) ?? [];
  const asset = name === undefined ? undefined : ASSETS[name];
  if (asset === undefined) return null;
  const headers = { ...HEADERS, "content-type": `${asset.type}; charset=utf-8`, vary: "accept-encoding" };
  if (!takesGzip(request)) return new Response(asset.text, { headers });
  const compressed = zipped.get(path) ?? zip(asset.text);
  zipped.set(path, compressed);
  return new Response(await compressed, { headers: { ...headers, "content-encoding": "gzip" } });
};
